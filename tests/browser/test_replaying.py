"""What a reader does on the replay page: run a policy, click a mark, move a slider, use keys, send the link."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.workspace import Workspace
from tests.browser.driver import Visitor
from tests.runs.making import PARTS, estimated, long_trace

pytestmark = pytest.mark.browser

PAMER = "pamer:minimum=60:retained=1"


def test_a_mark_a_key_and_a_slider_open_what_they_promise_and_the_link_keeps_it(
    visitor: Visitor, stranger: Callable[..., Visitor], folder: Path
) -> None:
    _, run = (
        replay(long_trace(16, trace_id="t-browser"), policy, Workspace(folder), ReplayOptions(device="cpu", parts=PARTS))
        for policy in ("base", PAMER)
    )
    events = [turn.t for turn in run.turns if turn.action != "pass"]
    page = visitor.open(f"/replay?trace=t-browser&policies=base&policies={quote(PAMER)}&turn=0&policy={quote(PAMER)}")
    expect(page.locator(".st-key-turn input")).to_have_value("0")
    # The strip has one row of marks for base, then one for each kind of action of the policy, in the order of their first turns.
    actions = [turn.action for turn in run.turns]
    kind = actions[events[1]]
    row = page.locator(".st-key-strip .scatterlayer .trace").nth(1 + list(dict.fromkeys(actions)).index(kind))
    mark = row.locator(".point").nth(actions[: events[1]].count(kind))
    mark.click(force=True)
    expect(page.locator(".st-key-turn input")).to_have_value(str(events[1]))
    visitor.settle()
    page.locator(".st-key-ledger .nsewdrag").first.scroll_into_view_if_needed()
    ledger = page.locator(".st-key-ledger .nsewdrag").first.bounding_box()
    assert ledger is not None
    # Column 12 of 16, high above its last block: a click anywhere in a column counts.
    page.mouse.click(ledger["x"] + ledger["width"] * 12.6 / 16.2, ledger["y"] + ledger["height"] * 0.2)
    expect(page.locator(".st-key-turn input")).to_have_value("12")
    visitor.settle()
    mark.click(force=True)
    expect(page.locator(".st-key-turn input")).to_have_value(str(events[1]))
    visitor.settle()
    page.keyboard.press("j")
    expect(page.locator(".st-key-turn input")).to_have_value(str(events[1] + 1))
    visitor.settle()
    page.locator(".st-key-vote").get_by_role("slider").press("ArrowRight")
    changed = WhatIfRun(run).ask(Changes(vote=4)).changed_turns
    said = re.compile(rf"^{len(changed)} turns?\b")
    assert changed
    expect(page.get_by_text(said).first).to_be_visible()
    visitor.settle()
    assert {"vote=4", f"turn={events[1] + 1}"} <= set(page.url.partition("?")[2].split("&"))
    other = stranger()
    other.page.goto(page.url)
    expect(other.page.get_by_text(said).first).to_be_visible()
    expect(other.page.locator(".st-key-turn input")).to_have_value(str(events[1] + 1))


def test_a_run_is_started_with_the_button_and_opens_at_its_first_event(visitor: Visitor, folder: Path) -> None:
    replay(long_trace(450, words=8, trace_id="t-longer"), "base", Workspace(folder))
    page = visitor.open("/replay?trace=t-longer&policies=base&policies=periodic-summary:3&turn=2")
    page.locator(".st-key-run button").click()
    expect(page.get_by_role("radio", name="periodic-summary:3", checked=True).first).to_be_visible()
    store = RunStore(Workspace(folder))
    (made,) = [head for head in store.heads(trace_id="t-longer") if head.policy != "base"]
    first = next(turn.t for turn in store.turns(made.run_id) if turn.action != "pass")
    expect(page.locator(".st-key-turn input").first).to_have_value(str(first))


SHOWN = """() => {
    const plot = document.querySelector('.st-key-context .js-plotly-plot'), input = document.querySelector('.st-key-turn input');
    const headline = [...document.querySelectorAll('[data-testid=stMarkdown] p')].find(p => p.innerText.includes('actions fixed'));
    if (!plot?.calcdata || !input || !headline) return null;
    const number = text => Number((text.match(/[0-9][0-9,]*(?= turns?\\b|$)/) ?? ['0'])[0].replaceAll(',', ''));
    return [Math.max(...plot.calcdata.flat().map(point => point.x ?? 0)), number(input.ariaLabel), number(headline.innerText)];
}"""
"""The last turn in the chart, the last that can be opened, and the turns that the headline counts."""
TURNS = 12_000
"""So many that the run is still going on when the page has followed it twice."""


def test_chart_turn_limit_and_headline_follow_a_run_while_it_goes_on(stranger: Callable[..., Visitor], folder: Path) -> None:
    Workspace(folder).add_traces([long_trace(TURNS, words=8, trace_id="t-following")], estimated())
    page = stranger().open("/replay?trace=t-following&policies=periodic-summary:1")
    page.locator(".st-key-run button").click()
    before = [0, 0, 0]
    for going_on in (True, False):  # the second time the run may have ended
        page.wait_for_function(f"before => ({SHOWN})()?.every((now, place) => now > before[place])", arg=before)
        before = page.evaluate(SHOWN)
        assert not going_on or before[1] < TURNS - 1
    page.locator(".st-key-stop button").click()
    expect(page.locator(".st-key-stop")).to_have_count(0)
    (stopped,) = RunStore(Workspace(folder)).heads(trace_id="t-following")
    assert stopped.status == "cancelled" and stopped.trace_turns == TURNS


def test_the_browsers_back_leaves_the_page_in_one_press_however_many_turns_were_opened(
    stranger: Callable[..., Visitor], folder: Path
) -> None:
    for policy in ("base", "sliding-window:5", "periodic-summary:5"):
        replay(long_trace(8, trace_id="t-back"), policy, Workspace(folder))

    def open_turns(page: Page) -> None:
        for turn in "345":
            page.locator(".st-key-turn input").fill(turn)
            page.locator(".st-key-turn input").press("Enter")
            page.wait_for_url(re.compile(rf"turn={turn}"))
            visitor.settle()

    visitor = stranger()
    page = visitor.open("/replay?trace=t-back")
    open_turns(page)
    before = page.evaluate("history.length")
    page.get_by_test_id("stTopNavLink").filter(has_text="Audit").click()
    page.wait_for_url(re.compile("/audit"))
    visitor.settle()
    assert page.evaluate("history.length") == before + 1
    page.go_back()
    page.wait_for_url(re.compile("/replay.*turn=5"))
    expect(page.locator(".st-key-turn input")).to_have_value("5")
    visitor.settle()
    open_turns(page)
    page.go_back()
    page.wait_for_url("about:blank")


def test_a_key_pressed_after_the_trace_was_removed_in_another_tab_says_that_it_is_gone(visitor: Visitor, folder: Path) -> None:
    replay(long_trace(6, trace_id="t-removed"), "base", Workspace(folder))
    page = visitor.open("/replay?trace=t-removed&policies=base&turn=0")
    expect(page.locator(".st-key-turn input")).to_have_value("0")
    Workspace(folder).remove_trace("t-removed")
    page.keyboard.press("j")
    expect(page.get_by_test_id("stAlert").filter(has_text="that you had open")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
