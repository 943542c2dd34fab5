"""The detail line of a step as the extractive summariser writes it: what was called and said, and what came back.

`calls | says: names -> the most telling line | names: further names`. Knows the line's form, nothing of routing. The router reads the
parts back; a line in any other form, such as a model's sentence, has no parts and is read as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.memory.source import clip

ARROW, SAYS, NAMES = " -> ", " | says: ", " | names: "
DETAIL_CHARACTERS = 280
"""Longest step detail."""
CALL_CHARACTERS = 110
"""Longest form of one tool call, and of all calls together."""
SAYS_CHARACTERS = 50
"""Most that names of the agent's own message may take."""
LINE_CHARACTERS = 80
"""Longest form of the telling line; shorter where names need the room."""


@dataclass(frozen=True)
class StepDetail:
    """The parts of a detail line."""

    calls: str = ""
    says: tuple[str, ...] = ()
    """Names in the agent's message that its calls do not hold."""
    line: str = ""
    """The most informative line of the results."""
    names: tuple[str, ...] = ()
    """Names of the results that the line does not hold, the most useful first."""

    def text(self) -> str:
        """One line within `DETAIL_CHARACTERS`; names that do not fit are left out."""
        before = _plain(clip(self.calls, CALL_CHARACTERS)) + _listed(SAYS, self.says, SAYS_CHARACTERS)
        line = _plain(clip(self.line, LINE_CHARACTERS))
        after = line + _listed(NAMES, self.names, DETAIL_CHARACTERS - len(before) - len(ARROW) - len(line))
        return " ".join((before + ARROW + after if after else before).split()) or "(no text)"


def read_detail(text: str) -> StepDetail | None:
    """The parts of a line that `StepDetail.text` wrote; None for a line in any other form."""
    before, arrow, after = f" {text} ".partition(ARROW)
    if not arrow and SAYS not in before:
        return None
    calls, _, says = before.partition(SAYS)
    line, _, names = f" {after}".partition(NAMES)
    return StepDetail(calls.strip(), _split(says), line.strip(), _split(names))


def _plain(text: str) -> str:
    """A text that cannot be taken for one of the line's marks."""
    text = " ".join(text.split())
    for mark in (ARROW, SAYS, NAMES):
        text = text.replace(mark, f" {mark.strip()[:-1]} ")
    return text


def _listed(mark: str, names: Sequence[str], room: int) -> str:
    """The first names that fit, after their mark; empty if none does."""
    kept: list[str] = []
    room -= len(mark)
    for name in names:
        if len(name) + 2 * bool(kept) <= room and ", " not in name:
            kept.append(name)
            room -= len(name) + 2 * (len(kept) > 1)
    return mark + ", ".join(kept) if kept else ""


def _split(names: str) -> tuple[str, ...]:
    return tuple(name for name in names.strip().split(", ") if name)
