"""What a run would be billed with prompt caching: per turn, in total, and relative to the base agent.

The model: a request is compared with every earlier one of its run that was sent within the cache's lifetime. The longest common prefix of
what was sent, cut down to the table's granularity and dropped below its minimum, is read; the rest of the request, cut down the same way,
is written; what is left over is uncached. Times are the trace's recorded ones; without them every earlier request counts as cached.
The base agent needs no run: it sends the recorded history, so each request begins with the previous one. Simulated: no provider was asked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pamer_lab.blocks import TokenCounter
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.prices import MILLION, PriceTable
from pamer_lab.runs.accounting import COMPUTATION
from pamer_lab.runs.prefix_cache import Key, PrefixTree, counted_start, pieces_of
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Run, Turn

NO_TIMES = "the trace has no timestamps, so every earlier request counts as still cached"
FREE = "the base agent costs nothing at these prices, so no cost relative to it is given"
PARTS = ("read", "write", "uncached", "output", "auxiliary")
"""What a cost is made of."""


@dataclass(frozen=True)
class TurnCost:
    """The billed tokens of one request."""

    t: int
    read: int
    write: int
    uncached: int
    output: int
    aux_input: int = 0
    """Input of the policy's own model calls."""
    aux_output: int = 0
    rewritten: int = 0
    """Tokens that the previous request had too, but that moved to where the cache cannot serve them."""
    aux_read: int = 0
    """The part of `aux_input` that is billed as read from the cache; the rest is billed as uncached."""

    def money(self, prices: PriceTable) -> dict[str, float]:
        """Its cost by part."""
        parts = {name: getattr(self, name) * getattr(prices, name) / MILLION for name in PARTS[:-1]}
        own = self.aux_read * prices.read + (self.aux_input - self.aux_read) * prices.uncached + self.aux_output * prices.output
        return parts | {"auxiliary": own / MILLION}


@dataclass(frozen=True)
class RunCost:
    """The cost of a run at one table's prices."""

    prices: PriceTable
    turns: tuple[TurnCost, ...]
    base_total: float
    """Cost of the base agent on the same turns."""
    timed: bool
    """Whether recorded timestamps decided what was still cached."""
    rules: tuple[int, int] = (0, 0)
    """Input and output tokens of work that rules did in place of a model."""
    previous_only: float = 0.0
    """What the run would cost if the cache kept only the previous request."""

    @cached_property
    def parts(self) -> dict[str, float]:
        """Cost by part, of all turns."""
        each = [turn.money(self.prices) for turn in self.turns]
        return {name: sum(parts[name] for parts in each) for name in PARTS}

    @cached_property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def vs_base(self) -> float | None:
        """None where the base agent costs nothing."""
        return self.total / self.base_total if self.base_total else None

    @cached_property
    def tokens(self) -> dict[str, int]:
        names = ("read", "write", "uncached", "output", "aux_input", "aux_output", "rewritten")
        return {name: sum(getattr(turn, name) for turn in self.turns) for name in names}

    @property
    def uncached_share(self) -> float:
        """Share of main input that was not read from the cache."""
        sent = self.tokens["read"] + self.tokens["write"] + self.tokens["uncached"]
        return 1 - self.tokens["read"] / sent if sent else 0.0

    @property
    def notes(self) -> list[str]:
        untimed = self.prices.caches and not self.timed
        return [*([NO_TIMES] if untimed else []), *([] if self.base_total else [FREE])]

    def expensive(self, most: int = 10) -> list[TurnCost]:
        """The turns that cost most, dearest first."""
        return sorted(self.turns, key=lambda turn: (-sum(turn.money(self.prices).values()), turn.t))[:most]

    def as_json(self) -> dict[str, Any]:
        """The contract's keys, and what they come from."""
        called = self.total + (self.rules[0] * self.prices.uncached + self.rules[1] * self.prices.output) / MILLION
        return {
            "prices": self.prices.name,
            "date": self.prices.date,
            "source": self.prices.source,
            "currency": self.prices.currency,
            "kind": "simulated",
            **self.parts,
            "total": self.total,
            "base_total": self.base_total,
            "vs_base": self.vs_base,
            "tokens": self.tokens,
            "uncached_share": self.uncached_share,
            "timed": self.timed,
            "if_previous_only": {
                "kind": "simulated",
                "total": self.previous_only,
                "vs_base": self.previous_only / self.base_total if self.base_total else None,
            },
            "if_called": {"kind": "estimated", "total": called, "vs_base": called / self.base_total if self.base_total else None},
            "note": "; ".join(self.notes),
        }


def run_cost(run: Run, prices: PriceTable, timeline: Timeline | None = None, counter: TokenCounter | None = None) -> RunCost:
    """The cost of a run.

    `timeline`: gives timestamps and the raw texts, which matter where requests diverge inside a block.
    `counter`: counts the start that two texts share; without one, its tokens are estimated in proportion to its length.
    """
    times = timeline.times[: len(run.turns)] if timeline else run.head.times
    turns = tuple(_turns(run, prices, times, _Texts(timeline), counter))
    rules = [entry for turn in run.turns for entry in turn.spent if entry.local and entry.operation not in COMPUTATION]
    by_rule = sum(entry.input_tokens for entry in rules), sum(entry.output_tokens for entry in rules)
    base = sum(sum(turn.money(prices).values()) for turn in base_turns(run.turns, prices, times))
    previous = sum(sum(turn.money(prices).values()) for turn in _after_previous(run.turns, prices, times))
    return RunCost(prices, turns, base, bool(times), by_rule, previous)


def _turns(run: Run, prices: PriceTable, times: Sequence[float], texts: "_Texts", counter: TokenCounter | None) -> Iterable[TurnCost]:
    tree = PrefixTree(texts.of, _count(counter), lifetime=prices.lifetime_seconds)
    before: set[Key] = set()
    for turn in run.turns:
        pieces = [(texts.same(key), tokens) for key, tokens in pieces_of(turn.items, run.head.block_tokens)]
        prefix = tree.send(pieces, times[turn.t] if times else None)
        again = sum(tokens for key, tokens in pieces if key in before)
        before = {key for key, _ in pieces}
        yield _billed(turn, turn.active_tokens, prefix, prices, max(0, again - prefix))


def _after_previous(turns: Sequence[Turn], prices: PriceTable, times: Sequence[float]) -> Iterable[TurnCost]:
    """A run's turns if the cache keeps only the previous request."""
    for number, turn in enumerate(turns):
        warm = prices.caches and number and not _cold(times, turn.t, prices)
        yield _billed(turn, turn.active_tokens, turn.cached_tokens if warm else 0, prices, 0)


def _cold(times: Sequence[float], t: int, prices: PriceTable) -> bool:
    """Whether the cache has forgotten the previous request at turn t."""
    return bool(times) and times[t] - times[t - 1] > prices.lifetime_seconds


def base_turns(turns: Sequence[Turn], prices: PriceTable, times: Sequence[float] = ()) -> list[TurnCost]:
    """The base agent's turns: every request is the previous one plus what came since."""
    found = []
    for number, turn in enumerate(turns):
        cold = not number or _cold(times, turn.t, prices)
        prefix = 0 if cold or not prices.caches else turns[number - 1].raw_tokens
        before = turns[number - 1].raw_tokens if number else 0
        found.append(_billed(turn, turn.raw_tokens, prefix, prices, before - prefix, auxiliary=False))
    return found


def _billed(turn: Turn, request: int, prefix: int, prices: PriceTable, rewritten: int, *, auxiliary: bool = True) -> TurnCost:
    read = cacheable(prefix, prices)
    write = max(0, cacheable(request, prices) - read)
    calls = [entry for entry in turn.spent if not entry.local] if auxiliary else []
    spent = sum(entry.input_tokens for entry in calls), sum(entry.output_tokens for entry in calls)
    cached = sum(entry.input_tokens for entry in calls if entry.cached) if prices.caches else 0
    return TurnCost(turn.t, read, write, request - read - write, turn.output_tokens, *spent, rewritten, cached)


def cacheable(tokens: int, prices: PriceTable) -> int:
    """How much of a prefix a provider caches: multiples of its granularity, from its minimum up."""
    whole = tokens - tokens % prices.granularity_tokens
    return whole if prices.caches and whole >= prices.minimum_tokens else 0


def _count(counter: TokenCounter | None) -> Callable[[str, str, int], int]:
    if counter is not None:
        return lambda start, text, tokens: counted_start(counter, start)
    return lambda start, text, tokens: tokens * len(start) // max(len(text), 1)


class _Texts:
    """The raw texts of a trace's pieces; without a trace, none."""

    def __init__(self, timeline: Timeline | None) -> None:
        self._timeline = timeline
        self._known: dict[Key, str] = {}
        self._first: dict[str, Key] = {}

    def of(self, key: Key) -> str:
        if key not in self._known:
            self._known[key] = str(key[1]) if key[0] == "text" else self._rendered(key)
        return self._known[key]

    def same(self, key: Key) -> Key:
        """The first piece with the same text: a cache knows texts, not block numbers."""
        text = self.of(key) if key[0] == "block" else ""
        return self._first.setdefault(text, key) if text else key

    def _rendered(self, key: Key) -> str:
        if self._timeline is None:
            return ""
        trace, pieces = self._timeline.trace, self._timeline.pieces
        if key[0] == "tools":
            return render_tools(trace.tools)
        messages = trace.messages[: pieces.prefix_end] if key[0] == "prefix" else pieces.blocks[int(key[1])].of(trace.messages)
        return "".join(render_message(message) for message in messages)
