"""The home page: a fresh start, filters, uploads good and bad, paths, removal."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.runs.engine import replay
from pamer_lab.ui.traces.home import _newcomer, thinned
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import Visit, chat, put, texts


def library(app: AppTest) -> Any:
    """The table of traces; an import report may have tables above it."""
    return next(table.value for table in app.dataframe if "Open" in table.value)


def names(app: AppTest) -> list[str]:
    return list(library(app)["Name"])


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    return app.file_uploader[0].set_value([(name, data, "application/json") for name, data in files]).run()


def test_a_fresh_start_shows_the_demo_traces_marked_as_demo(visit: Visit, workspace: Workspace) -> None:
    app = visit()
    assert not app.exception
    assert set(library(app)["Demo"]) == {"demo"}
    assert all(row["demo"] for row in workspace.trace_rows())


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_says_what_to_do_next(visit: Visit) -> None:
    app = visit()
    assert not app.exception
    assert app.info
    assert len(app.dataframe) == 0


def test_an_upload_is_read_detected_and_listed(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)), ("packed.json.gz", gzip.compress(chat(4))))
    assert not app.exception
    assert "`openai-chat`" in app.success[0].value
    assert {"run.json", "packed.json.gz"} <= set(names(app))
    assert {row["turns"] for row in workspace.trace_rows() if not row["demo"]} == {3, 4}


def test_what_was_uploaded_is_one_click_away_and_the_next_page_opens_it(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)))
    own = next(row["trace_id"] for row in workspace.trace_rows() if not row["demo"])
    links = [link.proto for link in app.get("page_link") if f"trace={own}" in link.proto.query_string]
    assert [link.page for link in links] == ["trace", "replay"]
    app.switch_page("pages/trace.py").run()
    assert not app.exception and app.query_params["trace"] == own


def test_the_same_bytes_are_known_the_second_time(visit: Visit, workspace: Workspace) -> None:
    app = upload(visit(), ("run.json", chat(3)))
    count = len(workspace.trace_rows())
    app = upload(app, ("renamed.json", chat(3)))
    assert len(workspace.trace_rows()) == count


def test_a_bad_file_is_named_with_its_reason_and_the_others_are_read(visit: Visit) -> None:
    app = upload(visit(), ("cut.json", chat(2)[:-20]), ("good.json", chat(2)))
    assert not app.exception
    assert len(app.success) == len(app.error) == 1
    refused = next(table.value for table in app.dataframe if "Why" in table.value).iloc[0]
    assert refused["File"] == "cut.json"
    assert "cut off" in refused["Why"]
    assert "line 1" in refused["Where"]


def test_an_upload_named_like_a_path_is_only_a_name(visit: Visit, workspace: Workspace, tmp_path: Path) -> None:
    app = upload(visit(), ("../../escape/run.json", chat(2)))
    assert not app.exception
    assert "run.json" in names(app)
    assert not list(tmp_path.rglob("run.json"))


def test_event_files_of_one_folder_are_one_source(visit: Visit) -> None:
    app = visit()
    app.button_group(key="way").set_value("A folder").run()
    app = upload(app, ("run/event-00001-b.json", b"{}"), ("run/event-00000-a.json", b"{}"))
    assert not app.exception
    assert list(next(table.value for table in app.dataframe if "Why" in table.value)["File"]) == ["run"]


def test_a_path_on_the_server_is_imported(visit: Visit, tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "run.jsonl").write_bytes(chat(5) + b"\n" + chat(6))
    app = visit()
    app.button_group(key="way").set_value("A path on the server").run()
    app.text_input(key="path").set_value(str(tmp_path / "run.jsonl"))
    next(button for button in app.button if button.label == "Import").click().run()
    assert "2 traces read" in texts(app)


def test_a_path_that_does_not_exist_is_a_sentence(visit: Visit, tmp_path: Path) -> None:
    app = visit()
    app.button_group(key="way").set_value("A path on the server").run()
    app.text_input(key="path").set_value(str(tmp_path / "nowhere"))
    next(button for button in app.button if button.label == "Import").click().run()
    assert not app.exception
    assert next(table.value for table in app.dataframe if "Why" in table.value).iloc[0]["Why"] == "does not exist"


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
    assert "No trace matches these filters" in texts(app)


def choose_rows(app: AppTest, *rows: int) -> AppTest:
    """As a click on rows of the table would."""
    key = app.dataframe[0].proto.id.split("-", 2)[2]
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


def test_the_tour_leads_to_a_block_that_is_there(workspace: Workspace) -> None:
    put(workspace, short=chat(3), long=chat(30))
    blocks = {row["name"]: _newcomer(row, {})[0][3]["block"] for row in workspace.trace_rows()}
    assert blocks == {"short.json": "2", "long.json": "7"}


def test_own_traces_keep_the_demo_away_until_it_is_asked_for(visit: Visit, workspace: Workspace) -> None:
    put(workspace, own=chat(2))
    app = visit()
    assert names(app) == ["own.json"]
    app.button(key="load-demo").click().run()
    assert len(names(app)) == 1 + sum(row["demo"] for row in workspace.trace_rows())
    assert len(names(app)) > 1


def test_a_workspace_that_cannot_be_read_is_a_sentence(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    for file in (workspace.path / "lance").rglob("*.manifest"):
        file.write_bytes(b"broken")
    app = visit()
    assert not app.exception
    assert any("cannot be" in error.value for error in app.error)


def test_each_trace_shows_how_its_context_grew_and_what_it_was_replayed_with(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(5))
    row = workspace.trace_rows()[0]
    replay(row["trace_id"], "sliding-window:3", workspace)
    table = library(visit())
    picture = list(table["Context"].iloc[0])
    assert len(picture) == 5 and picture == sorted(picture) and picture[-1] < row["tokens"]
    assert table["Replayed with"].iloc[0] == "sliding-window:3"


@pytest.mark.usefixtures("recorded")
def test_the_tour_opens_on_a_fresh_install_and_stays_away_once_there_are_own_traces(visit: Visit, workspace: Workspace) -> None:
    app = visit()
    links = len(app.get("page_link"))
    assert app.toggle(key="tour").value and links and app.get("plotly_chart")
    app.toggle(key="tour").set_value(False).run()
    assert not app.get("page_link") and not app.get("plotly_chart")
    put(workspace, own=chat(3))
    assert not visit().toggle(key="tour").value


def test_a_long_trace_is_drawn_with_few_points_that_keep_both_ends() -> None:
    assert thinned(range(1_000)) == sorted(set(thinned(range(1_000)))) and len(thinned(range(1_000))) == 40
    assert (thinned(range(1_000))[0], thinned(range(1_000))[-1]) == (0, 999) and thinned([5, 6]) == [5, 6] and thinned([]) == []
