"""How a run's turns are stored: a row per turn, and each added text once per run.

A turn's items are stored from the first one on that differs from the turn before, with a number in front: how many it starts with as
that one did. A long run thus grows with its turns. Reads and writes nothing.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from pamer_lab.decisions import Item, Span, Spent, shared_start
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
StoredItems = tuple[int | Item, ...]
"""A turn's items as they are stored. A number comes first where so many are those that the turn before starts with."""


def text_id(text: str) -> str:
    """The name of a text: a hash of what it says."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def packed(run_id: str, turns: Sequence[Turn]) -> pa.Table:
    """A run's first turns as they are stored; writes nothing."""
    before = [(), *(turn.items for turn in turns)]
    fresh: dict[str, str] = {}
    return TURNS.arrow([turn_row(run_id, turn, previous, fresh, set()) for turn, previous in zip(turns, before, strict=False)])


def turn_row(run_id: str, turn: Turn, previous: tuple[Item, ...], fresh: dict[str, str], known: set[str]) -> dict[str, Any]:
    """A turn's row; texts that are not among the known ones are added to `fresh`."""
    same = shared_start(previous, turn.items) if turn.t else 0
    items: list[int | Item] = [same] if same else []
    for item in turn.items[same:]:
        if item.text:
            key = text_id(item.text)
            if key not in known:
                fresh[key] = item.text
            item = msgspec.structs.replace(item, text=key)
        items.append(item)
    row = {name: getattr(turn, name) for name in TURNS.schema.names if name not in ("run_id", "items", "stored", "spent")}
    for name in ("logits", "thresholds", "votes", "memory_ids", "restored_steps"):
        row[name] = list(row[name])
    packed = {"items": items, "stored": turn.stored, "spent": turn.spent}
    return row | {"run_id": run_id} | {name: msgspec.msgpack.encode(value) for name, value in packed.items()}


def unpacked(body: bytes, previous: tuple[Item, ...], texts: dict[str, str]) -> tuple[Item, ...]:
    """The items of a turn, given those of the turn before; their texts too where those are given."""
    same, items = split_items(msgspec.msgpack.decode(body, type=StoredItems))
    if texts:
        items = tuple(msgspec.structs.replace(item, text=texts[item.text]) if item.text else item for item in items)
    return (*previous[:same], *items)


def split_items(stored: StoredItems) -> tuple[int, tuple[Item, ...]]:
    """How many items come from the turn before, and the turn's own; numbers elsewhere than in front are not items."""
    same = stored[0] if stored and isinstance(stored[0], int) else 0
    return same, tuple(item for item in stored if isinstance(item, Item))


def turn_of(row: dict[str, Any], items: tuple[Item, ...]) -> Turn:
    """The turn of a row, with its items."""
    given = {name: row[name] for name in TURNS.schema.names if name not in ("run_id", "items", "stored", "spent")}
    for name in ("logits", "thresholds", "votes", "memory_ids", "restored_steps"):
        given[name] = tuple(given[name])
    stored = msgspec.msgpack.decode(row["stored"], type=tuple[Span, ...])
    spent = msgspec.msgpack.decode(row["spent"], type=tuple[Spent, ...])
    return Turn(**given, items=items, stored=stored, spent=spent)
