"""What comes with the package: the paper's published tables as data, and the results of the sample study.

Published numbers are as the paper prints them; captions are in our own words, and nothing there was measured by this program. Each file
under `sample_study/` is a study written by `pamer-lab layerwise|controls|train --out`, with the command that reproduces it.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pamer_lab.errors import UnknownNameError
from pamer_lab.studies.study import Study, read_study

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
        """The one row with this label, narrowed by other columns if labels repeat."""
        found = [row for row in self.rows if row["label"] == label and all(row.get(key) == value for key, value in matching.items())]
        if len(found) != 1:
            raise UnknownNameError(f"row of {self.name}", label, [row["label"] for row in self.rows])
        return found[0]


def names() -> list[str]:
    """Names of all published tables."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def table(name: str) -> PublishedTable:
    """One table by name; the error for an unknown name lists the known ones."""
    if name not in names():
        raise UnknownNameError("published table", name, names())
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    columns = tuple(Column(**column) for column in data.pop("columns"))
    return PublishedTable(columns=columns, rows=tuple(data.pop("rows")), **data)


SAMPLE_FOLDER = Path(__file__).parent / "sample_study"


def sample_names() -> list[str]:
    """Names of the sample results that come with the package."""
    return sorted(path.stem for path in SAMPLE_FOLDER.glob("*.json"))


def sample_study(name: str) -> Study:
    """One sample result by its name."""
    if name not in sample_names():
        raise UnknownNameError("sample result", name, sample_names())
    return read_study(SAMPLE_FOLDER / f"{name}.json")
