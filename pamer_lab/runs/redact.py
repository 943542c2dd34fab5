"""The tables of a run file after a scan for secrets: what is replaced is replaced everywhere, and everything still fits together.

Raw blocks are named by the hash of their bytes, and a memory's id and checksum cover its content. So a block or memory in which something
is replaced gets the name of its new content, and every reference to it changes too; after an import, `memory check` finds nothing wrong,
and the evidence audit correctly says that the block differs from the uploaded one. Token counts and vectors stay those of the original.
Tables in which nothing is replaced are passed on unchanged.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa

from pamer_lab.memory.records import Memory, MemoryDraft, RawBlock, is_intact, pack, seal
from pamer_lab.memory.schema import BLOCKS, MEMORIES, memories_of, memory_row
from pamer_lab.redaction import Scan

WORDS = {"selections": "selection", "replay_texts": "text", "replay_turns": "turn", "replay_runs": "run"}
"""Table -> what a row of it is called in a finding's place."""
NAMED = re.compile(r"[0-9a-f]{64}|m[0-9]{6,12}-[0-9a-f]{12}")
"""Names of raw blocks and memories; one search of a text finds all of them, however many were renamed."""
Names = dict[str, str]
"""Old name -> new name, of raw blocks and memories."""


def scanned(tables: Mapping[str, pa.Table], keys: Mapping[str, tuple[str, ...]], scan: Scan) -> dict[str, pa.Table]:
    """The tables by name, cleaned; `keys` names each table's key columns, for the places of findings."""
    for table in tables.values():
        for row in table.to_pylist():
            scan.learn({name: _plain(value) for name, value in row.items() if name != "vector"})
    names: Names = {}
    found = {BLOCKS.name: _blocks(tables[BLOCKS.name], scan, names)}
    found[MEMORIES.name] = _memories(tables[MEMORIES.name], scan, names)
    for name, table in tables.items():
        if name not in found:
            rows = table.to_pylist()
            clean = [_cleaned(row, _place(name, keys[name], row), scan, names) for row in rows]
            found[name] = table if clean == rows else pa.Table.from_pylist(clean, schema=table.schema)
    return found


def _plain(value: Any) -> Any:
    """A cell's value: raw blocks are JSON, other packed cells MessagePack."""
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(value) if value[:1] in (b"[", b"{") else msgspec.msgpack.decode(value)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _blocks(table: pa.Table, scan: Scan, names: Names) -> pa.Table:
    """Raw blocks without the damaged ones (hash mismatch): what they hold cannot be scanned."""
    rows: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if not is_intact(RawBlock(row["raw_hash"], row["body"])):
            continue
        messages = json.loads(row["body"])
        clean = scan.walk(messages, f"raw block {row['raw_hash'][:12]}")
        if clean != messages:
            block = pack(clean)
            names[row["raw_hash"]] = block.raw_hash
            row |= {"raw_hash": block.raw_hash, "body": block.body}
        rows[row["raw_hash"]] = row
    whole = not names and len(rows) == table.num_rows
    return table if whole else pa.Table.from_pylist([rows[name] for name in sorted(rows)], schema=table.schema)


def _memories(table: pa.Table, scan: Scan, names: Names) -> pa.Table:
    memories = memories_of(table)
    clean = [_memory(memory, scan, names) for memory in memories]
    if clean == memories:
        return table
    names |= {old.memory_id: new.memory_id for old, new in zip(memories, clean, strict=True) if old.memory_id != new.memory_id}
    return pa.Table.from_pylist([memory_row(memory) for memory in clean], schema=table.schema)


def _memory(memory: Memory, scan: Scan, names: Names) -> Memory:
    place = f"memory {memory.memory_id}"
    summary = scan.clean(memory.summary, f"{place}, summary")
    blocks = tuple(
        replace(block, detail=scan.clean(block.detail, f"{place}, step {block.step}"), raw_hash=names.get(block.raw_hash, block.raw_hash))
        for block in memory.blocks
    )
    if summary == memory.summary and blocks == memory.blocks:
        return memory
    kept = ("session_id", "vector", "summary_tokens", "tokenizer", "summary_model", "embedding_model")
    draft = MemoryDraft(summary=summary, blocks=blocks, **{name: getattr(memory, name) for name in kept})
    return seal(draft, memory.sequence, memory.created_at)


def _cleaned(row: dict[str, Any], place: str, scan: Scan, names: Names) -> dict[str, Any]:
    return {name: _value(value, f"{place}, {name}", scan, names) for name, value in row.items()}


def _value(value: Any, place: str, scan: Scan, names: Names) -> Any:
    if not isinstance(value, bytes):
        return _follow(scan.walk(value, place), names)
    plain = msgspec.msgpack.decode(value)
    clean = _follow(scan.walk(plain, place), names)
    return value if clean == plain else msgspec.msgpack.encode(clean)


def _follow(value: Any, names: Names) -> Any:
    """The value with every renamed block and memory under its new name."""
    match value:
        case str():
            return NAMED.sub(lambda found: names.get(found[0], found[0]), value) if names else value
        case dict():
            return {key: _follow(item, names) for key, item in value.items()}
        case list():
            return [_follow(item, names) for item in value]
        case _:
            return value


def _place(table: str, key: tuple[str, ...], row: Mapping[str, Any]) -> str:
    """For example `run r-12, turn 7`."""
    run = f"run {row['run_id']}" if "run_id" in key or table == "selections" else ""
    rest = [str(row[name]) for name in key if name != "run_id"]
    return ", ".join(part for part in (run, f"{WORDS[table]} {' '.join(rest)}" if rest else "") if part)
