"""The context of one decision point under one condition, piece by piece, for a side-by-side view.

Needs no model, except an embedder if the condition selects by embedding.
Invariant: the tokens of the pieces sum to those of the context, and pieces and omitted blocks together are the full history.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pamer_lab.blocks import MessageTokens, TokenCounter
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.models.embedder import Embedder
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.studies.compact.hidden_bank import PICKS, HiddenBank, Recurrent
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_point
from pamer_lab.studies.compact.registry import CAPS, condition
from pamer_lab.studies.compact.values import Condition, Reading, Resources
from pamer_lab.trajectory.recorded import History
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace

PieceKind = Literal["tools", "prefix", "evidence", "older", "recent"]
"""`tools`: tool descriptions. `prefix`: system and task. `evidence`: a recalled older block. `older`: an older block that stays
because the condition keeps it. `recent`: one of Recent2."""


@dataclass(frozen=True)
class Piece:
    """One part of a context, in the order the model reads it."""

    kind: PieceKind
    tokens: int
    text: str
    block: int | None = None
    """Block number; None for tools and prefix."""
    rank: int | None = None
    """Rank of an evidence block; 1 is the best."""
    score: float | None = None
    """The selector's score of an evidence block."""


@dataclass(frozen=True)
class ContextView:
    """What a condition shows the model at a decision point."""

    condition: str
    label: str
    trace_id: str
    t: int
    pieces: tuple[Piece, ...]
    tokens: int
    full_tokens: int
    tokenizer: str
    left_out: tuple[int, ...]
    """Block numbers that the model does not read."""
    stored: tuple[int, ...] = ()
    """Blocks whose stored states are added to the representation."""
    note: str = ""
    rebuilt: int = 0
    """Number of recorded memory operations applied; if not zero, block numbers refer to the rebuilt history."""

    @property
    def share_pct(self) -> float:
        """`B(C)` of this one point."""
        return 100.0 * self.tokens / self.full_tokens if self.full_tokens else 100.0


def resources_for(counter: TokenCounter | None = None, embedder: Embedder | None = None, workspace: Workspace | None = None) -> Resources:
    """What `context_at` needs: by default SmolLM2's tokenizer and no embedder; embeddings are stored if there is a workspace."""
    kept = KeptEmbeddings.over(embedder, workspace.database if workspace else None) if embedder else None
    return Resources(Counts(MessageTokens(counter or embedded_counter())), kept)


def context_at(
    trace: Trace,
    t: int,
    name: str,
    resources: Resources | None = None,
    caps: tuple[int, ...] = CAPS,
    history: History = "full",
) -> ContextView:
    """The context of one decision point under one condition, by the condition's name."""
    resources = resources or resources_for()
    chosen, point = condition(name, caps), decision_point(trace, t, history=history)
    reading = chosen.read(point, resources)
    stored, note = _stored(chosen, point)
    return ContextView(
        condition=chosen.name,
        label=chosen.label,
        trace_id=trace.trace_id,
        t=t,
        pieces=_pieces(point, reading, resources.counts),
        tokens=resources.counts.context(point, reading.blocks),
        full_tokens=resources.counts.full(point),
        tokenizer=resources.counts.tokenizer,
        left_out=tuple(number for number in range(point.last + 1) if number not in reading.blocks),
        stored=stored,
        note=note,
        rebuilt=point.rebuilt,
    )


def _pieces(point: DecisionPoint, reading: Reading, counts: Counts) -> tuple[Piece, ...]:
    tools = counts.tokens.tools(point.tools)
    prefix = "".join(render_message(message) for message in point.messages[: point.pieces.prefix_end])
    head = [Piece("tools", tools, render_tools(point.tools))] if point.tools else []
    ranks = {one.block: (rank, one.score) for rank, one in enumerate(reading.evidence, start=1)}
    blocks = []
    for number in reading.blocks:
        kind: PieceKind = "evidence" if number in ranks else "recent" if number in point.window.recent else "older"
        text = "".join(render_message(message) for message in point.block(number))
        rank, score = ranks.get(number, (None, None))
        blocks.append(Piece(kind, counts.block(point, number), text, number, rank, score))
    return (*head, Piece("prefix", counts.prefix(point) - tools, prefix), *blocks)


def _stored(chosen: Condition, point: DecisionPoint) -> tuple[tuple[int, ...], str]:
    older = max(0, point.last)
    if isinstance(chosen, Recurrent):
        return tuple(range(point.last + 1)), "a recurrent network reads the stored states of all blocks"
    if not isinstance(chosen, HiddenBank):
        return (), ""
    if chosen.choice == "similarity":
        return (
            (),
            f"adds the {min(chosen.k, older)} stored states nearest to this one, of {older}; which those are depends on the model's states",
        )
    nothing = np.zeros((older, 1), dtype=np.float32)
    picked = PICKS[chosen.choice](nothing[:1, 0], nothing, chosen.k) if older else np.arange(0)
    return tuple(int(number) for number in picked), f"adds the mean of {len(picked)} stored states, not their text"
