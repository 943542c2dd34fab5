"""A trace prepared for replay: blocks, token counts, and the history at each decision point.

Invariant: `at(t)` has only what comes before assistant message `t`; every message is counted once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from pamer_lab.blocks import Cut, MessageTokens, cut
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.policies.interface import History
from pamer_lab.runs.values import Run
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import StoredTrace, Workspace

REWRITTEN = "rewritten_at"
"""Key in a trace's `meta`: the turn at which its client had rewritten the earlier history."""


@dataclass(frozen=True)
class Timeline:
    """Counts of one trace, ready to be cut at any turn."""

    trace: Trace
    pieces: Cut
    turns: int
    """Decision points that are replayed: all of the trace's, or the first ones up to a limit."""
    cumulative: tuple[int, ...]
    """Tokens of the first 0, 1, ... blocks."""
    prefix_tokens: int
    tools_tokens: int
    output_tokens: tuple[int, ...]
    """Tokens of each recorded assistant message."""
    tokenizer: str
    kind: CountKind
    times: tuple[float, ...] = ()
    """When each request was sent, in seconds; empty if the trace has no timestamps."""

    @property
    def block_tokens(self) -> list[int]:
        return [self.cumulative[number + 1] - self.cumulative[number] for number in range(len(self.pieces.blocks))]

    def at(self, t: int) -> History:
        """The request at decision point `t`."""
        block = self.pieces.blocks[t]
        return History(
            t=t,
            messages=self.trace.messages[: block.start],
            prefix_end=self.pieces.prefix_end,
            blocks=self.pieces.blocks[:t],
            cumulative=self.cumulative[: t + 1],
            prefix_tokens=self.prefix_tokens,
            tools=self.trace.tools,
            tools_tokens=self.tools_tokens,
            idle=self._idle(t),
        )

    def _idle(self, t: int) -> float | None:
        if self.trace.meta.get(REWRITTEN) == t:
            return math.inf
        return self.times[t] - self.times[t - 1] if self.times and t else None


def stored_timeline(stored: StoredTrace, profile: str, workspace: Workspace) -> Timeline:
    """A stored trace laid out with the tokenizer of a profile, which may be one that a run of this workspace was made with."""
    tokens = profile_tokens(load_profile(profile, workspace.path))
    counts = stored.message_tokens if stored.row["tokenizer"] == tokens.counter.name else None
    return lay_out(stored.trace, tokens, counts=counts)


def recorded_timeline(trace: Trace, run: Run) -> Timeline:
    """A trace laid out with the counts that a run recorded, for when its tokenizer is not on this machine."""
    head, pieces = run.head, cut(trace.messages)
    if len(head.block_tokens) != len(pieces.blocks) or len(run.turns) != len(pieces.blocks):
        raise InputError(
            f"run {head.run_id} covers {len(run.turns)} of {len(pieces.blocks)} turns, and its tokenizer {head.tokenizer} is missing"
        )
    return Timeline(
        trace=trace,
        pieces=pieces,
        turns=head.turns,
        cumulative=(0, *accumulate(head.block_tokens)),
        prefix_tokens=head.prefix_tokens,
        tools_tokens=head.tools_tokens,
        output_tokens=tuple(turn.output_tokens for turn in run.turns),
        tokenizer=head.tokenizer,
        kind=cast(CountKind, head.tokens_kind),
        times=request_times(trace, len(pieces.blocks)),
    )


def lay_out(trace: Trace, tokens: MessageTokens, *, turn_limit: int = 0, counts: Sequence[int] | None = None) -> Timeline:
    """Count a trace; `counts`: its messages' counts by the same tokenizer, if known already."""
    pieces = cut(trace.messages)
    counted = list(counts) if counts is not None else tokens.counts(trace.messages)
    sums = [0, *accumulate(counted)]
    blocks = pieces.blocks
    return Timeline(
        trace=trace,
        pieces=pieces,
        turns=min(len(blocks), turn_limit) if turn_limit else len(blocks),
        cumulative=(0, *(sums[block.end] - sums[pieces.prefix_end] for block in blocks)),
        prefix_tokens=sums[pieces.prefix_end],
        tools_tokens=tokens.tools(trace.tools),
        output_tokens=tuple(counted[block.start] for block in blocks),
        tokenizer=tokens.counter.name,
        kind=tokens.counter.kind,
        times=request_times(trace, len(blocks)),
    )


def request_times(trace: Trace, turns: int) -> tuple[float, ...]:
    """When each request was sent, by the newest timestamp before its answer, or the answer's own; empty if the trace has none.

    A request without a time counts as sent with the one before it, and time never runs backwards.
    """
    times: list[float] = []
    newest, known = None, False
    for message in trace.messages:
        if message.role == "assistant":
            at = newest if newest is not None else message.at
            known = known or at is not None
            last = times[-1] if times else 0.0
            times.append(max(last, at) if at is not None else last)
            newest = None
        elif message.at is not None:
            newest = message.at
    return tuple(times[:turns]) if known else ()
