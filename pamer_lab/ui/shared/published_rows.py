"""A published table as rows of text, as the paper prints it, for the screen and for download."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from pamer_lab.analysis.published import PublishedTable
from pamer_lab.figures.published import heading
from pamer_lab.spreadsheet import csv_text


def _cell(row: dict[str, Any], key: str, digits: int | None) -> Any:
    value = row.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:.{digits}f}" if digits is not None else f"{value:,}"
        if row.get(f"{key}_sd") is not None:
            text += f" ± {row[f'{key}_sd']:.{digits or 3}f}"
        if row.get(f"{key}_change") is not None:
            text += f" ({row[f'{key}_change']:+.{digits or 1}f})"
        if row.get(f"{key}_change_pct") is not None:
            text += f" ({row[f'{key}_change_pct']:+.1f} %)"
        return text
    return "" if value is None else str(value)


def published_rows(shown: PublishedTable) -> list[dict[str, Any]]:
    """A table as the paper prints it, with its groups."""
    grouped = any(row.get("group") for row in shown.rows)
    head = [{"Group": row.get("group", "")} if grouped else {} for row in shown.rows]
    return [
        start | {heading(column): _cell(row, column.key, column.digits) for column in shown.columns}
        for start, row in zip(head, shown.rows, strict=True)
    ]


def published_csv(rows: Sequence[dict[str, Any]], place: str) -> str:
    """The same rows for download, each with its place in the paper."""
    return csv_text(pl.DataFrame([{name: str(value) for name, value in row.items()} | {"Published in": place} for row in rows]))
