"""The audit page: nothing yet, one case, verdicts, filters, links, files, the store's check, and hostile text."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.audit.exchange import audit_bytes
from pamer_lab.audit.labels import current, sample
from pamer_lab.audit.tables import SELECTIONS
from pamer_lab.controller.router import Candidate, SelectionRecord
from pamer_lab.errors import StorageError
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.redaction import Scan
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.hindsight import Rule, hindsight_labels, labelled
from pamer_lab.runs.timeline import lay_out
from pamer_lab.trajectory.values import Label
from pamer_lab.ui.audit.case import CHECKS, VIEWS
from pamer_lab.ui.audit.review import DOUBTS, NAMES
from pamer_lab.ui.audit.tools import PARTS as TOOLS
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit, chat, holds, linked, put, says, submit, table_of, texts
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


def verdict(app: AppTest, number: int) -> Any:
    """The button of a verdict."""
    return next(button for button in app.button if str(button.key).startswith(f"verdict-{number}-"))


def wanted(app: AppTest) -> Any:
    """The box of the steps that the reviewer would have chosen."""
    return next(box for box in app.multiselect if str(box.key).startswith("wanted-"))


def frame(app: AppTest, column: str) -> Any:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def marked(app: AppTest, sign: str) -> list[bool]:
    """For each row of the queue, whether it bears a sign."""
    return [any(sign in str(cell) for cell in row) for row in table_of(app, "queue").to_numpy().tolist()]


@pytest.mark.usefixtures("recorded")
def test_a_fresh_install_has_recorded_selections_to_audit(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE)
    assert not app.exception and not app.error
    assert CHECKS["equal"][0] in texts(app) and ":gray-badge[demo]" in texts(app)
    version, now = workspace.database.rows(SELECTIONS)[0]["table_version"], workspace.database.version(MEMORIES)
    assert says(app, version, now)
    later = [row | {"table_version": 10_000} for row in workspace.database.rows(SELECTIONS)]
    workspace.database.upsert(SELECTIONS, later)
    app = visit(PAGE)
    assert says(app, 10_000) and not says(app, 10_000, now)


def test_a_workspace_without_selections_offers_one_click_that_makes_some(visit: Visit, workspace: Workspace) -> None:
    put(workspace, run=chat(50))
    app = visit(PAGE)
    assert not app.exception
    assert len(app.info) == 1 and "queue" not in {str(frame.proto.id).rpartition("-")[2] for frame in app.dataframe}
    assert not app.button(key="audit_run").disabled
    assert says(app, "pamer+", 50)


@pytest.mark.usefixtures("no_demo")
def test_without_traces_it_points_to_the_traces_page(visit: Visit) -> None:
    app = visit(PAGE)
    assert len(app.info) == 1 and "traces" in linked(app)
    assert "audit_run" not in {button.key for button in app.button}


def test_without_heads_it_says_why_nothing_can_be_selected(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pamer_lab.probes.registry.PACKAGED", tmp_path)
    put(workspace, run=chat(5))
    app = visit(PAGE)
    assert says(app, "pamer+", "SmolLM2-135M-Instruct")
    assert "audit_run" not in {button.key for button in app.button}


def test_a_case_shows_what_was_chosen_and_nearly_chosen_with_its_hash_check(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    row = next(row for row in rows if row["near_misses"])
    app = visit(PAGE, selection=row["audit_id"])
    assert not app.exception
    assert says(app, row["turn"]) and says(app, len(rows))
    assert says(app, f"({len(row['near_misses'])})")
    assert CHECKS["equal"][0] in texts(app)
    assert says(app, row["table_version"], workspace.database.version(MEMORIES))
    step = row["near_misses"][0]["step"]
    assert any(f"Document D{step:04d}" in code.value for code in app.code)
    app.segmented_control(key="look").set_value(VIEWS[1]).run()
    assert step in list(frame(app, "Rank")["Step"])
    app.segmented_control(key="look").set_value(VIEWS[2]).run()
    assert any("Who founded the museum?" in code.value for code in app.code)


def test_a_verdict_is_kept_and_the_next_unreviewed_selection_opens(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = named(visit(PAGE, selection=rows[0]["audit_id"]))
    wanted(app).set_value([0, 1])
    verdict(app, 2).click().run()
    (review,) = ReviewStore(workspace.database).all()
    assert (review.audit_id, review.reviewer, review.verdict, review.steps) == (rows[0]["audit_id"], "Ada", "missing evidence", (0, 1))
    assert app.query_params["selection"] in (rows[1]["audit_id"], [rows[1]["audit_id"]])
    assert says(app, 1, len(rows))
    app.button(key="Previous selection").click().run()
    assert says(app, NAMES["missing evidence"], 1)
    verdict(app, 1).click().run()
    assert [entry.revision for entry in ReviewStore(workspace.database).history(rows[0]["audit_id"])] == [0, 1]


def test_filters_stand_in_the_link_and_show_what_reviewers_disagree_on(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    reviews = ReviewStore(workspace.database)
    reviews.save(rows[2]["audit_id"], "Ada", "right")
    reviews.save(rows[2]["audit_id"], "Bo", "wrong step", (1,))
    app = visit(PAGE, show="reviewers disagree")
    assert list(table_of(app, "queue")["Turn"]) == [rows[2]["turn"]]
    assert marked(app, "≠") == [True]
    assert 1 in frame(app, "Kappa").iloc[0].tolist()
    app.selectbox(key="show").set_value("not right").run()
    app.selectbox(key="outcome").set_value("refused").run()
    assert not app.exception
    assert len(app.info) == 1 or marked(app, "✕")


def test_the_last_verdict_says_that_everything_is_reviewed_and_leaves_the_case_open(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    for row in rows[1:]:
        ReviewStore(workspace.database).save(row["audit_id"], "Ada", "right")
    app = named(visit(PAGE, show="unreviewed"))
    assert len(table_of(app, "queue")) == 1 and not app.info
    verdict(app, 1).click().run()
    assert len(app.info) == 1 and not says(app, "0 of 0") and says(app, rows[0]["turn"])
    assert verdict(app, 1) and not app.exception


def test_a_note_waits_for_its_verdict_while_others_are_open(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = named(visit(PAGE, selection=rows[0]["audit_id"]))
    app.session_state["note-text"] = "of another"  # as where keys come faster than the page is drawn
    app.button(key="note-open").click().run()
    assert app.text_area(key="note-text").value == ""
    app.text_area(key="note-text").set_value("look at step 3")
    submit(app, "note-form")
    assert "look at step 3" in texts(app) and not ReviewStore(workspace.database).all()
    app.button(key="Next selection").click().run()
    assert "look at step 3" not in texts(app)
    assert marked(app, "✎")[0]
    app.button(key="Previous selection").click().run()
    assert "look at step 3" in texts(app)
    verdict(app, 1).click().run()
    (review,) = ReviewStore(workspace.database).all()
    assert review.note == "look at step 3" and not any(marked(app, "✎"))


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
    submit(app, "note-form")
    assert not app.exception and "the disk is full" in app.error[0].value
    assert "look at step 3" in texts(app)


def test_links_to_what_is_not_here_say_so(visit: Visit, rows: list[dict[str, Any]]) -> None:
    app = visit(PAGE, selection="a-0000000000000000", run="r-none")
    warned = [warning.value for warning in app.warning]
    assert any("a-0000000000000000" in text for text in warned) and any("` r-none `" in text for text in warned)
    assert not app.exception


def test_an_exported_file_comes_back_and_a_wrong_one_is_answered_in_a_sentence(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace
) -> None:
    ReviewStore(workspace.database).save(rows[0]["audit_id"], "Bo", "right")
    body = audit_bytes(workspace.database, ".jsonl", Scan("keys"))[0].replace(b'"reviewer": "Bo"', b'"reviewer": "Cy"')
    app = visit(PAGE, part=TOOLS[1])
    assert {button.label for button in app.download_button} >= {"CSV", "JSONL", "PARQUET"}
    app.file_uploader[0].set_value(("more.jsonl", body, "application/jsonl")).run()
    assert holds(app.success[0].value, 0, 1) and {review.reviewer for review in ReviewStore(workspace.database).all()} == {"Bo", "Cy"}
    app.file_uploader[0].set_value(("bad.jsonl", b"{broken", "application/jsonl")).run()
    assert not app.exception and "bad.jsonl" in app.error[0].value


def test_a_large_upload_is_read_in_a_process_of_its_own(
    visit: Visit, rows: list[dict[str, Any]], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ReviewStore(workspace.database).save(rows[0]["audit_id"], "Bo", "right")
    body = audit_bytes(workspace.database, ".jsonl", Scan("keys"))[0].replace(b'"reviewer": "Bo"', b'"reviewer": "Cy"')
    monkeypatch.setattr("pamer_lab.ui.audit.data.AT_ONCE", 10)
    monkeypatch.setattr("pamer_lab.ui.audit.data.import_bytes", lambda *_: pytest.fail("read in the page's process"))
    app = visit(PAGE, part=TOOLS[1])
    app.file_uploader[0].set_value(("more.jsonl", body, "application/jsonl")).run()
    assert holds(app.success[0].value, 0, 1) and {review.reviewer for review in ReviewStore(workspace.database).all()} == {"Bo", "Cy"}
    app.file_uploader[0].set_value(("bad.jsonl", b"{broken, and longer", "application/jsonl")).run()
    assert not app.exception and "bad.jsonl" in app.error[0].value


def test_the_stores_check_tells_of_a_damaged_block(visit: Visit, rows: list[dict[str, Any]], workspace: Workspace) -> None:
    app = visit(PAGE, part=TOOLS[2], check="true")
    assert len(app.success) == 1 and not app.error and says(app, "memories", workspace.database.version(MEMORIES))
    stored = workspace.database.rows(BLOCKS)[0]
    workspace.database.upsert(BLOCKS, [stored | {"body": b"[]"}])
    app = visit(PAGE, part=TOOLS[2], check="true")
    assert "pamer-lab memory check --repair" in app.error[0].value and not app.success
    assert any(stored["raw_hash"] in frame.value.to_numpy().ravel().tolist() for frame in app.dataframe)


def test_hostile_text_reaches_the_page_only_as_text(visit: Visit, workspace: Workspace) -> None:
    near = (Candidate(EVIL, 0, 0.5, 1),)
    record = SelectionRecord("s", 2, 1, EVIL, EVIL, EVIL, EVIL, "refused", EVIL, near, (EVIL,), (0,), EVIL, near, "miss", (0,), 1, 2)
    workspace.add_traces([long_trace(3, trace_id="t-evil")], profile_tokens(load_profile("embedded")))
    AuditStore(workspace.database, run_id="r-evil", trace_id="t-evil").record(record)
    ReviewStore(workspace.database).save(AuditStore(workspace.database).rows()[0]["audit_id"], EVIL, "right", (), EVIL)
    for look in VIEWS:
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
    app = visit(PAGE, part=TOOLS[1])
    left_in = app.warning[0].value
    assert holds(left_in, 1, "e-mail address", 1)
    app.segmented_control(key="audit-redact").set_value("all").run()
    assert holds(app.warning[0].value, 1, "e-mail address", 1) and app.warning[0].value != left_in
    body = audit_bytes(workspace.database, ".csv", Scan("all"))[0]
    assert b"ada@example.org" not in body and b"[redacted: e-mail address 1]" in body


@pytest.fixture
def chosen(workspace: Workspace) -> list[dict[str, Any]]:
    """Accepted selections, each with steps of its own, and one without."""
    workspace.add_traces([long_trace(12, trace_id="t-chosen")], profile_tokens(load_profile("embedded")))
    store = AuditStore(workspace.database, run_id="r-chosen", trace_id="t-chosen")
    rest = ("", (), "miss", (), 1, 2)
    for turn, steps in ((4, (1,)), (5, (2, 3)), (6, ()), (7, (0, 4)), (8, (5,))):
        outcome = "accepted" if steps else "empty"
        store.record(SelectionRecord("s", turn, 1, "query", "r", "a", "answer", outcome, "", (), (), steps, *rest))  # type: ignore[arg-type]
    return store.rows(run_id="r-chosen")


def test_the_steps_on_screen_are_stored_whichever_way_the_selection_was_reached(
    visit: Visit, chosen: list[dict[str, Any]], workspace: Workspace
) -> None:
    app = named(visit(PAGE, selection=chosen[0]["audit_id"]))
    seen = []
    for move, number in ((None, 1), (None, 2), ("Next selection", 1), ("Previous selection", 2), (None, 1)):
        if move:
            app.button(key=move).click().run()
        seen.append((str(app.query_params["selection"]).strip("[']"), tuple(wanted(app).value)))
        verdict(app, number).click().run()
    reviews = ReviewStore(workspace.database)
    assert [tuple(reviews.history(audit_id)[-1].steps) for audit_id, _ in seen] == [steps for _, steps in seen]
    by_id = {row["audit_id"]: tuple(row["steps"] or ()) for row in chosen}
    assert all(steps == by_id[audit_id] for audit_id, steps in seen) and len(dict(seen)) > 2
    assert all(review.as_shown for review in reviews.all())


def test_no_step_is_called_unnecessary_or_wrong_where_none_was_chosen(visit: Visit, chosen: list[dict[str, Any]]) -> None:
    app = named(visit(PAGE, selection=chosen[2]["audit_id"]))
    assert [verdict(app, number).disabled for number in (1, 2, 3, 4)] == [False, False, True, True]


def test_a_review_whose_steps_an_older_form_lost_is_marked_and_counts_first_as_its_verdict(
    visit: Visit, chosen: list[dict[str, Any]], workspace: Workspace
) -> None:
    reviews = ReviewStore(workspace.database)
    for row, said in zip(chosen, ("right", "missing evidence", "missing evidence", "wrong step", "unnecessary step"), strict=True):
        reviews.save(row["audit_id"], "Ada", said)
    app = named(visit(PAGE, selection=chosen[0]["audit_id"]))
    app.selectbox(key="outcome").set_value("").run()
    assert marked(app, "?") == [True, True, False, True, True]
    assert any(DOUBTS["steps lost"] in warning.value for warning in app.warning)
    assert says(app, 5, "1 right", "2 missing evidence", "1 unnecessary step", "1 wrong step")
    assert not says(app, "1.000") and says(app, "Exact match", "0.200", "5 reviews")
    assert [review.steps for review in reviews.all()] == [()] * 5
    verdict(app, 1).click().run()
    assert marked(app, "?")[0] is False


def test_there_is_no_verdict_to_press_until_a_name_is_given_and_then_no_field_to_type_it_into(
    visit: Visit, chosen: list[dict[str, Any]]
) -> None:
    def fields() -> tuple[bool, bool]:
        keys = [str(button.key) for button in app.button]
        return any(field.key == "reviewer" for field in app.text_input), any(key.startswith("verdict-") for key in keys)

    app = visit(PAGE)
    assert fields() == (True, False)
    named(app, "  Ada   L. ")
    assert fields() == (False, True) and says(app, "Ada L.")
    app.session_state["reviewer"] = "Ada"  # as where the button is pressed before the page without the field is drawn to its end
    app.button(key="reviewer-change").click().run()
    assert fields() == (True, False) and app.text_input(key="reviewer").value == ""


def test_a_person_goes_through_hindsight_labels_and_sees_the_agreement(workspace: Workspace, visit: Visit) -> None:
    trace = long_trace(8, trace_id="t-hindsight")
    tokens = profile_tokens(load_profile("embedded"))
    rule = Rule(horizon=2, minimum_tokens=0)
    labels = hindsight_labels(lay_out(trace, tokens), rule)
    workspace.add_traces([labelled(trace, labels)], tokens)
    app = visit(PAGE, reviewed="Hindsight labels")
    first = sample([(trace.trace_id, label) for label in labels], 1)[0][1]
    assert first.target == "compression" and all(says(app, f"Turn {first.t + later}") for later in range(rule.horizon))
    assert not app.exception and any(button.disabled for button in app.button if str(button.key).startswith("label-Agree"))
    named(app)
    next(button for button in app.button if str(button.key).startswith("label-Disagree")).click().run()
    assert not app.exception
    found = current(workspace.database)
    assert [(review.reviewer, review.agree, review.origin) for review in found] == [("Ada", False, rule.origin)]
    assert frame(app, "Agreed")["Reviews"].tolist()[-1] == 1


def test_a_label_that_asks_for_more_turns_than_there_are_shows_those_there_are(workspace: Workspace, visit: Visit) -> None:
    label = Label(6, "compression", True, "hindsight:horizon=999999999")
    workspace.add_traces([labelled(long_trace(8, trace_id="t-hindsight"), [label])], profile_tokens(load_profile("embedded")))
    app = visit(PAGE, reviewed="Hindsight labels")
    assert not app.exception and says(app, "Turn 6, the decision") and says(app, "Turn 7") and not says(app, "Turn 8")
