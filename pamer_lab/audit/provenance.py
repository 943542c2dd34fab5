"""Is a restored step identical to the trace? Follows a selection's step to the uploaded block and checks each hash.

A step's memory names the hash that its raw block was archived under. Both the archived bytes and the same block of the uploaded trace
are hashed again and compared with it.
Invariant: a text is called equal only after both hashes were computed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pamer_lab.blocks import Cut, cut
from pamer_lab.blocks.render import render_message
from pamer_lab.controller.request import as_chat, read_message
from pamer_lab.errors import LabError, StorageError
from pamer_lab.memory import CoveredBlock, MemoryStore, SessionMemory
from pamer_lab.memory.records import pack, unpack
from pamer_lab.memory.schema import BLOCKS
from pamer_lab.storage import equals
from pamer_lab.trajectory.values import Trace

Check = Literal["equal", "differs", "not archived", "damaged", "no trace", "unknown step"]
"""`equal`: archive and upload have the same bytes. `differs`: both exist and are not the same. `not archived`: the raw block is not in the
archive. `damaged`: the archived bytes do not match their hash. `no trace`: nothing was uploaded to compare with. `unknown step`: no
memory of the session covers it now."""


@dataclass(frozen=True)
class Step:
    """One step, with its text and the outcome of its check."""

    step: int
    check: Check
    memory_id: str = ""
    detail: str = ""
    """The step's line in its summary's index."""
    tokens: int = 0
    text: str = ""
    """The raw block as the model reads it, from the archive; from the trace if the archive has none."""
    raw_hash: str = ""
    """The hash that the memory names."""
    trace_hash: str = ""
    """The hash of the uploaded block."""


class Provenance:
    """Looks up steps of one session in its memory, in the archive and in the trace."""

    def __init__(self, memory: SessionMemory, store: MemoryStore, trace: Trace | None) -> None:
        self._covered: dict[int, tuple[str, CoveredBlock]] = {
            block.step: (entry.memory_id, block) for entry in memory.memories for block in entry.blocks
        }
        self._store = store
        self._trace = trace
        self._pieces: Cut | None = cut(trace.messages) if trace is not None else None

    @property
    def details(self) -> Mapping[int, str]:
        """Covered step -> its line in the index."""
        return {step: block.detail for step, (_, block) in self._covered.items()}

    def step(self, number: int) -> Step:
        """One step with its text and the outcome of the check."""
        chat = self._uploaded(number)
        trace_hash = _hash(chat)
        if number not in self._covered:
            return Step(number, "unknown step", text=_text(chat), trace_hash=trace_hash)
        memory_id, block = self._covered[number]
        known = {"memory_id": memory_id, "detail": block.detail, "tokens": block.tokens, "raw_hash": block.raw_hash}
        try:
            archived = unpack(self._store.raw_blocks([block.raw_hash])[block.raw_hash])
        except StorageError:
            stored = self._store.database.count(BLOCKS, equals("raw_hash", block.raw_hash))
            check: Check = "damaged" if stored else "not archived"
            return Step(number, check, text=_text(chat), trace_hash=trace_hash, **known)  # type: ignore[arg-type]
        check = "no trace" if self._trace is None else "equal" if trace_hash == block.raw_hash else "differs"
        return Step(number, check, text=_text(archived), trace_hash=trace_hash, **known)  # type: ignore[arg-type]

    def next_action(self, turn: int) -> str:
        """What the agent did at this turn, as it was recorded; empty without the trace."""
        if self._trace is None or self._pieces is None or not 0 <= turn < len(self._pieces.blocks):
            return ""
        said = self._trace.messages[self._pieces.blocks[turn].start]
        return "\n".join(filter(None, [said.content, *(f"{call.name}({call.arguments})" for call in said.tool_calls)]))

    def _uploaded(self, number: int) -> list[dict[str, Any]]:
        if self._trace is None or self._pieces is None or not 0 <= number < len(self._pieces.blocks):
            return []
        return [as_chat(message) for message in self._pieces.blocks[number].of(self._trace.messages)]


def _hash(chat: Sequence[dict[str, Any]]) -> str:
    try:
        return pack(chat).raw_hash if chat else ""
    except StorageError:
        return ""


def _text(chat: Sequence[dict[str, Any]]) -> str:
    try:
        return "".join(render_message(read_message(item, "step")) for item in chat)
    except LabError as error:
        return f"(this block cannot be shown: {error})"
