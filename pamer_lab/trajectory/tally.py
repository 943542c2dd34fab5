"""Counts of what a reader leaves out or finds empty, each kind with its first location; and the limit on a trace's warnings.

Knows no format. Invariant: everything counted is in `warnings`, except what was `passed` on purpose, which is only in `others`.
"""

from collections.abc import Iterator, Sequence

from pamer_lab.counts import counted
from pamer_lab.trajectory.values import Warning, WarningKind

EMPTY_MESSAGE = "assistant message{s} without content"
EMPTY_RESULT = "empty tool result{s}"
NO_ARGUMENTS_GIVEN = "call{s} without arguments"
NO_NAME_GIVEN = "call{s} without a tool's name"
MAX_WARNINGS = 200
"""Warnings kept per trace; the others are counted in one last warning."""


def bounded(warnings: Sequence[Warning], where: str) -> list[Warning]:
    """The first warnings, and one at `where` that counts the others."""
    kept = list(warnings[:MAX_WARNINGS])
    if left_out := len(warnings) - len(kept):
        kept.append(Warning(where, counted(left_out, "more warning of these kinds", "more warnings of these kinds")))
    return kept


class Tally:
    """Counts of one trace."""

    def __init__(self) -> None:
        self._empty: dict[str, tuple[int, str]] = {}
        """What came out empty: kind -> (how often, the first place)."""
        self._unread: dict[str, tuple[int, str]] = {}
        """Lines and parts that were not read: type -> (how often, the first place)."""
        self._passed: dict[str, int] = {}
        """Lines that hold nothing of the conversation: type -> how often."""

    def empty(self, what: str, where: str) -> None:
        """Count something without content."""
        before, first = self._empty.get(what, (0, where))
        self._empty[what] = (before + 1, first)

    def unread(self, type: str, where: str, count: int = 1) -> None:
        """Count something that no rule reads."""
        before, first = self._unread.get(type, (0, where))
        self._unread[type] = (before + count, first)

    def passed(self, type: str) -> None:
        """Count a line that is known to hold nothing of the conversation."""
        self._passed[type] = self._passed.get(type, 0) + 1

    @property
    def others(self) -> dict[str, int]:
        """Every type that was left out, with its count."""
        return dict(sorted((self._passed | {type: count for type, (count, _) in self._unread.items()}).items()))

    def warnings(self) -> Iterator[tuple[str, str, WarningKind]]:
        """(place, text, kind) of one warning for each kind of emptiness, and one for all that was not read."""
        for what, (count, first) in self._empty.items():
            yield first, f"{count:,} {what.format(s='' if count == 1 else 's')}; the first is here", "empty"
        if self._unread:
            counts = ", ".join(f"{type} ({count:,})" for type, (count, _) in sorted(self._unread.items()))
            yield next(iter(self._unread.values()))[1], f"not read (the first is here): {counts}", "unread"
