"""What a reviewer does: give verdicts and a note by key, send the link, switch the theme; and what hostile evidence cannot do."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Page, expect

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.controller.router import SelectionRecord
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
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
    page.wait_for_url(re.compile(second))
    visitor.settle()
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


def selection(turn: int, steps: tuple[int, ...]) -> SelectionRecord:
    """An accepted selection."""
    return SelectionRecord("s", turn, 1, "query", "router", "agent", "answer", "accepted", "", (), (), steps, "", (), "miss", steps, 1, 2)


def steps_on_screen(page: Page) -> tuple[int, ...]:
    """The steps in the box, as the reviewer sees them."""
    chips = page.locator("[class*=st-key-wanted] .react-aria-ComboBox [data-tag]")
    return tuple(sorted(int(text.split(":")[0]) for text in chips.all_inner_texts()))


def open_selection(page: Page) -> str:
    found = re.search(r"selection=(a-[0-9a-f]+)", page.url)
    assert found
    return found[1]


def test_what_is_on_screen_is_what_is_stored_however_a_selection_was_reached(stranger: Callable[..., Visitor], folder: Path) -> None:
    lab = Workspace(folder)
    lab.add_traces([long_trace(30, trace_id="t-ways")], profile_tokens(load_profile("embedded")))
    store = AuditStore(lab.database, run_id="r-ways", trace_id="t-ways")
    store.record_all([selection(turn, (turn % 3,) if turn % 4 else (turn % 3, turn - 1)) for turn in range(4, 16)])
    rows = store.rows(run_id="r-ways")
    chosen = {row["audit_id"]: tuple(row["steps"] or ()) for row in rows}
    visitor = stranger()
    page = visitor.open(f"/audit?run=r-ways&selection={rows[1]['audit_id']}")
    name = page.locator(".st-key-reviewer input")
    name.click()
    page.keyboard.type("Ad1")  # no verdict is offered yet, so a digit belongs to the name
    assert page.locator("[class*=st-key-verdict-]").count() == 0
    page.reload()
    visitor.settle()
    expect(name).to_have_value("Ad1")  # what was typed outlives a refresh
    name.press("Enter")  # and is taken as it is
    page.locator(".st-key-reviewer-change button").click()  # at once, perhaps before the page is drawn to its end
    expect(name).to_have_value("")
    visitor.settle()
    name.click()
    page.keyboard.type("Ada")
    page.locator(".st-key-reviewer-start button").click()
    expect(page.get_by_text(re.compile(rf"\b0 of {len(rows)}\b")).first).to_be_visible()
    visitor.settle()
    page.keyboard.press("1")  # a key right after the name is a verdict and not a letter of it
    page.wait_for_url(re.compile(rows[2]["audit_id"]))
    visitor.settle()
    assert {one.reviewer for one in ReviewStore(lab.database).all() if one.audit_id in chosen} == {"Ada"}
    page.reload()
    visitor.settle()
    expect(page.locator(".st-key-reviewer-change")).to_be_visible()  # a refresh does not forget the name
    visitor.settle()
    seen: dict[str, tuple[int, ...]] = {}

    def judge(*, key: str = "1", button: str = "") -> None:
        """Give a verdict, having written down what the box shows."""
        case = open_selection(page)
        seen[case] = steps_on_screen(page)
        if button:
            page.locator(f"[class*=st-key-verdict-{button}-] button").first.click()
        else:
            page.keyboard.press(key)
        page.wait_for_url(lambda url: case not in url)
        visitor.settle()

    def move(key: str) -> None:
        case = open_selection(page)
        page.keyboard.press(key)
        page.wait_for_url(lambda url: case not in url)
        visitor.settle()

    judge(key="1")  # a link, and the verdict's key
    judge(key="2")  # where a verdict led
    move("j")
    judge(key="3")
    move("j")
    move("j")
    move("k")
    judge(button="1")
    page.locator("[class*=st-key-wanted] input").press("Backspace")  # the last step goes
    page.locator("[class*=st-key-wanted] input").press("Escape")
    visitor.settle()
    page.locator("h1").click()
    judge(key="4")
    assert len(seen) == 5
    stored = {one.audit_id: one.steps for one in ReviewStore(lab.database).all() if one.audit_id in seen}
    assert stored == seen
    assert [seen[case] for case in list(seen)[:4]] == [chosen[case] for case in list(seen)[:4]]


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
