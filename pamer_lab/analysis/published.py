"""The paper's published tables as data, so that pages can show "published" next to "measured here".

Numbers are as the paper prints them; captions are in our own words. Nothing here was measured by this program.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pamer_lab.errors import UnknownNameError

FOLDER = Path(__file__).parent / "published_tables"

Better = Literal["up", "down", ""]
"""`up`: larger is better. `down`: smaller is better. Empty: neither."""


@dataclass(frozen=True)
class Column:
    """One column of a published table."""

    key: str
    """Rows hold the value under this key, its standard deviation under `<key>_sd`, and a printed change under
    `<key>_change` or `<key>_change_pct`."""
    title: str
    unit: str = ""
    digits: int | None = None
    """Decimals the paper prints; none for text and integers."""
    better: Better = ""


@dataclass(frozen=True)
class PublishedTable:
    """One table of the paper."""

    name: str
    title: str
    caption: str
    place: str
    """Section or appendix of the paper."""
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]
    """In the paper's order; `group` is a row's sub-heading."""
    note: str = field(default="")

    def row(self, label: str, **matching: Any) -> dict[str, Any]:
        """The one row with this label, narrowed by other columns where labels repeat."""
        found = [row for row in self.rows if row["label"] == label and all(row.get(key) == value for key, value in matching.items())]
        if len(found) != 1:
            raise UnknownNameError(f"row of {self.name}", label, [row["label"] for row in self.rows])
        return found[0]


def names() -> list[str]:
    """All tables there are."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def table(name: str) -> PublishedTable:
    """One table by name; an unknown name is answered with the known ones."""
    if name not in names():
        raise UnknownNameError("published table", name, names())
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    columns = tuple(Column(**column) for column in data.pop("columns"))
    return PublishedTable(columns=columns, rows=tuple(data.pop("rows")), **data)
