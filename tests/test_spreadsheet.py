"""CSV that a spreadsheet opens as text, and the way back."""

import csv
import io
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.spreadsheet import csv_text, plain

PROJECT = Path(__file__).resolve().parents[1]
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", "\u00a0+", "\ufeff@", "\u200b=")


def cells(frame: pl.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(csv_text(frame), newline="")))


@pytest.mark.parametrize("start", RISKY)
def test_a_cell_or_header_that_begins_like_a_formula_is_text(start: str) -> None:
    formula = f'{start}HYPERLINK("http://some.name","x")'
    found = cells(pl.DataFrame({formula: [formula, "plain"], "other": pl.Series([formula, "x"], dtype=pl.Categorical)}))
    assert found[0][0] == found[1][0] == found[1][1] == "'" + formula and found[2][0] == "plain"


def test_numbers_stay_numbers_also_as_text() -> None:
    assert cells(pl.DataFrame({"a": [-1.5], "b": ["-2"], "c": ["+3.0e-5"], "d": ["-1+cmd|' /C calc'!A0"]})) == [
        ["a", "b", "c", "d"],
        ["-1.5", "-2", "+3.0e-5", "'-1+cmd|' /C calc'!A0"],
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1).filter(any))
def test_every_text_comes_back_and_none_begins_like_a_formula(texts: list[str]) -> None:
    body = csv_text(pl.DataFrame({"t": texts}))
    read = [cell or "" for cell in pl.read_csv(io.BytesIO(body.encode()), infer_schema=False)["t"]]
    assert [plain(cell) for cell in read] == texts
    assert not [cell for cell in read if cell.startswith(RISKY) and not re.fullmatch(r"[-+][\d.]+([eE][-+]?\d+)?", cell)]


def test_nobody_writes_a_csv_past_it() -> None:
    sources = [*(PROJECT / "pamer_lab").rglob("*.py"), *(PROJECT / "pages").glob("*.py")]
    sources = [path for path in sources if path.parent.name != "bench"]  # they make input, not output
    writing = {path.name for path in sources if re.search(r"write_csv|csv\.writer|DictWriter|to_csv", path.read_text())}
    assert writing == {"spreadsheet.py"}
