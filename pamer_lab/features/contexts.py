"""Which messages are in a decision point's context: `full`, `current`, `recentK`, or an explicit list.

Knows blocks, not tokens or models.
Invariant: only messages before the decision point's assistant message are chosen, in order, so the future action never enters.
"""

import re
from collections.abc import Sequence

from pamer_lab.blocks import Cut, cut, split
from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.trajectory.values import Message

Context = str | Sequence[int]
"""`full`: everything before the decision. `current`: the prefix. `recentK`: the prefix and the K newest complete blocks.
A list of message indices: exactly those messages."""

_RECENT = re.compile(r"recent([1-9][0-9]*)")
KNOWN = ["full", "current", "recent1", "recent2", "recent4", "recentK"]


def check_context(name: str) -> str:
    """The name, if it is known; else an `UnknownNameError`."""
    if name not in ("full", "current") and not _RECENT.fullmatch(name):
        raise UnknownNameError("context", name, KNOWN)
    return name


def context_name(context: Context) -> str:
    """A short name for tables: an explicit list is `explicit`."""
    return check_context(context) if isinstance(context, str) else "explicit"


def context_messages(messages: Sequence[Message], t: int, context: Context = "full", pieces: Cut | None = None) -> tuple[Message, ...]:
    """The messages of a context at decision point `t`; `pieces` saves cutting the trace again."""
    pieces = pieces or cut(messages)
    end = decision_index(pieces, t, len(messages))
    if not isinstance(context, str):
        return _explicit(messages, context, end)
    check_context(context)
    if context == "full":
        return tuple(messages[:end])
    if context == "current":
        return tuple(messages[: pieces.prefix_end])
    recent = split(pieces.before(t), int(context.removeprefix("recent"))).recent
    start = pieces.blocks[recent[0]].start if recent else end
    return (*messages[: pieces.prefix_end], *messages[start:end])


def decision_index(pieces: Cut, t: int, length: int) -> int:
    """Index of the assistant message of decision point `t`; the point after the last block is allowed."""
    if not 0 <= t <= len(pieces.blocks):
        raise InputError(f"there is no decision point {t}; this trace has 0 to {len(pieces.blocks) - 1}")
    return pieces.blocks[t].start if t < len(pieces.blocks) else length


def _explicit(messages: Sequence[Message], chosen: Sequence[int], end: int) -> tuple[Message, ...]:
    if list(chosen) != sorted(set(chosen)) or (chosen and (chosen[0] < 0 or chosen[-1] >= end)):
        raise InputError(f"message numbers of a context must be ascending and come before the decision ({end} messages)")
    return tuple(messages[index] for index in chosen)
