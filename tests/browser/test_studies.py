"""What a reader does on the study pages: click a layer, move the threshold, download, send the link; and nothing is obeyed."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from pamer_lab.analysis.compact import budget_table
from pamer_lab.studies.study import read_study, save_study
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_uploads
from tests.analysis.making import control_study, layer_study
from tests.browser.driver import Visitor
from tests.browser.test_reading import hostile
from tests.pages.test_contexts import FIXTURE

pytestmark = pytest.mark.browser

SCORES = ".st-key-shown-scores-compression strong >> nth=0"
SHIFT = ".st-key-shift"

EVIL = "<img src=x onerror='window.hacked=7'> ![p](https://outside.example/s.png) [l](javascript:window.hacked=8)"


def test_a_point_opens_its_layer_a_key_moves_the_threshold_and_the_link_keeps_both(
    visitor: Visitor, stranger: Callable[..., Visitor], folder: Path
) -> None:
    lab = Workspace(folder)
    name = save_study(lab, layer_study(name=EVIL, model=EVIL))
    save_study(lab, control_study(model=EVIL))
    page = visitor.open(f"/signals?layerwise-study={name}")
    expect(page.locator(SCORES)).to_contain_text(re.compile("final.*last"))
    # In the first panel lie two published lines and their bands before the measured last-token line.
    page.locator(".st-key-layers-auroc .scatterlayer .trace:has(.point)").nth(2).locator(".point").first.click(force=True)
    expect(page.locator(SCORES)).to_contain_text(re.compile(r"layer 1\b.*last"))
    visitor.settle()
    shift = page.locator(SHIFT)
    shift.get_by_role("slider").press("ArrowRight")
    expect(shift).to_contain_text("0.05")
    visitor.settle()
    assert {"shift=0.05", "layer=block_1"} <= set(page.url.partition("?")[2].split("&"))
    with page.expect_download() as started:
        page.locator(".st-key-layers-auroc-csv button").click()
    assert "block_1" in Path(started.value.path()).read_text()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, .stApp a[href*='outside'], .stApp a[href^='javascript']").count() == 0
    other = stranger(dark=True)
    other.page.goto(page.url)
    expect(other.page.locator(SCORES)).to_contain_text(re.compile(r"layer 1\b.*last"))
    expect(other.page.locator(SHIFT)).to_contain_text("0.05")


def test_a_hostile_trace_is_only_text_under_two_conditions(visitor: Visitor, folder: Path) -> None:
    lab = Workspace(folder)
    trace_id = import_uploads([("hostile-contexts.json", hostile())], lab).traces[0]["trace_id"]
    name = save_study(lab, read_study(FIXTURE))
    page = visitor.open(f"/contexts?compact-study={name}&trace={trace_id}&left=full&right=current")
    expect(page.get_by_text(re.compile("block 0.*Current")).first).to_be_visible()
    expect(page.get_by_test_id("stCode").filter(has_text="<script>window.hacked = 1</script>").first).to_be_visible()
    budgets = page.locator(".st-key-more button").nth(2)
    budgets.click()
    page.wait_for_url(re.compile("[?&]more="))
    visitor.settle()
    count = budget_table(read_study(FIXTURE))[0]["evidence_tokens"]["n"]
    expect(page.get_by_test_id("stCaptionContainer").filter(has_text=f"n = {count:,} ").last).to_be_visible()
    assert parse_qs(urlsplit(page.url).query)["more"] == [budgets.inner_text()]
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, .stApp iframe, .stApp a[href*='outside'], .stApp a[href^='javascript'], .stApp script").count() == 0
