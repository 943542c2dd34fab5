"""`dedupe-reads`: of identical tool calls, only the newest result stays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.blocks.cut import canonical_arguments
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened

PLACEHOLDER = "[The same call was made again later; its newer result is below]"


@dataclass(frozen=True)
class DedupeReads(PlainPolicy):
    """A file that is read again appears only once, as it was last read."""

    title: ClassVar[str] = "dedupe-reads"
    description: ClassVar[str] = "when a call with the same name and arguments is made again, the older result becomes one line"
    sources: ClassVar[tuple[str, ...]] = ("cc-reducer-proxy; opencode dynamic context pruning, automatic deduplication",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("note", "repeated tool calls are found by tool and arguments, and only the newest output is kept"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "arguments are compared as canonical JSON; reads of overlapping parts of a file are different calls",
        "agents that act in text have no calls to compare, so nothing is left out",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "longdashdot")

    def start(self, resources: Resources) -> PolicySession:
        return _Session(resources)


class _Session:
    def __init__(self, resources: Resources) -> None:
        self._arranged = Arranged()
        self._shortened = Shortened(resources.tokens)
        self._newest: dict[tuple[str, str], tuple[int, int]] = {}
        """Call -> block and place of its newest result."""
        self._repeated: dict[int, set[int]] = {}
        self._items: dict[int, Item | None] = {}
        self._done = 0

    def turn(self, history: History) -> Decision:
        for block in range(self._done, history.t):
            self._read(history, block)
        self._done = history.t
        count = sum(map(len, self._repeated.values()))
        reason = f"newer results of the same call replace {counted(count, 'older result')}" if count else "no call was made twice"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._items)))

    def _read(self, history: History, block: int) -> None:
        messages = history.block_messages(block)
        calls = {call.id: (call.name, canonical_arguments(call.arguments)) for call in messages[0].tool_calls}
        for place, message in enumerate(messages):
            call = calls.get(message.tool_call_id) if message.role == "tool" else None
            if call is None:
                continue
            if call in self._newest:
                self._replace(history, *self._newest[call])
            self._newest[call] = (block, place)

    def _replace(self, history: History, block: int, place: int) -> None:
        places = self._repeated.setdefault(block, set())
        places.add(place)
        edit = f"repeated calls ({', '.join(map(str, sorted(places)))})"
        item = self._shortened.block(history, block, edit, dict.fromkeys(places, PLACEHOLDER))
        if item is not None:
            self._items[block] = item

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is repeated follows from the history."""
