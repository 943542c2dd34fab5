"""Builds the bytes that go upstream from a decision's items and the client's body.

Invariant: what the decision keeps is the client's own bytes in their order; a view that keeps everything is the client's body itself; no
cache mark is ever removed from the body.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import orjson

from pamer_lab.decisions import Item
from pamer_lab.live.json_spans import Span, elements, members
from pamer_lab.live.wire import Api, Unit, UnreadableError, Wire
from pamer_lab.policies.interface import History
from pamer_lab.policies.priced import joined
from pamer_lab.policies.rebuilt import edited_messages
from pamer_lab.trajectory.values import Role

Piece = Unit | tuple[Role, str] | tuple[Unit, Mapping[int, str]]
"""A part of an edited body: an unchanged unit, an inserted text, or a unit with new texts for some of its messages."""

MARKED = "a message with a cache mark would leave the request"


class MarkError(UnreadableError):
    """Raised when a view would leave out a message with a cache mark."""


def keeps_everything(items: Sequence[Item], t: int) -> bool:
    """Whether a view is the unchanged request."""
    raw = [(0, 0), *(item.spans[0] for item in items if item.kind == "blocks"), (t, t)]
    return all(one[1] == other[0] for one, other in pairwise(raw)) and not any(item.text for item in items)


def extended(items: Sequence[Item], since: int, history: History) -> tuple[Item, ...]:
    """An earlier view with the blocks that came after it."""
    head = [item for item in items if item.kind not in ("tools", "prefix")]
    return joined([*history.head(), *head, *history.raw([(since, history.t)])])


def body_of(wire: Wire, items: Sequence[Item], history: History) -> bytes:
    """The body with a view's items; `UnreadableError` if it cannot be built safely."""
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
        raise MarkError(MARKED)
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
    """Whether a message's text can be replaced without touching the rest of its unit; otherwise it stays unchanged."""
    try:
        with_texts(wire, unit, {place: text})
    except (UnreadableError, KeyError, ValueError):
        return False
    return True


def rebuilt(wire: Wire, pieces: Sequence[Piece]) -> bytes:
    """The body with these pieces in place of its units; all other bytes are unchanged."""
    every = [*wire.heads, *wire.units]
    before = {unit.span: (every[number - 1].span[1] if number else unit.span[0]) for number, unit in enumerate(every)}
    parts: list[bytes] = [wire.body[: every[0].span[0]]]
    for number, piece in enumerate([*wire.heads, *pieces]):
        if isinstance(piece, tuple) and isinstance(piece[0], str):
            parts.append((b"," if number else b"") + inserted(wire.api, piece[0], str(piece[1])))
            continue
        unit, texts = piece if isinstance(piece, tuple) else (piece, {})
        assert isinstance(unit, Unit) and not isinstance(texts, str)
        gap = wire.body[before[unit.span] : unit.span[0]]
        parts.append((gap or b",") if number else b"")
        parts.append(with_texts(wire, unit, texts) if texts else wire.body[slice(*unit.span)])
    return b"".join([*parts, wire.body[every[-1].span[1] :]])


def inserted(api: Api, role: Role, text: str) -> bytes:
    """An element that the client did not send."""
    if api == "responses":
        kind = "output_text" if role == "assistant" else "input_text"
        return orjson.dumps({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    return orjson.dumps({"role": role, "content": text})


def with_texts(wire: Wire, unit: Unit, texts: Mapping[int, str]) -> bytes:
    """The unit's bytes with new texts, by message position in the unit; `UnreadableError` if one cannot be replaced."""
    cuts = sorted((_text_span(wire, unit, place), text) for place, text in texts.items())
    parts, at = [], unit.span[0]
    for (start, end), text in cuts:
        parts += [wire.body[at:start], orjson.dumps(text)]
        at = end
    return b"".join([*parts, wire.body[at : unit.span[1]]])


def _text_span(wire: Wire, unit: Unit, place: int) -> Span:
    """The span of one message's text in a unit."""
    body, message = wire.body, unit.messages[place]
    if message.images:
        raise UnreadableError("has an image next to the text")
    if wire.api == "responses":
        found = members(body, unit.parts[min(place, len(unit.parts) - 1)]).get("output")
        if found is None or len(unit.parts) > 1 or message.role != "tool":
            raise UnreadableError("has no output of its own")
        return _plain_text(body, found)
    content = members(body, unit.parts[0])["content"]
    if wire.api == "chat" or body[content[0] : content[0] + 1] == b'"':
        return _plain_text(body, content)
    results = [span for span in elements(body, content) if orjson.loads(body[slice(*members(body, span)["type"])]) == "tool_result"]
    number = sum(other.role == "tool" for other in unit.messages[:place])
    if message.role != "tool" or number >= len(results):
        raise UnreadableError("has no result of its own")
    return _plain_text(body, members(body, results[number])["content"])


def _plain_text(body: bytes, span: Span) -> Span:
    """The span, if it holds a text or a list of plain text parts without cache marks."""
    value = orjson.loads(body[slice(*span)])
    texts = isinstance(value, list) and all(isinstance(part, dict) and part.keys() == {"type", "text"} for part in value)
    if not isinstance(value, str) and not texts:
        raise UnreadableError("has more than text")
    return span
