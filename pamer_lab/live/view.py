"""A decision's items and the client's body -> the bytes that go upstream.

Invariant: whatever the decision keeps is the client's own bytes in their order; a view that keeps everything is the client's body itself; a
cache mark never leaves the body.
"""

from collections.abc import Sequence
from itertools import pairwise

from pamer_lab.decisions import Item
from pamer_lab.live.wire import Piece, Unit, UnreadableError, Wire, rebuilt, with_texts
from pamer_lab.policies.interface import History
from pamer_lab.policies.priced import joined
from pamer_lab.policies.rebuilt import edited_messages


class MarkError(UnreadableError):
    """Raised when a view would leave out a message with a cache mark."""


def keeps_everything(items: Sequence[Item], t: int) -> bool:
    """Whether a view is the request as it came."""
    raw = [(0, 0), *(item.spans[0] for item in items if item.kind == "blocks"), (t, t)]
    return all(one[1] == other[0] for one, other in pairwise(raw)) and not any(item.text for item in items)


def extended(items: Sequence[Item], since: int, history: History) -> tuple[Item, ...]:
    """An earlier view with the blocks that came after it."""
    head = [item for item in items if item.kind not in ("tools", "prefix")]
    return joined([*history.head(), *head, *history.raw([(since, history.t)])])


def body_of(wire: Wire, items: Sequence[Item], history: History) -> bytes:
    """The body with a view's items; `UnreadableError` where it cannot be made safely."""
    if keeps_everything(items, history.t):
        return wire.body
    starts = _unit_starts(wire)
    pieces: list[Piece] = []
    for item in items:
        match item.kind:
            case "tools":
                continue
            case "prefix":
                pieces += wire.units[: starts[0] if starts else len(wire.units)]
            case "blocks":
                first, last = item.spans[0]
                pieces += wire.units[starts[first] : starts[last] if last < len(starts) else len(wire.units)]
            case "edited":
                pieces += _edited(wire, item, history, starts)
            case _:
                pieces.append((item.role, item.text))
    left = {id(piece[0] if isinstance(piece, tuple) else piece) for piece in pieces}
    if any(unit.marked and id(unit) not in left for unit in wire.units):
        raise MarkError("a message with a cache mark would leave the request")
    return rebuilt(wire, pieces)


def _unit_starts(wire: Wire) -> list[int]:
    """The unit at which each block begins."""
    starts: list[int] = []
    for number, unit in enumerate(wire.units):
        opened = sum(message.role == "assistant" for message in unit.messages)
        if opened > 1 or (opened and not unit.opens):
            raise UnreadableError("a block begins inside a message")
        starts += [number] if opened else []
    return starts


def _edited(wire: Wire, item: Item, history: History, starts: list[int]) -> list[Piece]:
    """A block's units with the item's texts."""
    block = item.spans[0][0]
    units = wire.units[starts[block] : starts[block + 1] if block + 1 < len(starts) else len(wire.units)]
    originals = history.block_messages(block)
    texts = [message.content for message in edited_messages(item, originals)]
    pieces: list[Piece] = []
    at = 0
    for unit in units:
        changed = {place: texts[at + place] for place in range(len(unit.messages)) if texts[at + place] != originals[at + place].content}
        possible = {place: text for place, text in changed.items() if _can_change(wire, unit, place, text)}
        pieces.append((unit, possible) if possible else unit)
        at += len(unit.messages)
    return pieces


def _can_change(wire: Wire, unit: Unit, place: int, text: str) -> bool:
    """Whether a message's text can be replaced without touching anything else of its unit; where not, it stays as it came."""
    try:
        with_texts(wire, unit, {place: text})
    except (UnreadableError, KeyError, ValueError):
        return False
    return True
