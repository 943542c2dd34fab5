"""The home page: a fresh start, filters, uploads good and bad, paths, removal."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pamer_lab.config import ROOTS_VARIABLE
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.runs.engine import replay
from pamer_lab.runs.samples import import_sample_runs
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.gate import how_to_get_in
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.text import counted_with
from pamer_lab.ui.traces import adding
from pamer_lab.ui.traces.adding import WAYS
from pamer_lab.ui.traces.home import thinned
from pamer_lab.ui.traces.library import row_with
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo, import_paths
from tests.pages.conftest import Visit, charts, chat, holds, key_of, linked, put, says, submit, table_of, texts

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "traces"
KEY = "sk-ant-" + "Zq8RkT2vWm5XyB7nLc3Jd0Hs"


def library(app: AppTest) -> Any:
    """The table of traces; an import report may have tables above it."""
    return next(table.value for table in app.dataframe if "Open" in table.value)


def names(app: AppTest) -> list[str]:
    return list(table_of(app, "library")["Name"])


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    return app.file_uploader[0].set_value([(name, data, "application/json") for name, data in files]).run()


def import_path(app: AppTest, path: Path) -> None:
    app.button_group(key="way").set_value(list(WAYS)[2]).run()
    next(field for field in app.text_input if field.form_id).set_value(str(path))
    submit(app, "path-form")


def rejected(app: AppTest) -> Any:
    """The table of what could not be read."""
    return next(frame.value for frame in app.dataframe if "File" in frame.value.columns)


def test_a_fresh_start_shows_the_demo_traces_marked_as_demo(visit: Visit, workspace: Workspace) -> None:
    app = visit()
    assert not app.exception
    assert set(table_of(app, "library")["Demo"]) == {"demo"}
    assert all(row["demo"] for row in workspace.trace_rows())


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_says_what_to_do_next(visit: Visit) -> None:
    app = visit()
    assert not app.exception
    assert len(app.info) == 1 and app.file_uploader
    assert len(app.dataframe) == 0


def test_an_upload_is_read_detected_and_listed(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)), ("packed.json.gz", gzip.compress(chat(4))))
    assert not app.exception
    assert holds(app.success[0].value, 2, "openai-chat")
    assert {"run.json", "packed.json.gz"} <= set(names(app))
    assert {row["turns"] for row in workspace.trace_rows() if not row["demo"]} == {3, 4}


def test_what_was_uploaded_is_one_click_away_and_the_next_page_opens_it(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)))
    own = next(row["trace_id"] for row in workspace.trace_rows() if not row["demo"])
    assert {link.proto.page for link in app.get("page_link") if link.proto.query_string == f"trace={own}"} == {"trace", "replay"}
    app.switch_page("pages/trace.py").run()
    assert not app.exception and app.query_params["trace"] == own


def test_the_same_bytes_are_known_the_second_time(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)))
    count = len(workspace.trace_rows())
    app = upload(app, ("renamed.json", chat(3)))
    assert holds(app.success[0].value, 1, "openai-chat", 1)
    assert len(workspace.trace_rows()) == count


def test_a_bad_file_is_named_with_its_reason_and_the_others_are_read(visit: Visit) -> None:
    app = upload(visit(), ("cut.json", chat(2)[:-20]), ("good.json", chat(2)))
    assert not app.exception
    assert holds(app.success[0].value, 1, "openai-chat") and holds(app.error[0].value, 1)
    file, where, why = rejected(app).iloc[0]
    assert file == "cut.json" and why
    assert holds(where, "line", 1)


def test_an_upload_named_like_a_path_is_only_a_name(visit: Visit, workspace: Workspace, tmp_path: Path) -> None:
    app = upload(visit(), ("../../escape/run.json", chat(2)))
    assert not app.exception
    assert "run.json" in names(app)
    assert not list(tmp_path.rglob("run.json"))


def test_event_files_of_one_folder_are_one_source(visit: Visit) -> None:
    app = visit()
    app.button_group(key="way").set_value(list(WAYS)[1]).run()
    app = upload(app, ("run/event-00001-b.json", b"{}"), ("run/event-00000-a.json", b"{}"))
    assert not app.exception
    assert list(rejected(app)["File"]) == ["run"]


def test_a_browser_without_the_token_gets_no_way_to_name_a_path(visit: Visit) -> None:
    app = visit()
    app.button_group(key="way").set_value(list(WAYS)[2]).run()
    assert not [field for field in app.text_input if field.form_id]
    assert any(how_to_get_in() == info.value for info in app.info)


@pytest.mark.usefixtures("came_by_the_link")
def test_a_browser_with_the_token_reads_nothing_outside_the_roots(
    visit: Visit, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.json"
    inside.mkdir()
    outside.write_bytes(chat(7))
    (inside / "link.json").symlink_to(outside)
    monkeypatch.setenv(ROOTS_VARIABLE, str(inside))
    for path in (outside, inside / "link.json", inside / ".." / "outside.json"):
        app = visit()
        import_path(app, path)
        assert len(rejected(app)) == 1 and not app.success
    assert not [row for row in workspace.trace_rows() if row["turns"] == 7]


@pytest.mark.usefixtures("came_by_the_link")
def test_a_path_on_the_server_is_imported(visit: Visit, tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "run.jsonl").write_bytes(chat(5) + b"\n" + chat(6).replace(b"question", b"other"))
    app = visit()
    import_path(app, tmp_path / "run.jsonl")
    assert holds(app.success[0].value, 2) and sorted(row["turns"] for row in workspace.trace_rows() if not row["demo"]) == [5, 6]


@pytest.mark.usefixtures("came_by_the_link")
def test_an_import_that_waits_for_others_says_so(visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(*_: object, on_wait: Callable[[], object]) -> None:
        on_wait()
        st.stop()

    monkeypatch.setattr(adding, "import_paths_apart", waits)
    app = visit()
    import_path(app, tmp_path)
    assert adding.WAITING in [info.value for info in app.info]


@pytest.mark.usefixtures("came_by_the_link")
def test_a_path_that_does_not_exist_is_a_sentence(visit: Visit, tmp_path: Path) -> None:
    app = visit()
    import_path(app, tmp_path / "nowhere")
    assert not app.exception and not app.success
    assert list(rejected(app)["File"]) == [str(tmp_path / "nowhere")] and rejected(app)["Why"].iloc[0]


def test_filters_narrow_the_table_and_can_come_from_the_url(visit: Visit, workspace: Workspace) -> None:
    put(workspace, short=chat(2), long=chat(30), model=chat(3, model="qwen"))
    app = visit()
    assert sorted(names(app)) == ["long.json", "model.json", "short.json"]
    app.text_input(key="find").set_value("QWEN").run()
    assert names(app) == ["model.json"]
    assert names(visit(find="long")) == ["long.json"]
    app = visit()
    app.select_slider(key="turns").set_value(("20", "any")).run()
    assert names(app) == ["long.json"]
    app.text_input(key="find").set_value("nothing like it").run()
    assert len(app.info) == 1 and not app.dataframe and workspace.trace_rows()


def choose_rows(app: AppTest, *rows: int) -> AppTest:
    """As a click on rows of the table would."""
    key = next(key for key in map(key_of, app.dataframe) if key.startswith("library"))
    app.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return app.run()


def test_what_is_removed_is_named_first_and_a_narrowed_table_keeps_no_choice(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(2), two=chat(3), three=chat(4))
    app = visit()
    gone = names(app)[1]
    app = choose_rows(app, 1)
    assert f"` {gone} ·" in texts(app) and "remove" in {button.key for button in app.button}
    app.text_input(key="find").set_value(".json").run()
    assert names(app).index(gone) == 1, "the same traces, so the choice stands"
    app.text_input(key="find").set_value("e.json").run()
    assert len(names(app)) == 2 and "remove" not in {button.key for button in app.button}
    app.text_input(key="find").set_value("").run()
    choose_rows(app, 1).button(key="remove").click().run()
    assert not app.exception
    assert sorted(names(app)) == sorted({"one.json", "two.json", "three.json"} - {gone})
    assert "remove" not in {button.key for button in app.button}


def test_the_tour_leads_to_a_block_that_is_there(visit: Visit, workspace: Workspace) -> None:
    for turns, block in ((3, 2), (30, 7)):
        (row,) = put(workspace, run=chat(turns)).traces
        app = visit()
        app.toggle(key="tour").set_value(True).run()
        links = [link.proto for link in app.get("page_link") if link.proto.page == "trace"]
        assert {link.query_string for link in links} == {f"trace={row['trace_id']}&block={block}&at=block-{block}"}


def test_own_traces_keep_the_demo_away_until_it_is_asked_for(visit: Visit, workspace: Workspace) -> None:
    put(workspace, own=chat(2))
    app = visit()
    assert names(app) == ["own.json"]
    next(button for button in app.button if button.key == "load-demo").click().run()
    assert len(names(app)) == 1 + sum(row["demo"] for row in workspace.trace_rows())
    assert len(names(app)) > 1
    assert "load-demo" not in {button.key for button in app.button}, "they are there"


def test_traces_of_one_file_are_told_apart_by_number_and_task_from_the_first_on(visit: Visit, workspace: Workspace) -> None:
    episodes = [json.loads(chat(2, task_id=task)) for task in ("fix-git", "7", "2")]
    put(workspace, many=json.dumps(episodes).encode(), one=chat(3, task_id="one"))
    found = library(visit()).set_index("Task")["#"]
    assert [found[task] for task in ("fix-git", "7", "2")] == [0, 1, 2] and pd.isna(found["one"])
    labels = sorted(trace_label(row).split(" · ")[:-2] for row in workspace.trace_rows())
    assert labels == [["many.json", "fix-git"], ["many.json #1", "7"], ["many.json #2"], ["one.json"]], "said once"


def test_the_readers_own_trace_opens_before_a_demo_on_every_page(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    import_sample_runs(workspace)
    (own,) = put(workspace, zebra=chat(3)).traces
    for page in ("pages/replay.py", "pages/trace.py"):
        assert visit(page).selectbox(key="picked_trace").value == own["trace_id"]


def test_a_workspace_that_cannot_be_read_is_a_sentence(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    for file in (workspace.path / "lance").rglob("*.manifest"):
        file.write_bytes(b"broken")
    app = visit()
    assert not app.exception
    assert len(app.error) == 1 and "Traceback" not in app.error[0].value


def test_each_trace_shows_how_its_context_grew_and_what_it_was_replayed_with(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    row = workspace.trace_rows()[0]
    replay(row["trace_id"], "sliding-window:3", workspace)
    table = table_of(visit(), "library")
    picture = list(table["Context"].iloc[0])
    assert len(picture) == 5 and picture == sorted(picture) and picture[-1] < row["tokens"]
    assert table["Replayed with"].iloc[0] == "sliding-window:3"


def test_the_tour_opens_on_a_fresh_install_and_stays_away_once_there_are_own_traces(
    visit: Visit, workspace: Workspace, recorded: Run
) -> None:
    app = visit()
    tour = {"trace", "replay", "growth", "audit", "published"}
    assert linked(app) >= tour and "home-context" in charts(app)
    assert says(app, "pamer+", counted_with(recorded.head.tokens_kind, recorded.head.tokenizer))
    app.toggle(key="tour").set_value(False).run()
    assert not linked(app) & tour and "home-context" not in charts(app)
    put(workspace, own=chat(3))
    app = visit()
    assert linked(app) & tour == {"trace", "replay"} and charts(app) == ["home-own"]  # one's own trace instead
    own = next(row["trace_id"] for row in workspace.trace_rows() if not row["demo"])
    assert {link.proto.query_string for link in app.get("page_link") if link.proto.page in tour} == {f"trace={own}"}


def test_a_long_trace_is_drawn_with_few_points_that_keep_both_ends() -> None:
    assert thinned(range(1_000)) == sorted(set(thinned(range(1_000)))) and len(thinned(range(1_000))) == 40
    assert (thinned(range(1_000))[0], thinned(range(1_000))[-1]) == (0, 999) and thinned([5, 6]) == [5, 6] and thinned([]) == []


@pytest.mark.usefixtures("no_demo", "came_by_the_link")
def test_a_reviewer_cannot_search_the_folders_that_reviewers_do_not_see(
    visit: Visit, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret-folder").mkdir()
    (tmp_path / "secret-folder" / "run.json").write_bytes(chat(3))
    import_paths([tmp_path / "secret-folder"], workspace)
    assert names(visit(find="secret-folder")) == ["run.json"]
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    assert names(visit(find="run")) == ["run.json"]
    app = visit(find="secret-folder")
    assert not app.exception and not [table for table in app.dataframe if "Name" in table.value]


@pytest.fixture
def goose_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which Goose kept one session, with a key in its prompt."""
    folder = tmp_path / "home" / ".local/share/goose/sessions"
    folder.mkdir(parents=True)
    said = (FIXTURES / "goose-session.jsonl").read_text().replace("count the rakes", f"use {KEY} to count the rakes")
    (folder / "s.jsonl").write_text(said)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return folder


def test_sessions_are_looked_for_only_by_a_browser_with_the_token(visit: Visit, goose_session: Path) -> None:
    app = visit()
    app.toggle(key="find-sessions").set_value(True).run()
    assert how_to_get_in() in [item.value for item in app.info]
    assert not any("First message" in frame.value for frame in app.dataframe)


@pytest.mark.usefixtures("came_by_the_link")
def test_a_session_of_this_computer_is_listed_scanned_and_imported(visit: Visit, goose_session: Path, workspace: Workspace) -> None:
    app = visit()
    app.toggle(key="find-sessions").set_value(True).run()
    listed = table_of(app, "sessions-goose")
    assert list(listed["Turns"]) == [2] and KEY not in listed["First message"].iloc[0]
    assert app.button(key="sessions-import").disabled
    app.session_state["sessions-goose"] = {"selection": {"rows": [0], "columns": []}}
    app.run()
    app.button(key="sessions-import").click().run()
    assert not app.exception
    (row,) = [row for row in workspace.trace_rows() if row["format"] == "goose-session"]
    assert KEY not in str(workspace.trace(row["trace_id"]).trace)
    assert any("API key" in item.value for item in app.caption)


@pytest.mark.usefixtures("came_by_the_link")
def test_sessions_outside_the_named_roots_are_not_offered(
    visit: Visit, goose_session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv(ROOTS_VARIABLE, str(tmp_path / "other"))
    app = visit()
    app.toggle(key="find-sessions").set_value(True).run()
    assert not app.exception and not any("First message" in frame.value for frame in app.dataframe)


def test_the_report_says_for_each_file_how_it_was_read_and_what_was_not(visit: Visit) -> None:
    files = [(name, (FIXTURES / name).read_bytes()) for name in ("qwen-code.jsonl", "generic_human_ai.jsonl", "copilot-events.jsonl")]
    app = upload(visit(), *files)
    report = next(frame.value for frame in app.dataframe if "Confidence" in frame.value)
    facts = {row["Name"]: row for row in report.to_dict("records")}
    assert (facts["qwen-code.jsonl"]["Format"], facts["qwen-code.jsonl"]["Confidence"]) == ("qwen-code", "recognised")
    assert [facts["copilot-events.jsonl"][key] for key in ("Turns", "Calls", "Results", "Not read")] == [2, 2, 2, "nothing"]
    assert "ui_telemetry" in facts["qwen-code.jsonl"]["Not read"]
    assert facts["generic_human_ai.jsonl"]["Confidence"] == "guessed"


def test_chosen_rows_can_be_replayed_and_compared(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3), two=chat(4))
    app = choose_rows(visit(), 0, 1)
    ids = [row["trace_id"] for row in workspace.trace_rows()]
    found = {link.page: parse_qs(link.query_string) for link in app.get("page_link")}
    assert found["growth"]["traces"] == [",".join(ids)] and found["replay"]["trace"] == [ids[0]]


def test_enter_finds_its_row_also_in_a_sorted_table() -> None:
    rows = [{"trace_id": f"t-{n}", "name": name, "tokens": 1_000 + n, "turns": 5} for n, name in enumerate(("a", "b", "b"))]
    assert row_with(rows, ["Open", "b", "5", "1,002"], 0)["trace_id"] == "t-2"
    assert row_with(rows, ["Open", "a", "5", "1,000"], 2)["trace_id"] == "t-0" and row_with(rows, ["?"], 1)["trace_id"] == "t-1"


@pytest.mark.usefixtures("came_by_the_link")
def test_reviewer_mode_offers_no_search_for_sessions(visit: Visit, goose_session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    app = visit()
    assert not app.exception and "find-sessions" not in [toggle.key for toggle in app.toggle]
