"""Links and pictures in the documentation lead somewhere, and the figures it repeats are those of the code."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from pamer_lab.analysis.published import sample_study
from pamer_lab.config import ReadLimits
from pamer_lab.models.devices import QWEN35_9B, Geometry, estimate, fitting_cards

PROJECT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(PROJECT / "docs").glob("*.md"), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"])
SIZES = ("blocks", "width", "intermediate", "vocabulary", "query_heads", "key_heads", "head_width")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = [target for target in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_no_page_has_the_marks_of_an_unfinished_merge() -> None:
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [page.name for page in [*PAGES, PROJECT / "CHANGELOG.md"] if marks.search(page.read_text())] == []


def test_every_guide_is_reached_from_the_readme_or_the_tour() -> None:
    text = (PROJECT / "README.md").read_text() + (PROJECT / "docs" / "tour.md").read_text()
    assert [page.name for page in PAGES if page.parent.name == "docs" and page.name not in text and page.name != "annotation.md"] == []


def test_the_limits_and_counts_of_the_security_notes_are_the_codes() -> None:
    text = (PROJECT / "docs" / "security.md").read_text()
    limits = ReadLimits()
    assert f"{limits.max_bytes // 1_000_000} MB" in text and f"{limits.max_members:,}" in text and f"{limits.max_archive_members:,}" in text
    assert f"{limits.max_values // 1_000_000} million" in text and f"{limits.max_upload_bytes // 1_000_000_000} GB" in text
    attacks = json.loads((PROJECT / "tests" / "controller" / "attacks.json").read_text())["attacks"]
    assert f"{len(attacks)} attacks" in text


def test_the_memory_table_of_the_gpu_guide_is_what_the_estimator_gives() -> None:
    rows = re.findall(r"^\| (Qwen[\w.-]+) \| ([\d, a-z]+) \| (.*) \|$", (PROJECT / "docs" / "gpu.md").read_text(), re.MULTILINE)
    assert [name for name, _, _ in rows] == ["Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B", "Qwen3.5-9B", "Qwen3-32B"]
    for name, numbers, cells in rows:
        shape = Geometry(*(int(number) for number in re.findall(r"\d+", numbers)), tied="tied" in numbers)
        if name == "Qwen3.5-9B":
            assert [getattr(shape, key) for key in SIZES] == [getattr(QWEN35_9B, key) for key in SIZES]
            shape = QWEN35_9B
        found, small = estimate(shape, 35_000, 4096), estimate(shape, 35_000, 512)
        memory = [found.weights, found.cache, found.working, found.total, small.total]
        attention = 2 * 35_000**2 * shape.query_heads * shape.head_width * (shape.blocks - shape.linear_blocks)
        matrices = shape.parameters - shape.vocabulary * shape.width * (1 if shape.tied else 2)
        work = (2 * matrices * 35_000 + attention) / 1e12
        cards = fitting_cards(found.total)
        card = cards[0].rpartition("(")[2].strip(")") if cards else "more than 80 GB"
        expected = [f"{shape.parameters / 1e9:.2f}", *(f"{size / 1e9:.1f}" for size in memory), card, f"{work:.0f}", f"{work / 125:.0f}"]
        assert cells.split(" | ") == expected, name


def test_where_the_preferred_layer_stands_the_final_state_and_the_best_control_stand_too() -> None:
    rows = {(row["target"], row["name"]): row for row in sample_study("controls").rows}
    for page in ("README.md", "docs/studies.md", "docs/corpus.md"):
        text = (PROJECT / page).read_text()
        for target in ("compression", "recall"):
            best = max(row["mean"] for row in rows.values() if row["target"] == target and row["kind"] in ("control", "rule"))
            layers = [rows[target, f"Hidden state, {place} (linear)"]["mean"] for place in ("preferred layer", "final")]
            assert [value for value in (*layers, best) if f"{value:.3f}" not in text] == [], (page, target)


@pytest.mark.parametrize("name", ["formats", "policies"])
def test_a_page_that_a_script_writes_is_what_the_script_would_write_now(name: str) -> None:
    spec = importlib.util.spec_from_file_location(f"{name}_page", PROJECT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    assert page.written() == page.PAGE.read_text(), f"run `python docs/{name}.py`"
