"""A turn as two aligned columns: the agent's request and the model's view.

Invariant: the left column sums to the turn's raw tokens, the right one to its active tokens, and a row called `same` has the same text on
both sides.
"""

from dataclasses import dataclass

from pamer_lab.decisions import LETTERS, Item, Span
from pamer_lab.runs.values import RunInfo, Turn


@dataclass(frozen=True)
class Row:
    """One piece of the request."""

    name: str
    """`tools`, `prefix`, `block 4`, or the kind of an added text."""
    state: str
    """`same` on both sides; `edited`: shortened on the model's side; for a block that was left out, its ledger state; `added` for what
    only the model sees."""
    sent: int | None
    seen: int | None
    """Tokens on each side; None on a side that lacks the piece."""
    block: int | None = None
    item: int | None = None
    """Number of the item it belongs to in the turn's items."""
    covers: tuple[Span, ...] = ()
    source: str = ""


def sent_and_seen(turn: Turn, head: RunInfo) -> list[Row]:
    """All rows of a turn in the order of the request; a block that was left out keeps its place."""
    rows: list[Row] = []
    place = 0

    def left_out(until: int) -> list[Row]:
        return [Row(f"block {block}", LETTERS[turn.states[block]], head.block_tokens[block], None, block) for block in range(place, until)]

    for number, item in enumerate(turn.items):
        if item.kind == "blocks":
            ((first, last),) = item.spans
            rows += left_out(first)
            rows += [_both(f"block {block}", head.block_tokens[block], number, block) for block in range(first, last)]
            place = last
        elif item.kind == "edited":
            ((block, place_after),) = item.spans
            rows += left_out(block)
            rows.append(Row(f"block {block}", "edited", head.block_tokens[block], item.tokens, block, number, source=item.source))
            place = place_after
        elif item.text:
            rows.append(_added(item, number))
        else:
            rows.append(_both(item.kind, item.tokens, number))
    return rows + left_out(turn.t)


def _both(name: str, tokens: int, item: int, block: int | None = None) -> Row:
    return Row(name, "same", tokens, tokens, block, item)


def _added(item: Item, number: int) -> Row:
    return Row(item.kind, "added", None, item.tokens, item=number, covers=item.spans, source=item.source)
