"""What a reader does: add a file, open it, search, page, click a bar, send the link, switch to dark."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.driver import Visitor, dashboard
from tests.pages.conftest import chat

pytestmark = pytest.mark.browser

BODIES = '[data-testid="stCode"]'
MOST_BODIES = 50
READ, REFUSED = "[data-testid=stAlertContentSuccess]", "[data-testid=stAlertContentError]"


def upload(visitor: Visitor, *files: tuple[str, bytes]) -> Page:
    """Add files on the home page and wait for the report."""
    page = visitor.open("/")
    payload = [{"name": name, "mimeType": "application/json", "buffer": data} for name, data in files]
    page.locator('[data-testid="stFileUploaderDropzoneInput"]').set_input_files(payload)  # type: ignore[arg-type]
    expect(page.locator(f"{READ}, {REFUSED}").first).to_be_visible()
    visitor.settle()
    return page


def open_first(visitor: Visitor, words: str) -> Page:
    """Open the only trace that fits a search, by its button in the table."""
    page = visitor.open(f"/?find={words}")
    page.locator('[data-testid="stDataFrame"] .dvn-scroller').first.click(position={"x": 62, "y": 52})
    page.wait_for_url(re.compile(r"/trace\?"))
    expect(page.locator(".st-key-block-0")).to_be_visible()
    visitor.settle()
    return page


def click_bar(page: Page, number: int) -> None:
    """Click where a bar is; plotly lays a sheet of its own over its bars, so the bar itself cannot be clicked."""
    bar = page.locator(".st-key-strip .bars .point path").nth(number)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def press_row(page: Page, number: int) -> None:
    """Click a row of the outline as a hand does: the table listens to the pointer before and between."""
    page.locator(".st-key-outline .dvn-scroller").evaluate("table => { table.scrollTop = 0; }")  # it follows the open block
    drawn(page)
    box = page.locator(".st-key-outline .dvn-scroller").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    drawn(page)
    page.mouse.move(box["x"] + 180, box["y"] + 38 + 35 * number + 17)
    drawn(page)
    page.mouse.down()
    drawn(page)
    page.mouse.up()


def drawn(page: Page) -> None:
    """Until the browser has drawn what the last event changed; the table takes events in only between two drawings."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_a_file_is_added_opened_searched_paged_and_linked(visitor: Visitor, stranger: Callable[..., Visitor]) -> None:
    page = upload(visitor, ("walk.json", chat(70, model="walker")), ("cut.json", b'{"messages": ['))
    expect(page.locator(READ)).to_contain_text(re.compile(r"\b1\b.*openai-chat"))
    expect(page.locator(REFUSED)).to_contain_text(re.compile(r"\b1\b"))
    page = open_first(visitor, "walker")
    page.locator(".st-key-q input").fill("answer 6")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"\b1\D+11\D+6$"))).to_be_visible()
    visitor.settle()
    page.locator(".st-key-Next-hit button").click()
    expect(page.get_by_text(re.compile(r"\b2\D+11\D+60$"))).to_be_visible()
    expect(page.locator(".st-key-block-60")).to_contain_text("answer 60")
    visitor.settle()
    assert {part.split("=")[0] for part in page.url.split("?")[1].split("&")} == {"trace", "q", "hit", "block"}
    other = stranger()
    other.page.goto(page.url)
    expect(other.page.get_by_text(re.compile(r"\b2\D+11\D+60$"))).to_be_visible()
    expect(other.page.locator(".st-key-block-60")).to_contain_text("answer 60")
    other.settle()
    assert other.page.url == page.url
    page.mouse.click(5, 300)
    page.keyboard.press("k")
    expect(page.locator(".st-key-block-59")).to_be_visible()
    expect(page.locator(".st-key-block-60")).to_have_count(0)


def test_a_click_on_a_bar_or_a_row_opens_its_block(visitor: Visitor) -> None:
    upload(visitor, ("bars.json", chat(40, model="barmaker")))
    page = open_first(visitor, "barmaker")
    page.locator(".st-key-outline .dvn-scroller").click(position={"x": 180, "y": 38 + 35 * 3 + 17})
    expect(page.locator(".st-key-block-3")).to_contain_text("answer 3")
    expect(page.locator(".st-key-block-0")).to_have_count(0)
    visitor.settle()
    click_bar(page, 30)
    expect(page.locator(".st-key-block-30")).to_contain_text("answer 30")
    visitor.settle()
    assert "block=30" in page.url
    press_row(page, 3)
    expect(page.locator(".st-key-block-3")).to_contain_text("answer 3")
    visitor.settle()
    assert "block=3" in page.url.partition("?")[2].split("&")


def test_a_trace_of_2000_turns_keeps_few_bodies_on_the_page(visitor: Visitor) -> None:
    upload(visitor, ("long.json", chat(2_000, model="marathon")))
    page = open_first(visitor, "marathon")
    assert 0 < page.locator(BODIES).count() <= MOST_BODIES
    page.locator(".st-key-q input").fill("answer 1999")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-block-1999")).to_contain_text("answer 1999")
    visitor.settle()
    assert 0 < page.locator(BODIES).count() <= MOST_BODIES
    page.locator(".st-key-block input").fill("1000")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-block-1000")).to_contain_text("answer 1000")
    visitor.settle()
    assert 0 < page.locator(BODIES).count() <= MOST_BODIES


def test_a_link_may_be_the_first_thing_a_fresh_server_is_asked_and_dark_is_our_own(browser: Browser, tmp_path: Path) -> None:
    with dashboard(tmp_path / "workspace") as address:
        night = Visitor(browser, address, dark=True)
        page = night.open("/trace?block=7")
        expect(page.locator(".st-key-growth .js-plotly-plot")).to_be_visible()
        expect(page.locator(".st-key-block-7")).to_be_visible()
        expect(page.get_by_test_id("stTopNavLink").first).to_be_visible()
        assert page.get_by_test_id("stSidebar").count() == 0
        assert page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor") == "rgb(22, 25, 29)"
        night.close()
        assert night.outside == []


def test_a_link_to_a_missing_trace_says_which_one_it_needs(visitor: Visitor) -> None:
    page = visitor.open("/trace?trace=t-0000000000000000")
    expect(page.locator(REFUSED)).to_contain_text("t-0000000000000000")
    assert page.locator(BODIES).count() == 0


def hostile() -> bytes:
    """Everything a trace might try, in every place where its text is shown."""
    evil = (
        "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'></script><svg onload='window.hacked = 3'>"
        " ![pixel](https://outside.example/pixel.png) [link](javascript:window.hacked=4) <iframe src='https://outside.example/'></iframe>"
        " \x1b[31mred\x1b[0m \u202egnp.exe :material/delete: $x^2$ :red[colour] https://outside.example/auto"
    )
    name = "<img src=x onerror='window.hacked=5'> `![p](https://outside.example/n.png)"
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps({"q": evil})}}
    messages = [
        {"role": "system", "content": evil},
        {"role": "user", "content": evil, "name": name},
        {"role": "assistant", "content": evil, "tool_calls": [call], "reasoning_content": evil},
        {"role": "tool", "tool_call_id": "c", "name": name, "content": evil},
        {"role": "assistant", "content": "A" * 1_000_000 + "END OF LINE"},
    ]
    tools = [{"type": "function", "function": {"name": name, "description": evil, "parameters": {}}}]
    return json.dumps({"messages": messages, "tools": tools, "model": "hostile " + evil, "id": name}).encode()


def test_a_hostile_trace_is_only_text_and_asks_nobody(visitor: Visitor) -> None:
    dialogs: list[str] = []
    visitor.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    bad = json.dumps([{"role": "![p](https://outside.example/r.png)<img src=x onerror='window.hacked=6'>", "content": "x"}]).encode()
    upload(visitor, ("![p](https:evil.png)<img src=x onerror=alert(1)>.json", hostile()), ("bad <b>name</b>.json", bad))
    page = open_first(visitor, "hostile")
    expect(page.locator(".st-key-block-0")).to_contain_text("<script>window.hacked = 1</script>")
    expect(page.locator(".st-key-block-0")).to_contain_text("␛[31mred")
    expect(page.locator(".st-key-block-0")).to_contain_text("⟨U+202E⟩gnp.exe")
    page.locator(".st-key-block-0 [data-testid=stExpander] summary").first.click()
    page.locator(".st-key-details summary").click()
    page.locator(".st-key-q input").fill("END OF LINE")
    page.keyboard.press("Enter")
    expect(page.get_by_text("⟦END OF LINE⟧")).to_be_visible()
    visitor.settle()
    page.get_by_text(re.compile("1,000,011")).first.click()
    expect(page.get_by_text(re.compile(r"\b1\D+11\b")).first).to_be_visible()
    click_bar(page, 0)
    visitor.settle()
    assert page.evaluate("window.hacked") is None
    assert dialogs == []
    strays = page.locator("main img, .stApp iframe, .stApp a[href*='outside'], .stApp a[href^='javascript'], .stApp script")
    assert strays.count() == 0
