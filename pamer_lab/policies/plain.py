"""What policies without PaMER's controller share: their name and settings, blocks shortened in place, and summaries in the context.

Has no trigger: a subclass or a session decides when and what. Invariants: a shortened block keeps its messages, roles, calls and the
pairing of calls and results; a block is shortened once per edit and then stays byte-identical; what a failed summary would have replaced
stays in the request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from msgspec.structs import replace

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.render import render_message, task_text
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item, Span, Spent, blocks_of, gaps, shared_start, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import BUDGET, SHORTEST, SourceBlock
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, Offered, PolicySession, Resources, add_text, summary_spent
from pamer_lab.trajectory.values import Message, Trace


@dataclass(frozen=True)
class PlainPolicy:
    """Base class of policies without heads; a subclass declares its own facts and parameters and starts its session."""

    title: ClassVar[str]
    description: ClassVar[str]
    sources: ClassVar[tuple[str, ...]]
    facts: ClassVar[tuple[Fact, ...]]
    deviations: ClassVar[tuple[str, ...]]
    family: ClassVar[Family]
    needs_models: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ()
    look: ClassVar[LineLook]
    offered: ClassVar[Offered] = "asked"
    acts_live: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The title and every parameter that differs from its default; the first one without its name."""
        changed = [(number, field.name) for number, field in enumerate(fields(self)) if getattr(self, field.name) != field.default]
        return self.title + "".join(f":{'' if not number else f'{key}='}{_written(getattr(self, key))}" for number, key in changed)

    def settings(self, resources: Resources) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | (resources.identity() if self.needs else {})

    @property
    def reads_recorded_calls(self) -> bool:
        """Whether it replays memory calls that the trace must contain."""
        return "recorded calls" in self.needs

    def refuses(self, trace: Trace) -> str:
        """Why a trace cannot be replayed with it, as a sentence; empty if it can."""
        return ""

    def missing(self) -> str:
        """Which parts of the method's own are not installed, with the command that installs them; empty if none."""
        return ""

    def start(self, resources: Resources) -> PolicySession:
        raise NotImplementedError(f"{type(self).__name__} starts no session")


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Results:
    """Which messages of a block are results: its tool messages, or its user messages as long as no tool has answered.

    The answer for a block depends on nothing after it.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._first_tool: int | None = None

    def of(self, history: History, block: int) -> list[int]:
        """Places of the results among the block's messages."""
        piece = history.blocks[block]
        while self._first_tool is None and self._seen < piece.end:
            self._first_tool = self._seen if history.messages[self._seen].role == "tool" else None
            self._seen += 1
        role = "tool" if self._first_tool is not None and self._first_tool < piece.end else "user"
        return [place for place, message in enumerate(piece.of(history.messages)) if place and message.role == role]


class Shortened:
    """Blocks with shortened texts, each built once."""

    def __init__(self, tokens: MessageTokens) -> None:
        self._tokens = tokens
        self.results = Results()
        self._kept: dict[tuple[int, str], Item | None] = {}

    def known(self, block: int, edit: str) -> bool:
        return (block, edit) in self._kept

    def kept(self, block: int, edit: str) -> Item | None:
        """The block after an edit that was already made."""
        return self._kept[block, edit]

    def block(self, history: History, block: int, edit: str, texts: Mapping[int, str]) -> Item | None:
        """The block with these texts at their places; None if that would not be shorter."""
        if (block, edit) not in self._kept:
            messages = [
                replace(message, content=texts[place]) if place in texts else message
                for place, message in enumerate(history.block_messages(block))
            ]
            size = self._tokens.total(messages)
            text = "".join(render_message(message) for message in messages)
            shorter = size < history.tokens([(block, block + 1)])
            replaced = tuple((place, len(texts[place])) for place in range(len(messages)) if place in texts)
            self._kept[block, edit] = Item("edited", size, ((block, block + 1),), edit, text, replaced=replaced) if shorter else None
        return self._kept[block, edit]

    def size(self, message: Message) -> int:
        """Tokens of one message."""
        return self._tokens.total([message])


def arranged(history: History, other: Mapping[int, Item | None], first: int = 0, last: int | None = None) -> Iterator[Item]:
    """The history's blocks from `first` on: raw, except those with an item in `other` (None: left out)."""
    place = first
    for block in sorted(other):
        if block < place:
            continue
        yield from history.raw([(place, block)])
        if (item := other[block]) is not None:
            yield item
        place = block + 1
    yield from history.raw([(place, history.t if last is None else last)])


def head_tokens(history: History) -> int:
    """Tokens of the items that every context starts with."""
    return sum(item.tokens for item in history.head())


class Arranged:
    """`arranged` turn by turn: everything before the first change is reused, so that a turn costs only what it changes."""

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._edits: list[Item | None] = []
        self._laid: list[Item] = []
        self._counts: list[int] = []
        """Number of items up to and including each edited block."""
        self._sums: list[int] = []
        """Their tokens."""
        self.tokens = 0
        """Tokens of the blocks as they were laid out last."""
        self._given: tuple[list[int], list[Item | None]] = ([], [])
        """The edits of the last call."""

    def __call__(self, history: History, other: Mapping[int, Item | None]) -> tuple[Item, ...]:
        given = [*other], [*other.values()]
        if given != self._given:
            self._given = given
            self._lay_out(history, other)
        return self.again(history)

    @property
    def edited(self) -> int:
        """Number of edits of the last call."""
        return len(self._blocks)

    def again(self, history: History) -> tuple[Item, ...]:
        """The blocks up to now with the edits of the last call."""
        rest = history.raw([(self._blocks[-1] + 1 if self._blocks else 0, history.t)])
        self.tokens = (self._sums[-1] if self._sums else 0) + sum(item.tokens for item in rest)
        return (*self._laid, *rest)

    def _lay_out(self, history: History, other: Mapping[int, Item | None]) -> None:
        blocks = sorted(other)
        edits = self._given[1] if blocks == self._given[0] else [*map(other.__getitem__, blocks)]
        same = min(shared_start(self._blocks, blocks), shared_start(self._edits, edits))
        del self._laid[self._counts[same - 1] if same else 0 :], self._counts[same:], self._sums[same:]
        for number in range(same, len(blocks)):
            new = history.raw([(blocks[number - 1] + 1 if number else 0, blocks[number])])
            new += [item] if (item := edits[number]) is not None else []
            self._laid += new
            self._counts.append(len(self._laid))
            self._sums.append((self._sums[-1] if self._sums else 0) + sum(item.tokens for item in new))
        self._blocks, self._edits = blocks, edits


class SummarySession:
    """Turns older blocks into summaries that stay in the context; `due` decides when.

    After a failed summary the request is sent unchanged, and the next turn tries again.
    """

    heading: ClassVar[str] = "Summary of steps {first} to {last} of this session"
    accumulates = False
    """Whether a new summary is added to the others; otherwise it replaces them and covers what they covered."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.summaries: tuple[Item, ...] = ()

    def due(self, history: History) -> tuple[list[int], str]:
        """The blocks to summarise now and why; no blocks: why not yet."""
        raise NotImplementedError(type(self).__name__)

    def candidate(self, history: History, blocks: Sequence[int]) -> int:
        """Tokens that a summary could replace now: those of the blocks that are due."""
        return history.tokens(spans_of(blocks))

    def rereads(self, history: History, blocks: Sequence[int]) -> bool:
        """Whether a summary of these blocks reads all raw blocks before them again, instead of the last summary."""
        return False

    def fits_source(self, history: History, blocks: Sequence[int]) -> bool:
        """Whether every message up to these blocks can keep some text in a summary's source: beyond that, rereading them all would add
        little, and a replay's time would grow with the square of its turns."""
        return (history.blocks[blocks[-1]].end - history.prefix_end) * SHORTEST <= BUDGET

    def turn(self, history: History) -> Decision:
        blocks, reason = self.due(history)
        candidate = self.candidate(history, blocks)
        if not blocks:
            return Decision("pass", reason, self.items(history), candidate_tokens=candidate)
        try:
            item, spent = self.summarise(history, blocks)
        except LabError as error:
            return self.fallback(history, candidate, error)
        self.summaries = (*self.summaries, item) if self.accumulates else (item,)
        reason = f"{reason}: {counted(len(blocks_of(item.spans)), 'block')} became a summary of {item.tokens:,} tokens"
        return Decision("compress", reason, self.items(history), candidate_tokens=candidate, spent=(spent,))

    def resume(self, decisions: Sequence[Decision]) -> None:
        kept = [decision for decision in decisions if decision.action != "fallback"]
        self.summaries = tuple(item for item in kept[-1].items if item.kind == "summary") if kept else ()

    def items(self, history: History) -> tuple[Item, ...]:
        return (*history.head(), *self.summaries, *self.rest(history))

    def rest(self, history: History) -> Sequence[Item]:
        """What follows the summaries: the blocks that no summary covers."""
        return history.raw(gaps(self.covered(), history.t))

    def covered(self) -> list[Span]:
        """The blocks that the summaries replace, in order."""
        return [span for item in self.summaries for span in item.spans]

    def waiting(self, history: History, last: int) -> list[int]:
        """Complete blocks before `last` that no summary covers."""
        return [block for block in blocks_of(gaps(self.covered(), max(last, 0))) if history.blocks[block].complete]

    def size(self, history: History) -> int:
        """Tokens of the request as it would be sent now."""
        return sum(item.tokens for item in self.items(history))

    def summarise(self, history: History, blocks: Sequence[int]) -> tuple[Item, Spent]:
        """One summary of these blocks and, unless `accumulates`, of everything summarised before."""
        before = [] if self.accumulates else blocks_of(self.covered())
        covered = sorted({*before, *blocks})
        raw = self.rereads(history, blocks)
        source = [SourceBlock(number, tuple(history.block_messages(number))) for number in (covered if raw else blocks)]
        if before and not raw:
            source.insert(0, SourceBlock(before[0], tuple(Message("user", item.text) for item in self.summaries)))
        summary = self.resources.summariser.summarise(task_text(history.messages[: history.prefix_end]), source)
        heading = self.heading.format(first=covered[0], last=covered[-1])
        text = f"[{heading}]\n{summary.text}\n[End of the summary]"
        item = add_text("summary", text, spans_of(covered), self.resources.tokens, source=f"steps {covered[0]}-{covered[-1]}")
        return item, summary_spent(summary, source, self.resources)

    def fallback(self, history: History, candidate: int, error: LabError) -> Decision:
        usage = usage_of(error)
        return Decision(
            "fallback",
            "the summary failed; the request is sent unchanged",
            (*history.head(), *history.raw([(0, history.t)])),
            candidate_tokens=candidate,
            error=str(error),
            spent=(Spent.of("summary", self.resources.summariser.name, usage),) if usage.calls else (),
        )
