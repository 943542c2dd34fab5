"""Links and pictures in the documentation lead somewhere, and the figures it repeats are those of the code."""

import json
import re
from pathlib import Path

import pytest

from pamer_lab.config import ReadLimits

PROJECT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(PROJECT / "docs").glob("*.md"), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = [target for target in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


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
