"""How a run's turns are stored: a row per turn, and each added text once per run.

A turn stores how many items at its start equal the previous turn's, then its items from there on; later items that stayed are stored as
their positions in the previous turn, so that a run's size grows only with what changes. Reads and writes nothing.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from pamer_lab.decisions import COMPARED, Item, Span, Spent, shared_start
from pamer_lab.runs.values import Turn
from pamer_lab.storage import TableSpec

TURNS = TableSpec(
    name="replay_turns",
    key=("run_id", "t"),
    indexed=("run_id",),
    schema=pa.schema(
        [
            ("run_id", pa.string()),
            ("t", pa.int32()),
            *((name, pa.string()) for name in ("action", "reason", "states", "error")),
            *((name, pa.int64()) for name in ("raw_tokens", "active_tokens", "candidate_tokens", "output_tokens", "cached_tokens")),
            ("logits", pa.list_(pa.float64())),
            ("thresholds", pa.list_(pa.float64())),
            ("votes", pa.list_(pa.bool_())),
            ("memory_ids", pa.list_(pa.string())),
            ("restored_steps", pa.list_(pa.int32())),
            *((name, pa.large_binary()) for name in ("items", "stored", "spent")),
            ("seconds", pa.float64()),
        ]
    ),
)
TEXTS = TableSpec(
    name="replay_texts",
    key=("run_id", "text_id"),
    indexed=("run_id",),
    schema=pa.schema([("run_id", pa.string()), ("text_id", pa.string()), ("text", pa.large_string())]),
)
StoredItems = tuple[int | Item | Span, ...]
"""A turn's items as they are stored. A leading number says how many items the turn shares with the start of the previous one; a span means
items of that turn, from the first position up to, not including, the second."""
LEAST_STAYED = 4
"""Minimum number of items in a row to store as a span."""


def text_id(text: str) -> str:
    """The name of a text: a hash of what it says."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def packed(run_id: str, turns: Sequence[Turn]) -> pa.Table:
    """A run's first turns as they are stored; writes nothing."""
    return TURNS.arrow(turn_rows(run_id, turns, (), set())[0])


def turn_rows(
    run_id: str, turns: Sequence[Turn], previous: tuple[Item, ...], known: set[str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows of consecutive turns, `previous` being the items before them; and those of their texts that are not `known`, by name."""
    rows: list[dict[str, Any]] = []
    fresh: dict[str, str] = {}
    named: dict[str, tuple[Item, Item]] = {}  # text -> the last item with it, and its stored form: most stay from turn to turn
    for turn in turns:
        same = shared_start(previous, turn.items) if turn.t else 0
        items: list[int | Item | Span] = [same] if same else []
        for item in _changed(previous, turn.items, same):
            if isinstance(item, Item) and item.text:
                found = named.get(item.text)
                if found is None or found[0] is not item:
                    key = text_id(item.text)
                    if key not in known:
                        fresh[key] = item.text
                    found = named[item.text] = item, msgspec.structs.replace(item, text=key)
                item = found[1]
            items.append(item)
        rows.append(_row(run_id, turn, items))
        previous = turn.items
    return rows, fresh


def _changed(previous: Sequence[Item], items: Sequence[Item], start: int) -> Iterator[Item | Span]:
    """Items from `start` on; several in a row that the previous turn has too become their positions there."""
    if len(items) - start < LEAST_STAYED:
        yield from items[start:]
        return
    places = {item.text: place for place, item in enumerate(previous[start:], start) if item.text}
    number = start
    while number < len(items):
        first = places.get(items[number].text, len(previous))
        stayed = shared_start(previous[first : first + COMPARED], items[number : number + COMPARED])
        if stayed < LEAST_STAYED:
            yield items[number]
            number += 1
        else:
            yield first, first + stayed
            number += stayed


def _row(run_id: str, turn: Turn, items: list[int | Item | Span]) -> dict[str, Any]:
    row = {name: getattr(turn, name) for name in TURNS.schema.names if name not in ("run_id", "items", "stored", "spent")}
    for name in ("logits", "thresholds", "votes", "memory_ids", "restored_steps"):
        row[name] = list(row[name])
    packed = {"items": items, "stored": turn.stored, "spent": turn.spent}
    return row | {"run_id": run_id} | {name: msgspec.msgpack.encode(value) for name, value in packed.items()}


def unpacked(body: bytes, previous: tuple[Item, ...], texts: dict[str, str]) -> tuple[Item, ...]:
    """The items of a turn, given those of the previous turn; with their texts if `texts` are given."""
    items: list[Item] = []
    for entry in spelled(msgspec.msgpack.decode(body, type=StoredItems)):
        if not isinstance(entry, Item):
            items += previous[slice(*entry)]
        elif texts and entry.text:
            items.append(msgspec.structs.replace(entry, text=texts[entry.text]))
        else:
            items.append(entry)
    return tuple(items)


def spelled(stored: StoredItems) -> list[Item | Span]:
    """Stored items with the leading number as a span; other numbers are not items and are dropped."""
    start = [(0, stored[0])] if stored and isinstance(stored[0], int) else []
    return [*start, *(entry for entry in stored if not isinstance(entry, int))]


def turn_of(row: dict[str, Any], items: tuple[Item, ...]) -> Turn:
    """The turn of a row, with its items."""
    given = {name: row[name] for name in TURNS.schema.names if name not in ("run_id", "items", "stored", "spent")}
    for name in ("logits", "thresholds", "votes", "memory_ids", "restored_steps"):
        given[name] = tuple(given[name])
    stored = msgspec.msgpack.decode(row["stored"], type=tuple[Span, ...])
    spent = msgspec.msgpack.decode(row["spent"], type=tuple[Spent, ...])
    return Turn(**given, items=items, stored=stored, spent=spent)
