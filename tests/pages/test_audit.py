"""The audit page: nothing yet, one case, verdicts, filters, links, files, the store's check, and hostile text."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.audit.exchange import audit_bytes
from pamer_lab.audit.tables import SELECTIONS
from pamer_lab.controller.router import Candidate
from pamer_lab.controller.selection_record import SelectionRecord
from pamer_lab.errors import StorageError
from pamer_lab.memory.schema import BLOCKS
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.redaction import Scan
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit, chat, put, texts
from tests.runs.making import PARTS, SMALL, long_trace

PAGE = "pages/audit.py"
EVIL = "<script>alert(1)</script> ![x](https://outside.example/a.png) [l](javascript:1) \x1b[31m \u202e :red[x] $y$"


@pytest.fixture
def rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Selections of a PaMER+ run whose heads need no weights."""
    run = replay(long_trace(18, trace_id="t-audit"), f"pamer+{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))
    return AuditStore(workspace.database).rows(run_id=run.run_id)


def named(app: AppTest, name: str = "Ada") -> AppTest:
    app.text_input(key="reviewer").set_value(name).run()
    return app


def frame(app: AppTest, column: str) -> Any:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


@pytest.mark.usefixtures("recorded")
def test_a_fresh_install_has_recorded_selections_to_audit(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE)
    assert not app.exception and not app.error
    assert "the same bytes as in the uploaded trace" in texts(app) and ":gray-badge[demo]" in texts(app)
    later = [row | {"table_version": 10_000} for row in workspace.database.rows(SELECTIONS)]
    workspace.database.upsert(SELECTIONS, later)
    assert "of the workspace it was recorded in" in texts(visit(PAGE))


def test_a_workspace_without_selections_offers_one_click_that_makes_some(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(50))
    app = visit(PAGE)
    assert not app.exception
    assert "There are no selections yet" in texts(app)
    assert app.button(key="audit_run").label == "Replay it with pamer+"
    assert "**pamer+** over" in texts(app) and "about" in texts(app)


@pytest.mark.usefixtures("no_demo")
def test_without_traces_it_points_to_the_traces_page(visit: Visit) -> None:
    app = visit(PAGE)
    assert "There are no selections yet" in texts(app)
    assert "audit_run" not in {button.key for button in app.button}


def test_without_heads_it_says_why_nothing_can_be_selected(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pamer_lab.probes.registry.PACKAGED", tmp_path)
    put(workspace, run=chat(5))
    app = visit(PAGE)
    assert "no heads for" in texts(app)
    assert "audit_run" not in {button.key for button in app.button}


def test_a_case_shows_what_was_chosen_and_nearly_chosen_with_its_hash_check(visit: Visit, rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["near_misses"])
    app = visit(PAGE, selection=row["audit_id"])
    assert not app.exception
    said = texts(app)
    assert f"**Turn {row['turn']}** of" in said and f"**{len(rows)} selections**" in said
    assert f"**Nearly chosen** ({len(row['near_misses'])})" in said
    assert "the same bytes as in the uploaded trace" in said
    assert f"read at version {row['table_version']}, now" in said
    step = row["near_misses"][0]["step"]
    assert any(f"Document D{step:04d}" in code.value for code in app.code)
    app.segmented_control(key="look").set_value("All candidates").run()
    assert step in list(frame(app, "Rank")["Step"])
    app.segmented_control(key="look").set_value("Query").run()
    assert any("Who founded the museum?" in code.value for code in app.code)


def test_a_verdict_is_kept_and_the_next_unreviewed_selection_opens(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = visit(PAGE, selection=rows[0]["audit_id"])
    assert app.button(key="verdict-1").disabled
    named(app)
    app.multiselect(key="wanted").set_value([0, 1])
    app.button(key="verdict-2").click().run()
    (review,) = ReviewStore(workspace.database).all()
    assert (review.audit_id, review.reviewer, review.verdict, review.steps) == (rows[0]["audit_id"], "Ada", "missing evidence", (0, 1))
    assert app.query_params["selection"] in (rows[1]["audit_id"], [rows[1]["audit_id"]])
    assert f"reviewed by you: **1 of {len(rows)}**" in texts(app)
    app.button(key="Previous selection").click().run()
    assert "You said **Missing evidence** (revision 1" in texts(app)
    app.button(key="verdict-1").click().run()
    assert [entry.revision for entry in ReviewStore(workspace.database).history(rows[0]["audit_id"])] == [0, 1]


def test_filters_stand_in_the_link_and_show_what_reviewers_disagree_on(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    reviews = ReviewStore(workspace.database)
    reviews.save(rows[2]["audit_id"], "Ada", "right")
    reviews.save(rows[2]["audit_id"], "Bo", "wrong step", (1,))
    app = visit(PAGE, show="reviewers disagree")
    assert "**1 selection**" in texts(app) and list(frame(app, "Said")["Turn"]) == [rows[2]["turn"]]
    assert "≠" in frame(app, "Said")["Said"].iloc[0]
    assert "1 in common" not in texts(app) and list(frame(app, "Kappa")["In common"]) == [1]
    app.selectbox(key="show").set_value("not right").run()
    app.selectbox(key="outcome").set_value("refused").run()
    assert "No selection fits these filters" in texts(app) or "**Turn" in texts(app)
    assert not app.exception


def test_the_last_verdict_says_that_everything_is_reviewed_and_leaves_the_case_open(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    for row in rows[1:]:
        ReviewStore(workspace.database).save(row["audit_id"], "Ada", "right")
    app = named(visit(PAGE, show="unreviewed"))
    assert "**1 selection**" in texts(app)
    app.button(key="verdict-1").click().run()
    said = texts(app)
    assert "Everything in this queue is reviewed" in said and "0 of 0" not in said and f"**Turn {rows[0]['turn']}**" in said
    assert not app.exception


def test_a_note_waits_for_its_verdict_while_others_are_open(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = named(visit(PAGE, selection=rows[0]["audit_id"]))
    app.button(key="note-open").click().run()
    app.text_area(key="note-text").set_value("look at step 3")
    next(button for button in app.button if button.label == "Keep it").click().run()
    assert "Note: look at step 3" in texts(app) and "saved with your verdict" in texts(app)
    app.button(key="Next selection").click().run()
    assert "look at step 3" not in texts(app)
    assert "✎" in frame(app, "Said")["Said"].iloc[0]
    app.button(key="Previous selection").click().run()
    assert "Note: look at step 3" in texts(app)
    app.button(key="verdict-1").click().run()
    (review,) = ReviewStore(workspace.database).all()
    assert review.note == "look at step 3" and "✎" not in frame(app, "Said")["Said"].iloc[0]


def test_a_note_that_the_store_does_not_take_stays_and_says_why(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ReviewStore(workspace.database).save(rows[0]["audit_id"], "Ada", "right")
    app = named(visit(PAGE, selection=rows[0]["audit_id"]))
    app.button(key="note-open").click().run()

    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full; make room and save again")

    monkeypatch.setattr(ReviewStore, "save", full)
    app.text_area(key="note-text").set_value("look at step 3")
    next(button for button in app.button if button.label == "Keep it").click().run()
    assert not app.exception and "the disk is full" in app.error[0].value
    assert "Note: look at step 3" in texts(app)


def test_links_to_what_is_not_here_say_so(visit: Visit, rows: list[dict[str, Any]]) -> None:
    app = visit(PAGE, selection="a-0000000000000000", run="r-none")
    said = texts(app)
    assert "a-0000000000000000" in said and "asks for the run ` r-none `, which has no selection here" in said
    assert not app.exception


def test_an_exported_file_comes_back_and_a_wrong_one_is_answered_in_a_sentence(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    ReviewStore(workspace.database).save(rows[0]["audit_id"], "Bo", "right")
    body = audit_bytes(workspace.database, ".jsonl", Scan("keys"))[0].replace(b'"reviewer": "Bo"', b'"reviewer": "Cy"')
    app = visit(PAGE, part="Export and import")
    assert {button.label for button in app.download_button} >= {"CSV", "JSONL", "PARQUET"}
    app.file_uploader[0].set_value(("more.jsonl", body, "application/jsonl")).run()
    assert "0 selections and 1 review were new" in texts(app)
    app.file_uploader[0].set_value(("bad.jsonl", b"{broken", "application/jsonl")).run()
    assert not app.exception and "cannot be read as an exported audit" in app.error[0].value


def test_the_stores_check_tells_of_a_damaged_block(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = visit(PAGE, part="Is the store whole?", check="true")
    assert "every memory is whole" in texts(app) and "table memories: version" in texts(app)
    stored = workspace.database.rows(BLOCKS)[0]
    workspace.database.upsert(BLOCKS, [stored | {"body": b"[]"}])
    app = visit(PAGE, part="Is the store whole?", check="true")
    assert "not everything is whole" in app.error[0].value
    assert stored["raw_hash"] in set(frame(app, "Which")["Which"])


def test_hostile_text_reaches_the_page_only_as_text(visit: Visit, workspace: Workspace) -> None:
    near = (Candidate(EVIL, 0, 0.5, 1),)
    record = SelectionRecord("s", 2, 1, EVIL, EVIL, EVIL, EVIL, "refused", EVIL, near, (EVIL,), (0,), EVIL, near, "miss", (0,), 1, 2)
    workspace.add_traces([long_trace(3, trace_id="t-evil")], profile_tokens(load_profile("embedded")))
    AuditStore(workspace.database, run_id="r-evil", trace_id="t-evil").record(record)
    ReviewStore(workspace.database).save(AuditStore(workspace.database).rows()[0]["audit_id"], EVIL, "right", (), EVIL)
    for look in ("Chosen and nearly chosen", "All candidates", "Query", "Router's answer"):
        app = visit(PAGE, look=look)
        assert not app.exception
        spoken = "\n".join(str(element.value) for kind in (app.title, app.info, app.warning, app.error) for element in kind)
        assert "<script>" not in spoken
        for element in (*app.markdown, *app.caption):
            assert "<script>" not in element.value or f"` {EVIL[:10]}" in element.value
    assert any("<script>" in code.value for code in app.code)


def test_secrets_in_what_an_export_would_hold_are_shown_with_their_place(
    visit: Visit, workspace: Workspace, rows: list[dict[str, Any]]
) -> None:
    ReviewStore(workspace.database).save(rows[0]["audit_id"], "Ada", "right", note="write to ada@example.org")
    app = visit(PAGE, part="Export and import")
    assert "1 e-mail address in 1 place **left in**" in app.warning[0].value
    app.segmented_control(key="audit-redact").set_value("all").run()
    assert "1 e-mail address in 1 place replaced" in app.warning[0].value
    body = audit_bytes(workspace.database, ".csv", Scan("all"))[0]
    assert b"ada@example.org" not in body and b"[redacted: e-mail address 1]" in body
