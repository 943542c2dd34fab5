"""Filtered lists of traces, of bounded length; LanceDB does the filtering.

Filters become SQL, counts are the store's own, and never more than `MOST` rows are read, however many traces there are. If more fit,
those that were stored last are listed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pamer_lab.storage import contains, equals, is_in
from pamer_lab.workspace.store import SUMMARY_COLUMNS, TRACES, Workspace

MOST = 1_000
"""Traces that a list shows at once."""

Rewards = Literal["any", "recorded", "1 or more", "below 1", "not recorded"]
"""Which recorded rewards a choice of traces keeps."""
Owners = Literal["my traces", "demo", "all"]
"""Whose traces: imported by the user, those that come with the package, or both."""
REWARDS: dict[Rewards, str] = {
    "any": "",
    "recorded": "reward IS NOT NULL",
    "1 or more": "reward >= 1",
    "below 1": "reward < 1",
    "not recorded": "reward IS NULL",
}


@dataclass(frozen=True)
class Filters:
    """Which traces are wanted; the defaults leave none out."""

    words: str = ""
    """A text to find in one of the `searched` columns, ignoring case."""
    searched: tuple[str, ...] = ("name", "question_id", "task_id", "model", "trace_id")
    formats: Collection[str] = ()
    turns: tuple[float, float] = (0, float("inf"))
    tokens: tuple[float, float] = (0, float("inf"))
    reward: Rewards = "any"
    owners: Owners = "all"
    labelled: bool = False
    """Only traces that have labels."""

    @property
    def where(self) -> str:
        """The filters as SQL; empty if every trace fits."""
        parts = [is_in("format", sorted(self.formats))] if self.formats else []
        for column, (low, high) in (("turns", self.turns), ("tokens", self.tokens)):
            parts += ["false"] if low == float("inf") else [f"{column} >= {int(low)}"] if low > 0 else []
            parts += [f"{column} <= {int(high)}"] if high != float("inf") else []
        parts += [REWARDS[self.reward]] if self.reward != "any" else []
        parts += [equals("demo", self.owners == "demo")] if self.owners != "all" else []
        parts += ["labels > 0"] if self.labelled else []
        parts += ["(" + " OR ".join(contains(column, self.words) for column in self.searched) + ")"] if self.words else []
        return " AND ".join(parts)


@dataclass(frozen=True)
class Listed:
    """Some traces of the workspace."""

    rows: Sequence[dict[str, Any]]
    """At most `MOST` summary rows, by name."""
    fitting: int
    total: int
    """Traces that fit, and all traces."""

    @property
    def complete(self) -> bool:
        """Whether every trace that fits is listed."""
        return self.fitting == len(self.rows)


def listed(workspace: Workspace, where: str = "", most: int = MOST) -> Listed:
    """The traces that fit a filter (`Filters.where`); if more than `most` do, the last stored of them."""
    database = workspace.database
    if not workspace.path.exists() or not database.exists(TRACES):
        return Listed((), 0, 0)
    total = database.count(TRACES)
    fitting = database.count(TRACES, where) if where else total
    rows = database.page(TRACES, SUMMARY_COLUMNS, max(0, fitting - most), most, where) if fitting else []
    return Listed(sorted(rows, key=lambda row: (row["name"], row["index"])), fitting, total)
