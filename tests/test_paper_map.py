"""`docs/paper-to-code.md` is kept true: every name in it exists, and nothing of the paper's list is missing."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.models.profiles import PROFILES

PROJECT = Path(__file__).resolve().parents[1]
MAP = (PROJECT / "docs" / "paper-to-code.md").read_text()
LABELS = (PROJECT / "tests" / "paper_labels.txt").read_text().split()
CODE = sorted(set(re.findall(r"`((?:pamer_lab|tests)/[\w/]+\.py):([\w.]+)`", MAP)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", MAP)))
READ_PUBLISHED = {"tests/analysis/test_published.py", "tests/analysis/test_roundings.py"}
"""Tests that compare published numbers with each other; wrong code does not make them fail."""
IN_TESTS = "shown in tests: `tests/probes/theory.py:"
ROW = re.compile(r"^\| ((?:eq|alg|tab|prop|fig):\S+) \|(.*)$", re.MULTILINE)
SETTING = re.compile(r"^\| ([\w ]+) \| (\d+) \| `pamer_lab/[\w/]+\.py:(\w+)\.(\w+)` \|$", re.MULTILINE)


@cache
def names(file: str) -> frozenset[str]:
    """Everything a module defines at its top, and its classes' members."""
    found: set[str] = set()
    for node in ast.parse((PROJECT / file).read_text()).body:
        found |= _defined(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item}" for member in node.body for item in _defined(member)}
    return frozenset(found)


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def cells(row: str) -> tuple[str, str]:
    """What carries a row, and what shows it."""
    _, carried, shown = (cell.strip() for cell in row.strip().strip("|").split("|"))
    return carried, shown


def test_every_label_of_the_paper_has_a_row_with_a_function_and_a_test() -> None:
    rows = dict(ROW.findall(MAP))
    assert len(LABELS) == len(set(LABELS)) > 70
    assert set(LABELS) == set(rows)
    for label, row in rows.items():
        carried, shown = cells(row)
        assert carried.startswith("`pamer_lab/") or (carried.startswith(IN_TESTS) and label.split(":")[0] in ("prop", "eq")), label
        assert "`tests/" in shown, label


def test_rows_that_only_read_published_tables_say_so_and_no_others_do() -> None:
    for label, row in ROW.findall(MAP):
        carried, shown = cells(row)
        files = {file for file, _ in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", shown)}
        published = carried == "`pamer_lab/analysis/published.py:table`"
        assert shown.startswith("data check: ") == published, label
        assert bool(files & READ_PUBLISHED) == published, label


@pytest.mark.parametrize(("file", "name"), CODE, ids=lambda value: value)
def test_a_function_that_is_named_exists(file: str, name: str) -> None:
    assert (PROJECT / file).is_file() and name in names(file)


@pytest.mark.parametrize(("file", "name"), TESTS, ids=lambda value: value)
def test_a_test_that_is_named_exists(file: str, name: str) -> None:
    assert (PROJECT / file).is_file() and name in names(file)


def test_every_setting_of_the_paper_is_the_default() -> None:
    found = SETTING.findall(MAP)
    paper = PROFILES["paper"]
    models = {
        "ControllerSettings": ControllerSettings(),
        "Profile": paper,
        "ChatSettings": paper.chat,
        "EmbeddingSettings": paper.embedding,
    }
    assert len(found) == 16
    for setting, value, model, field in found:
        assert getattr(models[model], field) == int(value), setting
    assert (paper.probe_limit, paper.embedding.dimensions) == (35_000, 1_024)
    assert (paper.frozen_model.fallback, paper.embedding.model) == ("Qwen/Qwen3.5-9B", "Qwen/Qwen3-Embedding-8B")
    assert (paper.training.layer, paper.training.hint) == ("final", "faithful")
