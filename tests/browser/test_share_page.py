"""The share page in Chromium, from disk, with the network off: it checks itself, catches changes, and shows hostile words as words."""

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request

from pamer_lab.audit import AuditStore, ReviewStore, import_audit
from pamer_lab.report.config import ReplaySection, ReportConfig
from pamer_lab.report.making import make, write
from pamer_lab.report.replay_part import choice_of
from pamer_lab.runs.values import STATUS_WORDS, RunInfo
from pamer_lab.workspace import Workspace
from tests.report.world import HOSTILE, everything, filled
from tests.runs.making import long_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, list[RunInfo]]:
    return filled(tmp_path_factory.mktemp("share") / "workspace")


@pytest.fixture(scope="module")
def file(reported: tuple[Workspace, list[RunInfo]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace, heads = reported
    path = tmp_path_factory.mktemp("pages") / "share.html"
    write(make(everything(heads), workspace, command="pamer-lab report t-hostile"), path)
    return path


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Open]:
    """Opens a file in a browser of its own that is offline; any request beyond the file, or any error, fails the test."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    troubles: list[str] = []

    def note(request: Request) -> None:
        if urlsplit(request.url).scheme not in ("file", "blob"):
            troubles.append(request.url)

    def opened(path: Path, anchor: str = "") -> Page:
        page = context.new_page()
        page.on("request", note)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
        page.goto(path.as_uri() + anchor)
        page.wait_for_selector("#page > header")
        return page

    yield opened
    context.close()
    assert troubles == []


def _seal(page: Page) -> tuple[int, int]:
    found = re.search(r"(\d+)\D+(\d+)", page.locator("#verified > summary").inner_text())
    assert found
    return int(found[1]), int(found[2])


def _altered(file: Path, tmp_path: Path, element: str, change: Callable[[str], str], *, mend: bool = False) -> Path:
    """A copy with one data element changed; with `mend` its hash in the manifest is changed too."""
    text = file.read_text()
    found = re.search(rf'<script type="application/json" id="{element}">(.*?)</script>', text, re.S)
    assert found
    new = change(found[1])
    assert new != found[1]
    text = text.replace(found[1], new, 1)
    if mend:
        text = text.replace(sha256(found[1].encode()).hexdigest(), sha256(new.encode()).hexdigest())
    copy = tmp_path / "altered.html"
    copy.write_text(text)
    return copy


def test_the_page_verifies_itself_and_hostile_words_stay_words(file: Path, open_file: Open) -> None:
    page = open_file(file)
    right, checked = _seal(page)
    assert right == checked > 500
    assert page.evaluate("window.pwned") is None
    assert page.locator("section").count() == 7 and page.locator("img, iframe, object, form").count() == 0
    page.locator("#s0 details.block").filter(has=page.locator(".columns")).locator("> summary").first.click()
    page.locator("#s0 details.block .columns tbody tr").nth(8).click()
    assert HOSTILE[0] in page.locator("#s0 .reader pre").last.inner_text()
    page.locator("#s0 details.block .columns tbody tr").nth(4).click()
    shown = page.locator("#s0 .reader pre").last.inner_text()
    assert "⟨U+202E⟩" in shown and "\u202e" not in shown and "␛[31m" in shown
    made = """text => [table([{title: text, hint: text, value: row => row}], [text]), badge(text, "", text), el("p", {}, text)]
        .map(node => node.outerHTML).join("")"""
    markup = page.evaluate(made, "\u202egpj.exe 🙂")
    assert "\u202e" not in markup and markup.count("⟨U+202E⟩gpj.exe 🙂") == 6, "tables, hints and labels too; an emoji stays one"


def test_turns_are_read_by_click_and_key_and_the_address_remembers_them(file: Path, open_file: Open) -> None:
    page = open_file(file)
    page.get_by_role("button", name="pamer:minimum=60:retained=1").last.click()
    number = page.locator("#s0 input[type=number]")
    before = int(number.input_value())
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    assert int(number.input_value()) == before + 1
    assert f"/{before + 1}" in page.evaluate("location.hash")
    ticks = page.locator("#s0 svg[aria-label^='State of every']").first.locator("text.tick[text-anchor=end]")
    places = {int(tick.text_content() or ""): float(tick.get_attribute("y") or "") for tick in ticks.all()}
    assert len(places) > 1 and sorted(places, key=places.__getitem__) == sorted(places), "block 0 is at the top, as on the page"
    page.locator("#s0 figure svg.pickable").first.click(position={"x": 900, "y": 150})
    assert int(number.input_value()) > before + 1
    text = page.locator("#s0 .context p.quiet").inner_text()
    assert re.search(r"\b([\d,]+)\b\D+\b\1\b", text), "the sum of the items is the plotted number"
    again = open_file(file, page.evaluate("location.hash"))
    assert again.locator("#s0 input[type=number]").input_value() == number.input_value()


@pytest.mark.parametrize(
    ("element", "change", "mend", "named"),
    [
        (
            "section-0",
            lambda text: re.sub(r'"active":(\d+),"can', lambda match: f'"active":{int(match[1]) + 1},"can', text, count=9),
            False,
            "section-0",
        ),
        (
            "section-0",
            lambda text: re.sub(r'"active":(\d+),"can', lambda match: f'"active":{int(match[1]) + 1},"can', text, count=1),
            True,
            "base, turn 0",
        ),
        ("section-0", lambda text: text.replace('"votes":[false', '"votes":[true', 1), True, "turn"),
        ("section-0", lambda text: re.sub(r'"reduction_pct":([\d.]+)', '"reduction_pct":99.5', text, count=2), True, "reduction"),
        ("section-0", lambda text: re.sub(r'"states":"S(\d+)', r'"states":"R\1', text, count=1), True, "turn"),
        ("section-1", lambda text: re.sub(r'"mean_active":[\d.]+', '"mean_active":7.5', text, count=1), True, "base, turn 0"),
        ("section-2", lambda text: re.sub(r'"mean":0\.\d+', '"mean":0.99', text, count=9), True, "auroc"),
        ("texts", lambda text: text.replace("word8", "word9", 1), True, "text "),
    ],
)
def test_changed_data_is_caught_and_named(
    file: Path, tmp_path: Path, open_file: Open, element: str, change: Callable[[str], str], mend: bool, named: str
) -> None:
    page = open_file(_altered(file, tmp_path, element, change, mend=mend))
    right, checked = _seal(page)
    assert right < checked
    assert named in page.get_by_role("alert").first.inner_text()


def test_a_search_that_ended_early_says_where(file: Path, tmp_path: Path, open_file: Open) -> None:
    assert "4711" not in open_file(file).locator("#s0 table").first.inner_text()
    altered = _altered(
        file, tmp_path, "section-0", lambda text: text.replace('"searched_to_turn":null', '"searched_to_turn":4711', 1), mend=True
    )
    assert "4711" in open_file(altered).locator("#s0 table").first.inner_text()


def test_a_run_that_was_stopped_says_so_in_its_headline(file: Path, tmp_path: Path, open_file: Open) -> None:
    word = STATUS_WORDS["cancelled"]
    assert word not in open_file(file).locator("#s0").inner_text()
    altered = _altered(file, tmp_path, "section-0", lambda text: text.replace('"status":"done"', f'"status":"{word}"'), mend=True)
    assert word in open_file(altered).locator("#s0 p").first.inner_text()


def test_damaged_data_is_said_to_be_damaged(file: Path, tmp_path: Path, open_file: Open) -> None:
    page = open_file(_altered(file, tmp_path, "section-0", lambda text: text[: len(text) // 2]))
    assert page.get_by_role("alert").count() == 1 and page.locator("section").count() == 0


def test_a_review_written_in_the_page_comes_into_the_lab(
    file: Path, reported: tuple[Workspace, list[RunInfo]], tmp_path: Path, open_file: Open
) -> None:
    workspace, _ = reported
    page = open_file(file)
    form = page.locator("#s0 .audit .form")
    note = f"I would take step 2. {HOSTILE[0]}"
    page.locator("#s0 .audit .queue tbody tr").nth(1).click()
    form.locator("input[name=reviewer]").fill("Bo  Lee")
    form.locator("input[value='missing evidence']").check()
    form.locator("input[name=steps]").fill("2, 1")
    form.locator("textarea").fill(note)
    form.locator("button.action").click()
    assert note in page.locator("#s0 .audit .case").inner_text()
    with page.expect_download() as started:
        page.locator("#export-reviews").click()
    saved = tmp_path / "reviews.json"
    started.value.save_as(saved)
    assert import_audit(workspace.database, saved) == {"selection": 0, "review": 1, "unknown": 0}
    row = AuditStore(workspace.database).rows()[1]
    (review,) = ReviewStore(workspace.database).history(row["audit_id"], "Bo Lee")
    assert (review.verdict, review.steps, review.note) == ("missing evidence", (1, 2), note)
    assert json.loads(saved.read_text())["reviews"][0]["audit_id"] == row["audit_id"]
    assert page.evaluate("window.pwned") is None


def test_print_shows_the_evidence_and_hides_the_controls(file: Path, open_file: Open, tmp_path: Path) -> None:
    page = open_file(file)
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("header button.noprint").is_visible() and not page.locator("#s0 .audit .form").is_visible()
    assert page.locator("#verified table").is_visible() and page.locator("#s0 figure svg").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.pdf(path=tmp_path / "print.pdf", format="A4", print_background=True)
    assert (tmp_path / "print.pdf").stat().st_size > 20_000


def test_fewer_tokens_at_a_higher_cost_are_not_green(file: Path, open_file: Open) -> None:
    page = open_file(file)
    table = (
        page.locator("table").filter(has=page.locator("th", has_text="Cost vs base")).filter(has=page.locator("th", has_text="Auxiliary"))
    )
    heads = table.first.locator("th").all_inner_texts()
    at = {name: next(place for place, head in enumerate(heads) if head.startswith(name)) for name in ("Change", "Cost vs base")}
    fewer = [
        (cells.nth(at["Change"]).locator(".good").count() > 0, float(cells.nth(at["Cost vs base"]).inner_text()))
        for cells in (row.locator("td") for row in table.first.locator("tbody tr").all())
        if "▼" in cells.nth(at["Change"]).inner_text()
    ]
    assert all(cost <= 1 for green, cost in fewer if green) and any(cost >= 1 for green, cost in fewer if not green), fewer


def test_two_hundred_turns_with_text_stay_under_ten_megabytes_and_open(tmp_path: Path, open_file: Open) -> None:
    workspace, heads = filled(tmp_path / "w", long_trace(200, words=400), ["base", "sliding-window:5", "pamer"])
    section = ReplaySection(trace_id="t-long", runs=tuple(choice_of(head) for head in heads))
    report = make(ReportConfig(sections=(section,)), workspace)
    bare = make(ReportConfig(sections=(section,), text=False), workspace)
    assert len(bare.html) < len(report.html) <= 10_000_000 and report.document.about["text"]["cut"] == 0
    write(report, tmp_path / "long.html")
    right, checked = _seal(open_file(tmp_path / "long.html"))
    assert right == checked > 2_000


def test_a_chart_of_many_policies_labels_each_place_once_and_says_all_figures(file: Path, open_file: Open) -> None:
    page = open_file(file)
    same = {"tokens_vs_base": 0.31, "mean_peak": 4_200, "uncached_share": 0.27, "traces": 1, "cost_low": None, "evidence_low": None}
    equal = [{"policy": name, "cost_vs_base": 1, "evidence_pct": 100, "frontier": True} for name in ("sam", "base", HOSTILE[0])]
    beaten = [{"policy": f"lre:{n}", "cost_vs_base": 1.2 + n / 9, "evidence_pct": 80 - n, "frontier": False} for n in range(9)]
    best = {"policy": "sliding-window:10", "cost_vs_base": 0.1, "evidence_pct": 60, "frontier": True}
    prices = {"name": "p", "date": "d", "source": "s"}
    against = {"policy": HOSTILE[0], "yardstick": "sliding-window", "tokens_vs_base": 0.31, "tasks": 1}
    known = {"evidence_difference": -3.5, "cost_difference": 0.25}
    rows = [against | known, against | dict.fromkeys(known)]
    found = {
        "points": [point | same for point in (best, *equal, *beaten)],
        "traces": 1,
        "cheapest": [],
        "prices": prices,
        "equal_tokens": rows,
    }
    page.evaluate("frontier => document.querySelector('main').prepend(frontierPart({frontier}))", found)
    chart = page.locator("main svg[role=img]").first
    assert chart.locator("path.dot").count() == len(found["points"]) and chart.locator("line.steps-line").count() == 6
    texts = chart.locator("text.tick").all_text_contents()
    assert "base and 2 more" in texts and "sliding-window:10" in texts and "lre:3" not in texts
    mark = chart.locator("path.dot").first.bounding_box()
    assert mark
    page.mouse.move(mark["x"] + 4, mark["y"] + 4)
    said = chart.locator(".tip text").inner_html()
    assert all(figure in said for figure in ("0.10", "60.0", "0.31", "4.2K", "27"))
    yardsticks = page.locator("main table").nth(2).locator("tbody td").all_text_contents()
    assert {"-3.5", "+0.25"} <= {*yardsticks}
    assert page.evaluate("window.pwned") is None
