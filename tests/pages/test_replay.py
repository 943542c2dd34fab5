"""The replay page: what a fresh install shows, moving through turns, what-if, links, and what cannot be."""

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed
from streamlit.testing.v1 import AppTest

from pamer_lab import figures
from pamer_lab.analysis.paper_comparison import live_result
from pamer_lab.analysis.verdict import signed
from pamer_lab.audit import AuditStore
from pamer_lab.controller import FixedProbe
from pamer_lab.errors import Cancelled
from pamer_lab.factory import Parts
from pamer_lab.memory import MemoryStore
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.runs.background import Background, Batch
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import STATUS_WORDS, Run
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.ui.replay.turn_steps import CHARTS
from pamer_lab.ui.replay.turn_texts import block_words
from pamer_lab.ui.replay.turn_view import VIEWS
from pamer_lab.ui.replay.whatif import NOTHING
from pamer_lab.ui.shared.runs import background
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import DISK_FULL, Visit, charts, chat, holds, linked, put, says, sentences, table_of, texts
from tests.runs.making import PARTS, estimated, huge_trace, long_trace
from tests.runs.test_background import held
from tests.runs.test_evidence import hand_made

PAGE = "pages/replay.py"
LIGHT = ["base", "sliding-window:5"]


def pamer_run(workspace: Workspace, turns: int = 24) -> Run:
    """A PaMER run whose heads need no weights, over a trace made by hand."""
    options = ReplayOptions(device="cpu", parts=PARTS)
    replay(long_trace(turns), "base", workspace, options)
    return replay(long_trace(turns), "pamer:minimum=60:retained=1", workspace, options)


def visit_run(visit: Visit, run: Run, **more: str) -> AppTest:
    return visit(PAGE, trace=run.head.trace_id, policies=["base", run.head.policy], **more)  # type: ignore[arg-type]


def items_of(app: AppTest, run: Run, turn: int, *, both: bool = False) -> Any:
    """The table of the context at a turn; with `both`, beside what the agent sent."""
    return table_of(app, f"items-{run.run_id}-{turn}-{both}")


def go(app: AppTest, page: str) -> None:
    """To another page through the menu, which empties the address."""
    app.switch_page(page)
    app.query_params.clear()
    app.run()


def test_a_fresh_install_replays_the_demo_through_what_needs_no_model(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert not app.error
    assert set(charts(app)) >= set(CHARTS)
    assert {head.policy for head in RunStore(workspace).heads()} >= {"base", "sliding-window:5", "periodic-summary:5"}
    assert all(head.status == "done" and head.demo for head in RunStore(workspace).heads())


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_points_to_the_traces_page(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert len(app.info) == 1 and "traces" in linked(app) and not charts(app)


def test_without_heads_pamer_is_unavailable_with_the_reason_and_the_command(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pamer_lab.probes.registry.PACKAGED", tmp_path)
    put(workspace, run=chat(5))
    app = visit(PAGE)
    reason = next(info.value for info in app.info if holds(info.value, "pamer"))
    assert "SmolLM2-135M-Instruct" in reason
    assert "pamer-lab train" in reason
    assert "pamer" not in {head.policy for head in RunStore(workspace).heads()}
    assert "run" not in {button.key for button in app.button}


def test_the_listed_items_sum_to_the_plotted_number_at_every_turn(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace, 12)
    for turn in run.turns:
        app = visit_run(visit, run, policy=run.head.policy, turn=str(turn.t))
        assert says(app, f"{turn.active_tokens:,}", f"{turn.active_tokens:,}")
        assert int(items_of(app, run, turn.t)["Tokens"].sum()) == turn.active_tokens


def test_a_turn_shows_votes_thresholds_margins_and_what_would_flip_it(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace)
    turn = next(turn for turn in run.turns if turn.action == "compress")
    app = visit_run(visit, run, policy=run.head.policy, turn=str(turn.t))
    assert says(app, sum(turn.votes), 5, 3)
    margins = sorted(abs(logit) for logit in turn.logits)
    assert any(says(app, f"{margin:.2f}") for margin in margins), "what would flip it, at a threshold of 0.5"
    votes = next(frame.value for frame in app.dataframe if "Margin" in frame.value.columns)
    assert list(votes["Logit"]) == [round(value, 3) for value in turn.logits]
    app.segmented_control(key="view").set_value(VIEWS[2]).run()
    (stored,) = [memory for memory in MemoryStore(workspace.database).load(run.run_id).memories if memory.memory_id in turn.memory_ids]
    assert says(app, stored.sequence, f"{stored.tokens:,}", f"{stored.summary_tokens:,}")
    app.segmented_control(key="view").set_value(VIEWS[1]).run()
    sums = {int(column.sum()) for _, column in items_of(app, run, turn.t, both=True).select_dtypes("number").items()}
    assert sums == {turn.raw_tokens, turn.active_tokens}


def test_a_block_that_was_clipped_is_shown_as_restored_in_part(visit: Visit, workspace: Workspace) -> None:
    options = ReplayOptions(device="cpu", parts=Parts(embedder=PARTS.embedder, probe=FixedProbe()))
    replay(huge_trace(), "base", workspace, options)
    run = replay(huge_trace(), "pamer+:minimum=300:retained=1", workspace, options)
    turn = next(turn for turn in run.turns if turn.restored_in_part)
    app = visit_run(visit, run, policy=run.head.policy, turn=str(turn.t), view=VIEWS[2])
    assert not app.exception
    assert any(re.search(rf"\b{turn.restored_in_part[0]} \(", text) for text in sentences(app))
    (row,) = [row for row in AuditStore(workspace.database).rows(run_id=run.run_id) if row["turn"] == turn.t]
    app = visit("pages/audit.py", selection=row["audit_id"])
    assert not app.exception
    assert says(app, f"{row['restored_tokens']:,}", f"{row['covered_tokens']:,}", f"{row['chosen_tokens']:,}")


def test_buttons_lead_through_turns_and_events(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace)
    events = [turn.t for turn in run.turns if turn.action != "pass"]
    app = visit_run(visit, run, policy=run.head.policy, turn="0")
    assert app.button(key="Previous turn").disabled
    app.button(key="Next event").click().run()
    assert app.number_input(key="turn").value == events[0]
    app.button(key="Next turn").click().run()
    assert app.number_input(key="turn").value == events[0] + 1
    app.button(key="Previous event").click().run()
    assert app.query_params["turn"] in (str(events[0]), [str(events[0])])


def test_sliders_votes_and_totals_explain_their_words(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace, 12)
    app = visit_run(visit, run, policy=run.head.policy)
    assert all(slider.help for slider in app.slider) and len(app.slider) == 4
    for column, wanted in (("Margin", ["Head", "Logit", "Threshold"]), ("Uncached", ["Main input", "Uncached", "Aux. input", "Peak"])):
        columns = json.loads(next(frame.proto.columns for frame in app.dataframe if column in frame.value.columns))
        assert all(columns[name]["help"] for name in wanted)


def test_blocks_are_counted_in_words() -> None:
    assert block_words([(23, 24)]) == "block 23" and block_words([(0, 4), (7, 8)]) == "blocks 0-3, 7"


def test_a_slider_decides_again_without_a_model_and_stands_in_the_link(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace)
    app = visit_run(visit, run, policy=run.head.policy)
    assert says(app, len(run.turns), len(run.turns))
    app.slider(key="vote").set_value(5).run()
    changed_turns = WhatIfRun(run).ask(Changes(vote=5)).changed_turns
    assert changed_turns and says(app, len(changed_turns), *changed_turns[:2])
    again = visit_run(visit, run, policy=run.head.policy, vote="5")
    assert says(again, len(changed_turns), *changed_turns[:2])
    assert len(RunStore(workspace).heads(trace_id=run.head.trace_id)) == 2


def test_a_turn_change_builds_no_chart_and_a_slider_only_the_one_it_changes(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def counting(name: str) -> None:
        real = getattr(figures, name)
        monkeypatch.setattr(figures, name, lambda *args, **options: built.append(name) or real(*args, **options))

    for name in ("context", "events", "ledger"):
        counting(name)
    run = pamer_run(workspace)
    app = visit_run(visit, run, policy=run.head.policy, turn="3")
    assert sorted(built) == ["context", "events", "ledger"]
    for _ in range(3):
        app.button(key="Next turn").click().run()
    assert app.number_input(key="turn").value == 6
    assert len(built) == 3
    app.slider(key="vote").set_value(5).run()
    assert built[3:] == ["context"]
    (marked,) = [element for element in app.get("bidi_component") if "marks" in element.proto.json and "strip" in element.proto.json]
    assert {place["at"] for place in json.loads(marked.proto.json)["marks"].values()} == {6}


def test_what_if_says_why_it_has_nothing_to_offer(visit: Visit) -> None:
    assert NOTHING in texts(visit(PAGE, policy="base"))


def test_a_trace_too_short_for_any_head_is_shown_with_its_charts(visit: Visit, workspace: Workspace) -> None:
    run = replay(long_trace(3), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    assert not any(turn.logits for turn in run.turns)
    app = visit(PAGE, trace=run.head.trace_id, policies=["pamer"])  # type: ignore[arg-type]
    assert not app.exception and not app.slider
    assert says(app, "1,024") and NOTHING not in texts(app)
    assert set(charts(app)) >= set(CHARTS)


def test_one_head_alone_leaves_no_vote_to_choose(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace, 12)
    store = RunStore(workspace)
    alone = [changed(turn, logits=turn.logits[:1], thresholds=turn.thresholds[:1], votes=turn.votes[:1]) for turn in run.turns]
    store.forget_after(run.run_id, 0)
    store.add_turns(run.run_id, alone)
    app = visit_run(visit, run, policy=run.head.policy)
    assert not app.exception
    assert [slider.key for slider in app.slider] == ["scale", "least", "kept"]


def test_the_tables_below_are_those_of_the_library(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace)
    app = visit_run(visit, run, policy=run.head.policy)
    totals = next(frame.value for frame in app.dataframe if "Uncached" in frame.value.columns)
    row = totals[totals["Policy"] == run.head.policy].iloc[0]
    assert row["Total"] == run.totals["total"]
    assert row["Cached"] + row["Uncached"] == run.totals["main_input"]
    seen = set()
    parts = app.segmented_control(key="more").options
    for name in parts:
        app.segmented_control(key="more").set_value(name).run()
        assert not app.exception
        seen.add(texts(app))
    assert len(seen) == len(parts) == 5
    at = next(turn.t for turn in run.turns if "A" * turn.t != turn.states)
    assert says(app, "base", at)


def test_a_link_to_a_turn_that_is_not_there_says_so(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    app = visit(PAGE, policies=LIGHT, turn="99")  # type: ignore[arg-type]
    assert holds(app.warning[0].value, 99, 5)
    assert app.number_input(key="turn").value == 4


def test_a_link_to_a_missing_trace_says_which_one_it_needs_and_lets_another_be_picked(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    app = visit(PAGE, trace="t-0123456789abcdef", policies=LIGHT)
    assert "t-0123456789abcdef" in app.error[0].value
    assert not charts(app)
    app.selectbox(key="picked_trace").set_value(workspace.trace_rows()[0]["trace_id"]).run()
    assert not app.error
    assert "context" in charts(app)


def test_a_trace_that_was_removed_after_a_look_at_it_is_no_dead_end(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(5), other=chat(4))
    looked, kept = (row["trace_id"] for row in workspace.trace_rows())
    app = visit(PAGE, trace=looked, policies=LIGHT)
    go(app, "pages/traces.py")
    workspace.remove_trace(looked)
    go(app, PAGE)
    assert not app.error and not app.exception
    assert app.selectbox(key="picked_trace").value == kept
    assert len(app.warning) == 1 and "one.json" in app.warning[0].value
    assert not app.run().warning, "once is enough"


@pytest.mark.parametrize("page", [PAGE, "pages/trace.py"])
def test_a_trace_that_is_removed_in_another_tab_is_said_to_be_gone_and_another_can_be_picked(
    visit: Visit, workspace: Workspace, page: str
) -> None:
    put(workspace, one=chat(5), other=chat(4))
    looked, kept = (row["trace_id"] for row in workspace.trace_rows())
    app = visit(page, trace=looked, policies=LIGHT)
    workspace.remove_trace(looked)
    app.run()
    assert not app.error and not app.exception and not charts(app)
    assert len(app.warning) == 1 and "one.json" in app.warning[0].value
    app.selectbox(key="picked_trace").set_value(kept).run()
    assert not app.warning and charts(app)


def test_the_open_turn_and_policy_are_there_again_after_another_page_and_belong_to_their_trace(visit: Visit, workspace: Workspace) -> None:
    put(workspace, long=chat(20), short=chat(4))
    ids = {row["name"]: row["trace_id"] for row in workspace.trace_rows()}
    app = visit(PAGE, trace=ids["long.json"], policies=LIGHT, policy="base", turn="9")
    go(app, "pages/trace.py")
    go(app, PAGE)
    assert (app.number_input(key="turn").value, app.segmented_control(key="policy").value) == (9, "base")
    app.selectbox(key="picked_trace").set_value(ids["short.json"]).run()
    assert app.number_input(key="turn").value == 0
    assert not app.warning, "the old turn is not taken for a link's"
    app.selectbox(key="picked_trace").set_value(ids["long.json"]).run()
    assert app.number_input(key="turn").value == 9


@pytest.mark.usefixtures("full_disk")
def test_a_policy_that_cannot_be_replayed_leaves_the_stored_runs_on_the_page(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)
    app = visit(PAGE, policies=LIGHT)
    assert not app.error
    assert DISK_FULL in app.warning[0].value
    assert "context" in charts(app)


def test_without_a_run_the_page_names_a_step_that_can_be_taken(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    put(workspace, run=chat(5), other=chat(4))
    one, other = (row["trace_id"] for row in sorted(workspace.trace_rows(), key=lambda row: -row["turns"]))
    monkeypatch.setattr("pamer_lab.ui.shared.run_form.AT_ONCE", 0)
    app = visit(PAGE, trace=one, policies=LIGHT)
    idle = app.info[-1].value
    assert not app.button(key="run").disabled
    batch = Batch((one,), ("base",), BatchOptions())
    monkeypatch.setattr(Background, "current", batch)
    here, elsewhere = (visit(PAGE, trace=trace, policies=LIGHT) for trace in (one, other))
    assert all(says(app, "base", "run.json", 5) and app.button(key="stop") for app in (here, elsewhere))
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    reading = visit(PAGE, trace=one, policies=LIGHT)
    assert not {"run", "stop"} & {button.key for button in reading.button}
    assert len({idle, *(app.info[-1].value for app in (here, elsewhere, reading))}) == 4, "each names a step of its own"


def test_a_second_tabs_run_is_queued_behind_the_first_and_the_page_says_so(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, run=chat(5), other=chat(4))
    one, other = (row["trace_id"] for row in sorted(workspace.trace_rows(), key=lambda row: -row["turns"]))
    monkeypatch.setattr("pamer_lab.ui.shared.run_form.AT_ONCE", 0)
    release = threading.Event()
    monkeypatch.setattr(sys.modules[Background.__module__], "replay_batch", held(release))
    here, elsewhere = (visit(PAGE, trace=trace, policies=LIGHT) for trace in (one, other))
    here.button(key="run").click().run()
    elsewhere.button(key="run").click().run()
    (waiting,) = background().waiting
    assert waiting.trace_ids == (other,) and (running := background().current) and running.trace_ids == (one,)
    assert says(elsewhere, "1 of 1", "base", "other.json") and len(elsewhere.toast) == 1
    elsewhere.button(key="withdraw-1").click().run()
    assert not background().waiting and not says(elsewhere, "1 of 1", "base")
    late = visit(PAGE, trace=other, policies=LIGHT)
    late.button(key="run").click().run()
    assert [batch.trace_ids for batch in background().waiting] == [(other,)] and "run" not in {button.key for button in late.button}
    late.button(key="withdraw-1").click().run()
    release.set()
    assert running.wait(60)


def test_other_policies_of_a_trace_that_is_being_replayed_can_be_queued(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, run=chat(5))
    (row,) = workspace.trace_rows()
    monkeypatch.setattr("pamer_lab.ui.shared.run_form.AT_ONCE", 0)
    monkeypatch.setattr(Background, "current", Batch((row["trace_id"],), ("base",), BatchOptions()))
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(Background, "start", lambda self, traces, policies, options: started.append(tuple(policies)))
    app = visit(PAGE, policies=["base", "sliding-window:5"])
    app.button(key="run").click().run()
    assert started == [("sliding-window:5",)], "not what is being made"


def test_the_first_divergence_opens_its_turn_and_shows_what_only_one_side_has(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace, 12)
    app = visit_run(visit, run, policy=run.head.policy, turn="0")
    app.segmented_control(key="more").set_value(app.segmented_control(key="more").options[-1]).run()
    at = next(turn.t for turn in run.turns if "A" * turn.t != turn.states)
    rows = next(frame.value for frame in app.dataframe if "Only in" in frame.value.columns)
    left_out = rows[rows["Only in"] == "base"].iloc[0]
    assert left_out["Item"].startswith("block") and left_out["Tokens"] > 0
    app.button(key="open-base-base").click().run()
    assert (app.number_input(key="turn").value, app.segmented_control(key="policy").value) == (at, "base")
    app.multiselect(key="policies").set_value(["base"]).run()
    assert not app.exception and "open-base-base" not in {button.key for button in app.button}


def test_an_unknown_policy_is_answered_with_the_known_ones(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    app = visit(PAGE)
    app.multiselect(key="policies").set_value(["base", "forget-all"]).run()
    assert not app.exception and not app.error
    assert "forget-all" in app.warning[0].value and "context" in charts(app), "the others are shown"
    assert "sliding-window" in app.warning[0].value


@pytest.mark.parametrize("turns", [0, 4])
def test_an_unfinished_run_is_shown_as_far_as_it_is_and_can_go_on(visit: Visit, workspace: Workspace, turns: int) -> None:
    put(workspace, run=chat(9))
    trace_id = str(workspace.trace_rows()[0]["trace_id"])
    seen: list[int] = []
    options = ReplayOptions(watch=lambda turn, of: seen.append(turn.t), cancelled=lambda: len(seen) >= turns)
    with pytest.raises(Cancelled):
        replay(trace_id, "base", workspace, options)
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    assert [holds(warning.value, turns, 9) and STATUS_WORDS["cancelled"] in warning.value for warning in app.warning] == [True]
    assert holds(app.button(key="run").label, 1)


def test_hostile_text_reaches_the_page_only_as_text(visit: Visit, workspace: Workspace) -> None:
    put(workspace, bad=chat(3).replace(b"answer 1", b"<script>alert(1)</script> ![x](http://example.invalid/a.png)"))
    app = visit(PAGE, policies=["periodic-summary:1:keep=0"], view=VIEWS[2], turn="2")  # type: ignore[arg-type]
    assert not app.exception
    assert any("<script>" in code.value for code in app.code)
    assert "<script>" not in texts(app)


def test_a_run_of_other_heads_is_shown_as_it_is_and_the_installed_ones_are_offered(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace, 12)
    store = RunStore(workspace)
    head = store.head(run.run_id)
    assert head is not None
    assert "run_again" not in {button.key for button in visit_run(visit, run).button}
    store.put_head(changed(head, settings=head.settings | {"heads": {"sha256": "0" * 64}}))
    app = visit_run(visit, run)
    assert says(app, run.head.policy, len(run.turns))
    assert "run_again" in {button.key for button in app.button}


def test_a_block_that_was_left_out_stands_beside_what_the_model_has_instead(visit: Visit, workspace: Workspace) -> None:
    run = pamer_run(workspace)
    turn = next(turn for turn in run.turns if "S" in turn.states and turn.action == "compress")
    app = visit_run(visit, run, policy=run.head.policy, turn=str(turn.t), view=VIEWS[1])
    sides = items_of(app, run, turn.t, both=True)
    place = next(row for row, cells in enumerate(sides.to_numpy().tolist()) if f"block {turn.states.index('S')}" in cells)
    app.session_state[f"items-{run.run_id}-{turn.t}-True"] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    (shown,) = [code.value for code in app.code if code.language == "diff"]
    assert {line[:2] for line in shown.splitlines()} <= {"  ", "- ", "+ "}
    app.button(key="Next turn").click().run()
    assert not [code for code in app.code if code.language == "diff"], "a row chosen at one turn is not chosen at the next"


def test_the_cost_of_each_turn_is_drawn_and_its_dearest_turns_are_listed(visit: Visit, workspace: Workspace) -> None:
    workspace.add_traces([long_trace(12, trace_id="t-own")], estimated())
    replay("t-own", "pamer:minimum=90", workspace, ReplayOptions(parts=PARTS))
    app = visit(PAGE, trace="t-own", policies=["pamer:minimum=90"])  # type: ignore[arg-type]
    dear = next(frame.value for frame in app.dataframe if "Rewritten" in frame.value.columns)
    assert len(dear) == 10 and list(dear.iloc[:, 2]) == sorted(dear.iloc[:, 2], reverse=True)


def test_the_page_begins_with_a_verdict_per_policy_and_the_papers_live_result(visit: Visit, workspace: Workspace) -> None:
    runs = [replay(hand_made(), policy, workspace, ReplayOptions(device="cpu", parts=PARTS)) for policy in ("base", "sliding-window:5")]
    app = visit(PAGE, trace=runs[0].head.trace_id, policies=["base", "sliding-window:5"])  # type: ignore[arg-type]
    live = live_result("sliding-window:5")
    assert live is not None
    change = 100 * (runs[1].totals["total"] / runs[0].totals["total"] - 1)
    first = next(text for text in sentences(app) if "**sliding-window:5**" in text and "**base**" in text)
    assert all(f"{signed(value)}" in first for value in (change, live["tokens_pct"], live["points"]))


def test_a_drop_is_an_event_with_the_evidence_that_went(visit: Visit, workspace: Workspace) -> None:
    run = replay(hand_made(), "sliding-window:2", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, trace=run.head.trace_id, policies=["sliding-window:2"], more="Drops")  # type: ignore[arg-type]
    assert app.number_input(key="turn").value == 3, "the first drop is the first event"
    assert any("Tom Rice" in text for text in sentences(app))
    frame = table_of(app, "drops")
    assert frame["Turn"].tolist() == [3, 4, 5] and frame["Blocks"].tolist() == ["0", "1", "2"]
    assert frame["Evidence lost"].tolist() == [2, 1, 0] and "D4711" in frame["Used later"][1]
    app.button(key="Next event").click().run()
    assert app.number_input(key="turn").value == 4
