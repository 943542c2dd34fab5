"""What a reviewer does: give verdicts and a note by key, send the link, switch the theme; and what hostile evidence cannot do."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import expect

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.ui.audit.case import CHECKS
from pamer_lab.ui.replay.turn_view import VIEWS
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_uploads
from tests.browser.driver import Visitor
from tests.browser.test_reading import hostile
from tests.runs.making import PARTS, SMALL, long_trace

pytestmark = pytest.mark.browser

POLICY = f"pamer+{SMALL}"
DARK = "rgb(22, 25, 29)"


def test_verdicts_and_a_note_are_given_by_key_and_the_link_keeps_the_place(
    visitor: Visitor, stranger: Callable[..., Visitor], folder: Path
) -> None:
    lab = Workspace(folder)
    run = replay(long_trace(16, trace_id="t-keys"), POLICY, lab, ReplayOptions(device="cpu", parts=PARTS))
    rows = AuditStore(lab.database).rows(run_id=run.run_id)
    first, second = rows[0]["audit_id"], rows[1]["audit_id"]
    page = visitor.open(f"/audit?run={run.run_id}&selection={first}")
    name = page.locator(".st-key-reviewer input")
    name.fill("Ada")
    name.press("Enter")
    expect(page.get_by_text(re.compile(rf"\b0 of {len(rows)}\b")).first).to_be_visible()
    visitor.settle()
    page.locator("h1").click()
    page.keyboard.press("n")
    note = page.locator(".st-key-note-text textarea")
    note.fill("the date is missing")
    note.press("Control+Enter")
    expect(page.get_by_text("the date is missing").first).to_be_visible()
    visitor.settle()
    page.locator("h1").click()
    page.keyboard.press("1")
    expect(page.get_by_text(re.compile(rf"\b1 of {len(rows)}\b")).first).to_be_visible()
    visitor.settle()
    assert f"selection={second}" in page.url
    page.locator("h1").click()
    page.keyboard.press("j")
    page.wait_for_url(re.compile(rows[2]["audit_id"]))
    visitor.settle()
    page.keyboard.press("k")
    page.wait_for_url(re.compile(second))
    visitor.settle()
    (review,) = [review for review in ReviewStore(lab.database).all() if review.audit_id == first]
    assert (review.reviewer, review.verdict, review.note) == ("Ada", "right", "the date is missing")
    assert "Ada" not in page.url
    other = stranger()
    other.page.goto(page.url)
    expect(other.page.get_by_text(f"Turn {rows[1]['turn']}", exact=True).first).to_be_visible()
    other.settle()
    other.page.emulate_media(color_scheme="dark")
    other.page.wait_for_function(f"getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === '{DARK}'")
    expect(other.page.get_by_text(CHECKS["equal"][0]).first).to_be_visible()


def long_hostile() -> bytes:
    """The hostile trace with blocks enough to be compressed, chosen from and audited."""
    given = json.loads(hostile())
    evil = given["messages"][3]["content"]
    more = []
    for number in range(10):
        call = given["messages"][2]["tool_calls"][0] | {"id": f"h{number}"}
        more += [
            {"role": "assistant", "content": f"{evil} {number}", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"h{number}", "name": "x", "content": f"{evil} Document D{number:04d}"},
        ]
    return json.dumps(given | {"messages": [*given["messages"][:4], *more, given["messages"][4]], "model": "hostile long"}).encode()


def test_a_hostile_trace_is_only_text_on_every_page_that_shows_its_runs(visitor: Visitor, folder: Path) -> None:
    lab = Workspace(folder)
    trace_id = import_uploads([("<img src=x onerror=alert(1)>.json", long_hostile())], lab).traces[0]["trace_id"]
    run = replay(trace_id, POLICY, lab, ReplayOptions(device="cpu", parts=PARTS))
    assert any(turn.action != "pass" for turn in run.turns) and AuditStore(lab.database).rows(run_id=run.run_id)
    turn = next(turn.t for turn in run.turns if turn.action == "compress")
    dialogs: list[str] = []
    visitor.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    place = f"trace={trace_id}&policies=base&policies={POLICY.replace('+', '%2B')}&policy={POLICY.replace('+', '%2B')}"
    for path in (
        "/?find=hostile",
        f"/replay?{place}&turn={turn}&view={quote_plus(VIEWS[2])}",
        f"/replay?{place}&turn={turn + 1}&view={quote_plus(VIEWS[1])}&more=Evidence",
        f"/growth?policies=base&traces={trace_id}",
        f"/audit?run={run.run_id}",
        f"/audit?run={run.run_id}&look=Query",
    ):
        page = visitor.open(path)
        assert page.evaluate("window.hacked") is None, path
        strays = page.locator("main img, .stApp iframe, .stApp a[href*='outside'], .stApp a[href^='javascript'], .stApp script")
        assert strays.count() == 0, path
    expect(page.get_by_text("<script>window.hacked = 1</script>").first).to_be_visible()
    assert dialogs == []
