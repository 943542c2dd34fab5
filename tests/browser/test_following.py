"""Charts stay while a reader moves: marks follow the turn, nothing is drawn anew, themes reach the colours, pictures are saved."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.browser.driver import Visitor
from tests.runs.making import PARTS, long_trace

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
        expect(page.locator(f".st-key-{key} .pamer-mark").first).to_have_attribute("data-at", "3")
    page.evaluate("window.before = [...document.querySelectorAll('.js-plotly-plot .main-svg')]")
    page.keyboard.press("j")
    for key in CHARTS:
        expect(page.locator(f".st-key-{key} .pamer-mark").first).to_have_attribute("data-at", "4")
    visitor.settle()
    assert "turn=4" in page.url
    page.set_viewport_size({"width": 1024, "height": 768})
    for pair in (("Previous-turn", "Next-turn"), ("Previous-event", "Next-event")):
        tops = {(page.locator(f".st-key-{name} button").first.bounding_box() or {})["y"] for name in pair}
        assert len(tops) == 1, f"{pair} are beside each other on a small screen"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("window.before.length > 2 && window.before.every(chart => chart.isConnected)")
    fill = "document.querySelector('.st-key-strip .scatterlayer .point')?.style.fill"
    light = page.evaluate(fill)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"(was) => {fill} && {fill} !== was", arg=light)
    expect(page.locator(".st-key-ledger .pamer-mark").first).to_have_attribute("data-at", "4")


def test_the_camera_saves_the_chart_in_the_format_chosen_in_the_share_panel(stranger: Callable[..., Visitor]) -> None:
    visitor = stranger()
    page = visitor.open("/published")
    chart = page.locator(".js-plotly-plot").first

    def picture() -> tuple[str, bytes]:
        chart.hover()
        with page.expect_download() as started:
            chart.locator(".modebar-btn[data-title*='Download plot']").click()
        return started.value.suggested_filename, Path(started.value.path()).read_bytes()

    name, drawn = picture()
    assert name.endswith(".svg") and b"<svg" in drawn[:200] and len(drawn) > 5_000
    said = " ".join(re.findall(r">([^<>]+)<", drawn.decode()))
    frame = page.locator(".st-key-shown-published-chart")
    answer = frame.get_by_test_id("stCaptionContainer").last.inner_text().split()
    for words in (frame.locator("strong").first.inner_text(), " ".join(answer[:6])):
        assert words in said
    heading = re.search(r'class="gtitle"[^>]* y="([\d.]+)"', drawn.decode())
    assert heading and float(heading[1]) >= 16, "the first line is not cut off"
    assert chart.locator(".gtitle").count() == 0 and page.evaluate("document.querySelector('.js-plotly-plot').layout.title?.text") is None
    page.locator(".st-key-share button").click()
    page.get_by_role("radio", name="PNG").click()
    visitor.settle()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.wait_for_function("document.querySelector('.js-plotly-plot')._context.toImageButtonOptions.format === 'png'")
    name, drawn = picture()
    assert name.endswith(".png") and drawn.startswith(b"\x89PNG") and len(drawn) > 5_000
