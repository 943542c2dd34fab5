"""Algorithm 2 of the paper: which raw history a router's answer may release.

A pure component: no model, no store, no clock. Invariant: an empty step set is a valid selection of nothing, whatever ids come with
it; otherwise a summary or step that is unknown, repeated, from another session, or not covered by a chosen summary makes the selection
invalid, with the reason; only complete blocks are released, byte for byte as archived. Choosing a summary does not release its other steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pamer_lab.blocks import is_complete
from pamer_lab.controller.request import read_message
from pamer_lab.errors import InputError, LabError, StorageError
from pamer_lab.memory import CoveredBlock, Memory, RawBlock, SessionMemory
from pamer_lab.memory.records import memory_faults, unpack
from pamer_lab.trajectory.values import Message

KEYS = {"summary_ids", "raw_steps_needed"}
"""What an answer must have; it may also have a `goal`."""
GOAL_CHARACTERS = 2_000
"""Maximum length of a router's goal."""


class SelectionRefusedError(LabError):
    """Raised when a selection is not valid; the message is the reason, for the audit row."""


@dataclass(frozen=True)
class Selection:
    """A valid selection: summaries, and the chosen steps that they cover."""

    memories: tuple[Memory, ...]
    """In the order of their ids."""
    blocks: tuple[CoveredBlock, ...]
    """In the order of their steps."""
    goal: str = ""

    @property
    def memory_ids(self) -> tuple[str, ...]:
        return tuple(memory.memory_id for memory in self.memories)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(block.step for block in self.blocks)

    @property
    def tokens(self) -> int:
        """Tokens of the chosen steps."""
        return sum(block.tokens for block in self.blocks)

    @property
    def covered_tokens(self) -> int:
        """Tokens of all steps that the chosen summaries cover."""
        return sum(memory.tokens for memory in self.memories)


@dataclass(frozen=True)
class Evidence:
    """One chosen step as it was archived."""

    memory_id: str
    covered: CoveredBlock
    chat: tuple[dict[str, Any], ...]
    """The caller's own messages."""
    messages: tuple[Message, ...]


def select(session: SessionMemory, answer: Any) -> Selection:
    """The selection that an answer asks for, or a `SelectionRefusedError`; the answer may be of any type and form."""
    summary_ids, steps, goal = _shape(answer)
    if not steps:
        return Selection((), (), goal)
    _check_ids(summary_ids, steps, session)
    memories = tuple(session.by_id[name] for name in sorted(summary_ids))
    if faults := memory_faults(memories):
        raise SelectionRefusedError(f"a chosen summary is damaged: {faults[0]}")
    allowed = {block.step: block for memory in memories for block in memory.blocks}
    known = {block.step for memory in session.memories for block in memory.blocks}
    for step in steps:
        if step not in known:
            raise SelectionRefusedError(f"unknown step {step}: no memory of this session covers it")
        if step not in allowed:
            raise SelectionRefusedError(f"step {step} is not authorised: no chosen summary covers it")
    return Selection(memories, tuple(allowed[step] for step in sorted(steps)), goal)


def evidence(selection: Selection, archive: Mapping[str, RawBlock]) -> tuple[Evidence, ...]:
    """The chosen blocks, each complete and matching the hash it was archived under."""
    owner = {block.step: memory.memory_id for memory in selection.memories for block in memory.blocks}
    found: list[Evidence] = []
    for block in selection.blocks:
        raw = archive.get(block.raw_hash)
        if raw is None or raw.raw_hash != block.raw_hash:
            raise SelectionRefusedError(f"the raw block of step {block.step} is missing")
        try:
            chat = tuple(unpack(raw))
            messages = tuple(read_message(item, f"step {block.step}") for item in chat)
        except (StorageError, InputError, ValueError) as error:
            raise SelectionRefusedError(f"the raw block of step {block.step} has changed since it was archived ({error})") from error
        if not messages or messages[0].role != "assistant" or not is_complete(messages):
            raise SelectionRefusedError(f"the raw block of step {block.step} is not complete")
        found.append(Evidence(owner[block.step], block, chat, messages))
    return tuple(found)


def _shape(answer: Any) -> tuple[list[str], list[int], str]:
    """The answer's parts, after checking their types."""
    if not isinstance(answer, dict) or set(answer) - {"goal"} != KEYS:
        raise SelectionRefusedError(f"malformed: the answer must be an object with the keys {', '.join(sorted(KEYS))} and goal")
    summary_ids, steps, goal = answer["summary_ids"], answer["raw_steps_needed"], answer.get("goal", "")
    if not isinstance(goal, str) or len(goal) > GOAL_CHARACTERS:
        raise SelectionRefusedError("malformed: the goal is not a short text")
    if not isinstance(summary_ids, list) or not all(type(name) is str for name in summary_ids):
        raise SelectionRefusedError("malformed: summary_ids is not a list of strings")
    if not isinstance(steps, list) or not all(type(step) is int for step in steps):
        raise SelectionRefusedError("malformed: raw_steps_needed is not a list of step numbers")
    return summary_ids, steps, goal


def _check_ids(summary_ids: Sequence[str], steps: Sequence[int], session: SessionMemory) -> None:
    """Refuse ids that are too many, repeated, or not of this session."""
    if len(summary_ids) > len(session.memories) or len(steps) > len(session.covered):
        raise SelectionRefusedError(f"over-long: {len(summary_ids)} summaries and {len(steps)} steps are more than there are")
    if (repeated := _repeated(summary_ids)) is not None:
        raise SelectionRefusedError(f"duplicate summary {repeated!r}")
    if (twice := _repeated(steps)) is not None:
        raise SelectionRefusedError(f"duplicate step {twice}")
    for name in summary_ids:
        if name not in session.by_id:
            raise SelectionRefusedError(f"unknown summary {name[:80]!r}: it is not of this session")


def _repeated(values: Sequence[Any]) -> Any:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
