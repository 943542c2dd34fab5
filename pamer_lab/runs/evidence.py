"""Evidence survival: is what a later action uses still in front of the model when it acts?

A use is an identifier that first appeared in a tool result and occurs in a later recorded assistant message, in its text or in a call's
arguments. An agent that acts in text alone (SWE-agent, ReAct) has no tool message: there the environment answers as the user, and those
answers count as results; so does, in any trace, a result whose call was not recorded. At that turn the identifier is looked for, in this
order: in raw messages of the request (`active`, also in what an edit left of a message), in restored raw steps (`restored`), in a summary
that is in the request (`summary`), in what memory keeps but the request lacks (`memory`), and otherwise it is `gone`. Matching is by
words, not meaning: a paraphrase counts as lost.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from pamer_lab.decisions import Span
from pamer_lab.runs.identifiers import IdentifierKind, holds, identifiers
from pamer_lab.runs.timeline import Timeline, stored_timeline
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message
from pamer_lab.workspace import Workspace

Survival = Literal["active", "restored", "summary", "memory", "gone"]
FATES: tuple[Survival, ...] = ("active", "restored", "summary", "memory", "gone")
IN_CONTEXT: tuple[Survival, ...] = ("active", "restored", "summary")
"""Fates that put the identifier before the model."""

MOST_LOOKED = 5_000_000_000
"""Characters of one trace that are searched for identifiers: a few seconds. Only a trace made for the purpose comes near."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Use:
    """One identifier used by one recorded action; the same for every policy."""

    value: str
    kind: IdentifierKind
    t: int
    """The action that uses it."""
    seen_in: int
    """The block whose tool result showed it first."""
    blocks: tuple[int, ...]
    """Every block before `t` that holds it."""


@dataclass(frozen=True)
class Fate:
    """What became of a used identifier under a policy."""

    use: Use
    survival: Survival
    where: str
    """The block, memory or text that still holds it."""


class Uses(list[Use]):
    """Uses in turn order."""

    stopped: int | None = None
    """The turn at which the search reached its limit; later uses are missing. None: the search is complete."""

    @property
    def sentence(self) -> str:
        """What is missing, as a sentence; empty if nothing is."""
        if self.stopped is None:
            return ""
        return f"Evidence was searched up to turn {self.stopped}: the rest of this trace takes too long. Later uses are missing."


def stored_uses(folder: str, trace_id: str, profile: str) -> dict[str, Any]:
    """The uses in a stored trace, as values that another process can read."""
    workspace = Workspace(folder)
    found = uses(stored_timeline(workspace.trace(trace_id), profile, workspace))
    return {"uses": found, "stopped": found.stopped}


def uses(timeline: Timeline, most: int = MOST_LOOKED) -> Uses:
    """All uses of evidence in a trace; if the search reaches `most` characters, those found so far, with `stopped` set."""
    looked = Looked(most)
    messages, pieces = timeline.trace.messages, timeline.pieces
    results = result_roles(messages)
    given = Words("\n".join(message_text(message) for message in messages[: pieces.prefix_end]), looked)
    first_seen: dict[str, tuple[int, IdentifierKind]] = {}
    found = Uses()
    texts: list[Words] = []
    for block in pieces.blocks[: timeline.turns]:
        action, *rest = block.of(messages)
        said = message_text(action)
        for value in identifiers(said):
            if value in first_seen:
                seen, kind = first_seen[value]
                if seen >= 0:
                    held = tuple(number for number in range(seen, len(texts)) if texts[number].hold(value))
                    if looked.left < 0:
                        found.stopped = block.index
                        return found
                    found.append(Use(value, kind, block.index, seen, held or (seen,)))
            else:
                # Said by the agent before any tool showed it: its own idea, not evidence.
                first_seen[value] = (-1, "id")
        for message in rest:
            origin = block.index if message.role in results or message.result else -1
            for value, kind in identifiers(message.content).items():
                if value not in first_seen:
                    first_seen[value] = (-1 if origin < 0 or given.hold(value) else origin, kind)
        texts.append(Words("\n".join([said, *(message.content for message in rest)]), looked))
    return found


@dataclass
class Looked:
    """Number of characters that may still be searched."""

    left: int


class Words:
    """A text with the set of its words, so that it is searched only for identifiers whose words it contains."""

    def __init__(self, text: str, looked: Looked) -> None:
        self._text, self._looked = text, looked
        self._words = frozenset(_WORD.findall(text))

    def hold(self, value: str) -> bool:
        """Whether the text holds the identifier word for word."""
        if self._looked.left < 0 or not self._words.issuperset(_WORD.findall(value)):
            return False
        self._looked.left -= len(self._text)
        return holds(self._text, value)


def fates(timeline: Timeline, turns: Sequence[Turn], used: Sequence[Use] | None = None) -> list[Fate]:
    """Where each used identifier was when it was used, under the run that `turns` belong to."""
    used = uses(timeline) if used is None else used
    return [_fate(use, turns[use.t]) for use in used if use.t < len(turns)]


def survival_rates(found: Sequence[Fate]) -> dict[str, Any]:
    """Counts by fate, and the share that was before the model; None where nothing was used."""
    counts: dict[str, int] = {fate: sum(entry.survival == fate for entry in found) for fate in FATES}
    kept = sum(counts[fate] for fate in IN_CONTEXT)
    return {"uses": len(found), **counts, "in_context_pct": 100 * kept / len(found) if found else None}


def result_roles(messages: Sequence[Message]) -> frozenset[str]:
    """Roles whose messages inside a block are results of the agent's actions."""
    return frozenset({"tool"}) if any(message.role == "tool" for message in messages) else frozenset({"user"})


def message_text(message: Message) -> str:
    """What a message says, with the values of its calls' arguments, free of JSON's escapes."""
    return "\n".join([message.content, *(text for call in message.tool_calls for text in _values(call.arguments))])


def _values(arguments: str) -> Iterator[str]:
    """Keys and values of JSON arguments as plain texts; arguments that are not JSON as they are."""
    try:
        pending = [orjson.loads(arguments)]
    except orjson.JSONDecodeError:
        yield arguments
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += reversed([part for pair in value.items() for part in pair])
        elif isinstance(value, list):
            pending += reversed(value)
        else:
            yield str(value)


def _fate(use: Use, turn: Turn) -> Fate:
    active = next((number for number in use.blocks if turn.states[number] == "A"), None)
    if active is not None:
        return Fate(use, "active", f"block {active}")
    holding = set(use.blocks)
    texts = [item for item in turn.items if item.text and (item.kind != "edited" or item.spans[0][0] in holding)]
    for kinds, survival in ((("edited",), "active"), (("evidence",), "restored"), (("summary", "recalled"), "summary")):
        for item in texts:
            if item.kind in kinds and holds(item.text, use.value):
                where = f"block {item.spans[0][0]}, {item.source}" if item.kind == "edited" else item.source or item.kind
                return Fate(use, survival, where)  # type: ignore[arg-type]
    kept = next((number for number in use.blocks if _covered(number, turn.stored)), None)
    if kept is not None:
        return Fate(use, "memory", f"block {kept} in memory")
    return Fate(use, "gone", "")


def _covered(block: int, spans: Sequence[Span]) -> bool:
    return any(first <= block < last for first, last in spans)
