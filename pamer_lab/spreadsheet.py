"""Tables as CSV in which no spreadsheet finds a formula.

A cell that begins like one (`=`, `+`, `-`, `@`, a tab or a line end, also after blanks or invisible characters) gets an apostrophe in
front, which spreadsheets take for text; numbers stay as they are.
Invariant: `plain` undoes what `csv_text` did to a cell.
"""

import re

import polars as pl

_STARTS = "=+\\-@\t\r\n＝＋－＠"
_UNSEEN = "[ \x00\u00a0\u200b\u2060\ufeff]*"
"""Characters that some spreadsheets strip before they read a cell."""
_RISKY = rf"^{_UNSEEN}[{_STARTS}']"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_ESCAPED = re.compile(rf"'(?={_UNSEEN}[{_STARTS}'])")


def csv_text(frame: pl.DataFrame) -> str:
    """The frame as CSV, header included; every text column is escaped."""
    text = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    risky = text.str.contains(_RISKY) & ~text.str.contains(_NUMBER)
    named = frame.rename({name: _escaped(name) for name in frame.columns})
    return named.with_columns(pl.when(risky).then("'" + text).otherwise(text).name.keep()).write_csv()


def plain(cell: str) -> str:
    """A cell as it was before it was escaped."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def _escaped(text: str) -> str:
    return "'" + text if re.match(_RISKY, text) and not re.match(_NUMBER, text) else text
