"""The context growth page: a fresh install, deltas against a baseline, what is missing."""

from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import describe_policies, offered_policies
from pamer_lab.prices import DEFAULT, find_prices, write_table
from pamer_lab.runs.background import Background
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.ui.growth.table import COST_CHANGE, EVIDENCE_CHANGE, LEFT_OUT, good_or_bad
from pamer_lab.ui.shared.text import DEMO, counted_with
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.catalogue import Filters, listed
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import DISK_FULL, Visit, charts, chat, holds, linked, put, says, sentences, texts
from tests.runs.making import PARTS, estimated, long_trace

PAGE = "pages/growth.py"
CHANGE = "Total vs baseline"


def test_a_fresh_install_shows_the_demo_traces(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert not app.error
    assert "growth-means" in charts(app)


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_points_to_the_traces_page(visit: Visit) -> None:
    app = visit(PAGE)
    assert len(app.info) == 1 and "traces" in linked(app) and not charts(app)


def test_changes_are_against_the_chosen_baseline_with_signs(visit: Visit, workspace: Workspace) -> None:
    for turns in (8, 14):
        for policy in ("base", "sliding-window:2"):
            replay(long_trace(turns, trace_id=f"t-{turns}"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "sliding-window:2"])  # type: ignore[arg-type]
    assert not app.exception
    assert says(app, "n = 2")
    frame = next(frame.value for frame in app.dataframe if CHANGE in frame.value.columns)
    assert frame[CHANGE].iloc[0] == "="
    assert frame[CHANGE].iloc[1].startswith("▼ -")
    app.segmented_control(key="baseline").set_value("sliding-window:2").run()
    frame = next(frame.value for frame in app.dataframe if CHANGE in frame.value.columns)
    assert frame[CHANGE].iloc[0].startswith("▲ +")


def test_what_needs_no_model_is_replayed_at_once_and_the_rest_can_be_started(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3), two=chat(4))
    first = workspace.trace_rows()[0]["trace_id"]
    replay(first, "base", workspace)
    app = visit(PAGE, policies=["base", "pamer"])  # type: ignore[arg-type]
    assert holds(app.button(key="run").label, 2)
    assert says(app, "pamer", 2, "SmolLM2-135M-Instruct", "all-MiniLM-L6-v2")
    assert says(app, "n = 2")


def test_many_missing_turns_wait_for_the_button(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.view.AT_ONCE", 2)
    put(workspace, one=chat(3), two=chat(4))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    assert holds(app.button(key="run-fast").label, 1)
    assert says(app, "base", 1, "1 s") and not says(app, "all-MiniLM-L6-v2")
    assert says(app, "n = 1", 2)


def test_of_many_traces_the_shortest_are_replayed_at_once(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.view.AT_ONCE", 8)
    put(workspace, one=chat(9), two=chat(4), three=chat(3))
    app = visit(PAGE)
    assert {head.turns for head in RunStore(workspace).heads()} == {3, 4} and says(app, "n = 2", 3)
    assert app.button(key="run-fast")


def test_own_prices_give_each_policy_its_cost(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3))
    write_table(replace(find_prices(), name="own", currency="EUR", read=0.5), workspace.path)
    app = visit(PAGE, policies=["base"], prices="own")  # type: ignore[arg-type]
    frame = next(frame.value for frame in app.dataframe if CHANGE in frame.value.columns)
    assert frame["Cost"].iloc[0].endswith("EUR") and frame["Cost vs baseline"].iloc[0] == "=" and frame["Cost vs base"].iloc[0] == "1.00"
    app.selectbox(key="prices").set_value(DEFAULT).run()
    other = next(frame.value for frame in app.dataframe if CHANGE in frame.value.columns)
    assert other["Cost"].iloc[0].endswith(find_prices().currency) and says(app, find_prices().date)


def test_a_broken_price_table_is_said_once_and_the_others_stay(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3))
    path = write_table(replace(find_prices(), name="own"), workspace.path)
    path.with_name("wrong.toml").write_text("read = -1")
    app = visit(PAGE, policies=["base"], prices="own")  # type: ignore[arg-type]
    assert sum("wrong.toml" in warning.value for warning in app.warning) == 1
    assert app.selectbox(key="prices").value == "own"


def test_traces_that_are_left_out_are_named_with_the_way_to_see_them(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    demo = min(workspace.trace_rows(), key=lambda row: int(row["turns"]))["trace_id"]
    workspace.add_traces([long_trace(5, trace_id="t-own")], estimated())
    replay(demo, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "pamer"], traces=f"{demo},t-own")  # type: ignore[arg-type]
    common, own = app.toggle(key="common"), "` t-own `"
    assert any(own in text and common.label in text for text in sentences(app)), "what is left out, and the switch that shows it"
    assert says(app, "n = 1", 2) and ":gray-badge[demo]" in texts(app) and DEMO in texts(app)
    common.set_value(False).run()
    assert own not in texts(app) and says(app, "n = 2") and says(app, 1, 2, "demo") and DEMO not in texts(app)


def test_how_tokens_were_counted_is_the_runs_word_not_the_traces(visit: Visit, workspace: Workspace) -> None:
    workspace.add_traces([long_trace(5, trace_id="t-own")], estimated())
    replay("t-own", "base", workspace, ReplayOptions(device="cpu", parts=PARTS))
    (head,) = RunStore(workspace).heads()
    assert head.tokens_kind == "measured"
    said = texts(visit(PAGE, policies=["base"]))  # type: ignore[arg-type]
    assert counted_with(head.tokens_kind, head.tokenizer) in said and "characters/4" not in said


def test_what_is_cut_is_said(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.table.MOST_TRACES", 1)
    monkeypatch.setattr("pamer_lab.ui.growth.table.MOST_TURNS", 19)
    monkeypatch.setattr("pamer_lab.ui.growth.view.MOST_PAIRS", 1)
    monkeypatch.setattr("pamer_lab.figures.growth.MOST_LINES", 2)
    for turns in (4, 6):
        for policy in ("base", "sliding-window:2"):
            replay(long_trace(turns, trace_id=f"t-{turns}"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "sliding-window:2"], lines="true")  # type: ignore[arg-type]
    app.session_state["divergence"] = True
    app.run()
    assert len([text for text in sentences(app) if holds(text, 1, 2)]) >= 2, "the lines and the pairs that are shown, of how many"
    said = texts(app)
    assert said.count(LEFT_OUT) == 2, "the first lines and the table"
    for name, most in (("MOST_TRACES", 2), ("MOST_TURNS", 20)):
        with monkeypatch.context() as patched:
            patched.setattr(f"pamer_lab.ui.growth.table.{name}", most)
            assert LEFT_OUT not in texts(app.run()), "few traces, or more that are short"
    monkeypatch.setattr("pamer_lab.ui.growth.table.MOST_TURNS", 20)
    monkeypatch.setattr("pamer_lab.ui.growth.table.MOST_RUNS", 3)
    assert LEFT_OUT in texts(app.run()), "short ones, but many"


def test_more_evidence_is_good_and_fewer_tokens_only_at_no_higher_cost() -> None:
    assert good_or_bad(EVIDENCE_CHANGE, "▲ +3.0 points") == "good" == good_or_bad(COST_CHANGE, "▼ -3.0 %")
    assert good_or_bad(EVIDENCE_CHANGE, "▼ -3.0 points") == "bad" == good_or_bad(COST_CHANGE, "▲ +3.0 %")
    assert good_or_bad(CHANGE, "▼ -3.0 %", (1.0, 2.0)) == "good" and good_or_bad(CHANGE, "▲ +3.0 %", (2.0, 1.0)) == "bad"
    assert good_or_bad(CHANGE, "▼ -3.0 %", (2.0, 1.0)) == "" == good_or_bad(CHANGE, "▼ -3.0 %")


def test_the_page_opens_with_the_readers_traces_and_the_policies_that_need_no_model(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    put(workspace, one=chat(3), two=chat(4))
    app = visit(PAGE)
    assert not app.exception
    assert says(app, "n = 2") and app.segmented_control(key="owners").value == "my traces"
    assert app.multiselect(key="policies").value == ["base", "sliding-window:5", "periodic-summary:5"]
    assert {head.trace_id for head in RunStore(workspace).heads()} == {row["trace_id"] for row in workspace.trace_rows() if not row["demo"]}
    assert holds(app.button(key="run").label, 4) and "run-fast" not in [button.key for button in app.button]
    assert any("**sliding-window:5**" in text and "**base**" in text for text in sentences(app)), "the verdict"
    app.segmented_control(key="owners").set_value("all").run()
    assert says(app, "n = 6")
    scored = listed(workspace, Filters(reward="recorded").where).rows
    app.selectbox(key="reward").set_value("recorded").run()
    assert 0 < len(scored) < 6 and says(app, f"n = {len(scored)}")


def test_the_buttons_start_the_fast_runs_alone_or_all_with_the_models_behind(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.view.AT_ONCE", 0)
    started: list[tuple[list[str], list[str]]] = []
    monkeypatch.setattr(Background, "start", lambda self, traces, policies, options: started.append((traces, policies)))
    put(workspace, one=chat(3))
    app = visit(PAGE)
    app.button(key="run-fast").click().run()
    app.button(key="run").click().run()
    assert [policies for _, policies in started] == [["base", "sliding-window:5", "periodic-summary:5"], list(offered_policies("first"))]
    assert app.multiselect(key="policies").value == list(offered_policies("first"))


def test_a_link_with_a_missing_trace_follows_the_readers_choice(visit: Visit, workspace: Workspace) -> None:
    for turns in (3, 4):
        replay(long_trace(turns, trace_id=f"t-{turns}"), "base", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base"], traces="t-gone,t-3")  # type: ignore[arg-type]
    assert "t-gone" in app.warning[0].value and says(app, "n = 1")
    app.multiselect(key="traces").set_value(["t-3", "t-4"]).run()
    assert app.query_params["traces"] in ("t-3,t-4", ["t-3,t-4"]) and not app.warning


def test_links_to_both_sides_stand_beside_the_page_and_keep_the_plus(visit: Visit, workspace: Workspace) -> None:
    for policy in ("base", "pamer+:minimum=60:retained=1"):
        replay(long_trace(9, trace_id="t-9"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "pamer+:minimum=60:retained=1"])  # type: ignore[arg-type]
    app.session_state["divergence"] = True
    app.run()
    frame = next(frame.value for frame in app.dataframe if "Policy's turn" in frame.value.columns)
    link = urlsplit(frame["Policy's turn"].iloc[0])
    assert link.path == "replay" and parse_qs(link.query)["policy"] == ["pamer+:minimum=60:retained=1"]


@pytest.mark.usefixtures("full_disk")
def test_a_policy_that_cannot_be_replayed_leaves_the_stored_runs_on_the_page(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)
    app = visit(PAGE, policies=["base", "sliding-window:5"])  # type: ignore[arg-type]
    assert not app.error
    assert DISK_FULL in app.warning[0].value
    assert "growth-means" in charts(app)


def test_each_trace_has_its_rows_and_its_own_file(visit: Visit, workspace: Workspace) -> None:
    put(workspace, long=chat(9), short=chat(4))
    policies = ["base", "sliding-window:5"]
    app = visit(PAGE, policies=policies)  # type: ignore[arg-type]
    app.session_state["per-trace-panel"] = True
    app.run()
    shown = next(frame.value for frame in app.dataframe if "Trace" in frame.value.columns)
    assert not app.exception and list(shown["Trace"]) == ["long.json"] * 2 + ["short.json"] * 2 and list(shown["Policy"]) == policies * 2
    assert {"traces-csv", "policies-csv"} <= {button.key for button in app.download_button}


def test_cost_is_set_against_evidence_with_the_cheapest_policy_at_each_level(visit: Visit) -> None:
    app = visit(PAGE, policies=["base", "sliding-window:5"])  # type: ignore[arg-type]
    frames = [frame.value for frame in app.dataframe if "Cheapest policy" in frame.value.columns]
    assert frames and list(frames[0]["Minimum evidence"]) == ["80 %", "90 %", "95 %"]


def test_policies_are_set_against_windows_of_as_many_tokens(visit: Visit) -> None:
    app = visit(PAGE, policies=["base", "sliding-window:2", "sliding-window:20", "observation-masking"])  # type: ignore[arg-type]
    frames = [frame.value for frame in app.dataframe if "Against" in frame.value.columns]
    assert not app.exception and list(frames[0]["Policy"]) == ["observation-masking"] and list(frames[0]["Against"]) == ["sliding-window"]


MANY = ["base", "sliding-window:5", "auto-compact", "observation-masking", "acon", "comem", "memgpt", "sam", "lre", "tokenprune-idf"]


def test_all_policies_are_listed_with_what_they_need_and_compared_with_one_button(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, one=chat(4))
    started: list[list[str]] = []
    monkeypatch.setattr(Background, "start", lambda self, traces, policies, options: started.append(list(policies)))
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    app.session_state["every-policy"] = True
    app.run()
    table = next(frame.value for frame in app.dataframe if "Runs here" in frame.value.columns)
    runs_here = dict(zip(table["Policy"], table["Runs here"], strict=True))
    assert not app.exception and list(runs_here) == [
        entry["name"] for family in FAMILIES for entry in describe_policies() if entry["family"] == family
    ]
    assert runs_here["acon"] == runs_here["pamer"] == "yes" and "manage_context" in runs_here["acm"] and runs_here["sculptor"] != "yes"
    app.button(key="compare-all").click().run()
    assert not app.exception and {"acon", "lre", "pamer"} <= {*started[0]} and {"acm", "sculptor"}.isdisjoint(started[0])
    assert {*started[0]} <= {*app.session_state["policies"]}


def test_many_policies_are_drawn_by_family_or_with_some_highlighted(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(4))
    app = visit(PAGE, policies=MANY)  # type: ignore[arg-type]
    assert not app.exception and app.segmented_control(key="view").value == "By family" and "growth-means" in charts(app)
    app.segmented_control(key="view").set_value("One chart").run()
    app.multiselect(key="highlight").set_value(["acon"]).run()
    assert not app.exception and "growth-means" in charts(app)
