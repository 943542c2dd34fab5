"""Charts stay while a reader moves: marks follow the turn, nothing is drawn anew, and a switched theme reaches the colours."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from pamer_lab.replay.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.browser.driver import Visitor
from tests.replay.making import PARTS, long_trace

pytestmark = pytest.mark.browser

PAMER = "pamer:minimum=60:retained=1"
CHARTS = ("context", "strip", "ledger")


def test_a_turn_change_moves_the_marks_and_leaves_the_charts_and_a_switched_theme_recolours_them(
    stranger: Callable[..., Visitor], folder: Path
) -> None:
    replay(long_trace(12, trace_id="t-marks"), PAMER, Workspace(folder), ReplayOptions(device="cpu", parts=PARTS))
    visitor = stranger()
    page = visitor.open(f"/replay?trace=t-marks&policies=base&policies={quote(PAMER)}&turn=3&policy={quote(PAMER)}")
    for key in CHARTS:
        expect(page.locator(f".st-key-{key} .pamer-mark")).to_have_attribute("data-at", "3")
    page.evaluate("window.before = [...document.querySelectorAll('.js-plotly-plot .main-svg')]")
    page.keyboard.press("Alt+ArrowRight")
    for key in CHARTS:
        expect(page.locator(f".st-key-{key} .pamer-mark")).to_have_attribute("data-at", "4")
    visitor.settle()
    assert "turn=4" in page.url
    assert page.evaluate("window.before.length > 2 && window.before.every(chart => chart.isConnected)")
    fill = "document.querySelector('.st-key-strip .scatterlayer .point')?.style.fill"
    light = page.evaluate(fill)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"(was) => {fill} && {fill} !== was", arg=light)
    expect(page.locator(".st-key-ledger .pamer-mark")).to_have_attribute("data-at", "4")
