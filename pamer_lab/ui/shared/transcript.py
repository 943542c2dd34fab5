"""A trace as its reader sees it: bodies by block, an outline, windows of bodies, search. Knows nothing of Streamlit.

Invariant: every text of a trace is in exactly one body, a window has at most as many bodies as asked for (or one block), and search covers
all bodies whether or not they are on the page.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from pamer_lab.blocks import Block, block_sizes, context_before, cut
from pamer_lab.figures.text import one_line
from pamer_lab.runs.recorded import EDITS
from pamer_lab.trajectory import Event, Label, Message, Trace

PREFIX = -1
"""Block number of everything before the first assistant message."""

Kind = Literal["text", "thinking", "call", "result", "event"]
"""`text`: what a message says. `thinking`: reasoning kept apart from the context. `call`: a tool call's arguments.
`result`: what the tool answered. `event`: something the source recorded in addition to the messages."""


@dataclass(frozen=True)
class Body:
    """One piece of text on the page."""

    block: int
    kind: Kind
    message: int
    """Index of its message; for an event, of the message after it."""
    part: int
    """Number of the call within its message, or of the event within the trace; 0 otherwise."""
    role: str
    name: str
    """The tool's or speaker's name, as the source wrote it."""
    text: str

    @property
    def key(self) -> str:
        return f"{self.kind}-{self.message}-{self.part}"


@dataclass(frozen=True)
class Hit:
    """Where a search found its text."""

    block: int
    body: str
    """Key of the body."""
    start: int
    end: int
    """Where in the body's text; both 0 when the tool's name was found."""


class Transcript:
    """A trace cut into blocks, with its token counts."""

    def __init__(self, trace: Trace, message_tokens: Sequence[int], tools_tokens: int) -> None:
        self.trace = trace
        self.message_tokens = message_tokens
        self.tools_tokens = tools_tokens
        self.pieces = cut(trace.messages)
        self.sizes = block_sizes(self.pieces, message_tokens)
        self.before = context_before(self.pieces, message_tokens, tools_tokens)

    @property
    def prefix_tokens(self) -> int:
        return sum(self.message_tokens[: self.pieces.prefix_end])

    @cached_property
    def labels(self) -> dict[int, list[Label]]:
        """Labels by decision point."""
        found: dict[int, list[Label]] = defaultdict(list)
        for label in self.trace.labels:
            found[label.t].append(label)
        return found

    @cached_property
    def events(self) -> dict[int, list[tuple[int, Event]]]:
        """Numbered events by their block; those after the last message belong to the last block."""
        found: dict[int, list[tuple[int, Event]]] = defaultdict(list)
        for number, event in enumerate(self.trace.events):
            found[self.block_of(event.before_message)].append((number, event))
        return found

    def block_of(self, message: int) -> int:
        """The block that holds a message."""
        return bisect_right(self.pieces.blocks, message, key=lambda block: block.start) - 1

    def bodies(self, block: int) -> list[Body]:
        """Everything to read in one block: events, text, thinking, then each call with its result."""
        found = [
            Body(block, "event", event.before_message, number, "event", event.kind, event.text)
            for number, event in self.events.get(block, ())
            if event.text
        ]
        if block == PREFIX:
            messages = enumerate(self.trace.messages[: self.pieces.prefix_end])
            return found + [Body(PREFIX, "text", index, 0, message.role, message.name, message.content) for index, message in messages]
        return found + list(self._block_bodies(self.pieces.blocks[block]))

    def _block_bodies(self, block: Block) -> Iterator[Body]:
        messages = self.trace.messages
        said = messages[block.start]
        if said.thinking:
            yield Body(block.index, "thinking", block.start, 0, "assistant", said.name, said.thinking)
        if said.content or not said.tool_calls:
            yield Body(block.index, "text", block.start, 0, "assistant", said.name, said.content)
        answers = {messages[index].tool_call_id: index for index in range(block.start + 1, block.end) if messages[index].role == "tool"}
        paired: set[int] = set()
        for number, call in enumerate(said.tool_calls):
            yield Body(block.index, "call", block.start, number, "assistant", call.name, call.arguments)
            if call.id in answers:
                paired.add(answers[call.id])
                yield _answer(block.index, answers[call.id], messages[answers[call.id]])
        for index in range(block.start + 1, block.end):
            if index not in paired:
                yield _answer(block.index, index, messages[index])

    @cached_property
    def counts(self) -> list[int]:
        """Number of bodies of each block, without building them."""
        found: list[int] = []
        for block in self.pieces.blocks:
            said = self.trace.messages[block.start]
            own = bool(said.thinking) + (1 if said.content or not said.tool_calls else 0) + len(said.tool_calls)
            events = sum(bool(event.text) for _, event in self.events.get(block.index, ()))
            found.append(own + events + block.end - block.start - 1)
        return found

    def window(self, first: int, limit: int) -> range:
        """The blocks from `first` on whose bodies fit on one page; at least one."""
        last, room = first, limit
        while last < len(self.counts) and (last == first or self.counts[last] <= room):
            room -= self.counts[last]
            last += 1
        return range(first, last)

    def window_before(self, first: int, limit: int) -> int:
        """Where a page that ends just before `first` begins."""
        start, room = first, limit
        while start > 0 and (start == first or self.counts[start - 1] <= room):
            start -= 1
            room -= self.counts[start]
        return start

    @cached_property
    def outline(self) -> list[dict[str, str | int]]:
        """One row per block: what it does, its tokens, its marks."""
        return [self._outline_row(block) for block in self.pieces.blocks]

    def _outline_row(self, block: Block) -> dict[str, str | int]:
        said = self.trace.messages[block.start]
        tools = ", ".join(dict.fromkeys(call.name for call in said.tool_calls))
        what = one_line(tools, 40) if tools else one_line(said.content, 60) or "(no text)"
        return {"block": block.index, "what": what, "tokens": self.sizes[block.index], "marks": self.marks(block.index)}

    def marks(self, block: int, *, edits: bool = True) -> str:
        """`▼` where compression was needed or recorded, `▲` for recall, `✕` for a failed tool, `…` for a missing result.

        `edits`: include the source's own compactions; a chart that draws them with their sizes leaves them out here.
        """
        piece = self.pieces.blocks[block]
        kinds = {event.kind for _, event in self.events.get(block, ())}
        targets = {label.target for label in self.labels.get(block, ()) if label.value}
        failed = any(message.error for message in piece.of(self.trace.messages))
        signs = [
            ("▼", "compression" in targets or kinds & {"memory_write", *(EDITS if edits else ())}),
            ("▲", "recall" in targets or "memory_read" in kinds),
            ("✕", failed),
            ("…", not piece.complete),
        ]
        return " ".join(sign for sign, present in signs if present)

    def find(self, words: str, limit: int) -> list[Hit]:
        """Hits in reading order, case ignored; at most `limit`."""
        hits: list[Hit] = []
        if not words:
            return hits
        words = _folded(words)
        for block in range(PREFIX, len(self.pieces.blocks)):
            for body in self.bodies(block):
                if body.kind == "call" and words in _folded(body.name):
                    hits.append(Hit(block, body.key, 0, 0))
                hits.extend(Hit(block, body.key, start, start + len(words)) for start in islice(_places(words, body.text), limit))
                if len(hits) >= limit:
                    return hits[:limit]
        return hits


def _folded(text: str) -> str:
    """The text in lower case, character for character, so that positions in it are positions in the text."""
    return text.replace("İ", "i").lower().replace("ς", "σ")


def _places(words: str, text: str) -> Iterator[int]:
    """Where folded words begin; `str.find` takes linear time for any words, unlike a pattern that ignores case."""
    folded = _folded(text)
    start = folded.find(words)
    while start >= 0:
        yield start
        start = folded.find(words, start + len(words))


def _answer(block: int, index: int, message: Message) -> Body:
    return Body(block, "result" if message.role == "tool" else "text", index, 0, message.role, message.name, message.content)
