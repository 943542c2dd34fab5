"""What only a browser shows: keys, Enter in a table, a link's target, marked search hits, the outline's open row."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from pamer_lab.runs.engine import replay
from pamer_lab.ui.shared.keys import KEYS
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.browser.conftest import Visitor
from tests.runs.making import long_trace

pytestmark = pytest.mark.browser


def test_a_link_scrolls_to_its_target_and_a_question_mark_lists_the_keys(visitor: Visitor, folder: Path) -> None:
    replay(long_trace(8, trace_id="t-target"), "base", Workspace(folder))
    page = visitor.open("/replay?trace=t-target&policies=base&at=more-tables")
    page.wait_for_function("document.documentElement.dataset.reached === 'more-tables'")
    expect(page.locator(".st-key-more-tables")).to_be_in_viewport()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert set(KEYS) >= {"J", "K", "?"}
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


def test_hits_are_marked_and_the_outline_shows_the_open_block(visitor: Visitor, folder: Path) -> None:
    import_demo(Workspace(folder))
    row = next(row for row in Workspace(folder).trace_rows() if row["name"].startswith("museum-case"))
    page = visitor.open(f"/trace?trace={row['trace_id']}&q=museum&block=60")
    page.wait_for_function("Number(document.documentElement.dataset.hits) > 0")
    assert page.evaluate("CSS.highlights.get('pamer-hits').size") > 0
    page.wait_for_function("document.querySelector('.st-key-outline .dvn-scroller').scrollTop > 0")


def test_enter_presses_a_button_of_the_library(visitor: Visitor) -> None:
    page = visitor.open("/?tour=false")
    table = page.locator("[class*=st-key-library-] [data-testid=stDataFrame]")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 300, box["y"] + 50)
    page.wait_for_function("document.activeElement.id.startsWith('glide-cell-')")
    while page.evaluate("document.activeElement.textContent") != "Open":
        before = page.evaluate("document.activeElement.id")
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("(was) => document.activeElement.id !== was", arg=before)
    page.keyboard.press("Enter")
    page.wait_for_url("**/trace?trace=*")
