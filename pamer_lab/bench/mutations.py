"""Mutated files: as bytes (flips, cuts, copies), as JSON (other types, missing keys, repeated items) and as tables.

Mutations inside values get past the parsers to the code that reads the values. One random generator drives them all, so a case can be
repeated.
"""

import copy
import io
import random
import zipfile
from typing import Any

import msgspec
import orjson
import pyarrow as pa

from pamer_lab.trajectory.parsing import parse_text


def _deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": [value]}
    return value


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**11,
    2**63 - 1,
    1e308,
    "",
    "x",
    "\ud83d".encode("utf-16", "surrogatepass").hex(),
    "a@" * 3_000,
    "/" * 6_000,
    "\\n" * 2_000 + "token=",
    "9" * 5_000,
    "\u202e\x1b[31m\x00=1+1",
    [],
    {},
    [[]],
    [None],
    [0] * 3_000,
    {"": None},
    {"type": 7},
    _deep(60),
)
"""Odd values that replace a value."""


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(mutant) or 1)
        match rng.randrange(4):
            case 0:
                mutant[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del mutant[at:]
            case 2:
                del mutant[at : at + rng.randrange(1, 50)]
            case _:
                mutant[at:at] = mutant[max(0, at - rng.randrange(1, 200)) : at]
    return bytes(mutant)


def mutated_json(data: bytes, rng: random.Random) -> bytes:
    """JSON or JSON lines with values changed, or mutated bytes if the result cannot be written as JSON."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    parsed = parse_text(data, 100_000)
    values = [record.value for record in parsed.records]
    holder: list[Any] = [rng.choice(values)] if parsed.in_lines else values
    for _ in range(rng.randrange(1, 4)):
        mutate_value(holder, rng)
    try:
        if parsed.in_lines:
            values[rng.randrange(len(values))] = holder[0]
            return b"\n".join(orjson.dumps(value) for value in values)
        return orjson.dumps(holder[0])
    except TypeError:  # a value that was copied into itself cannot be written
        return mutated_bytes(data, rng)


def mutate_value(root: list[Any], rng: random.Random) -> None:
    """Change one random place below `root`, preferring shallow ones."""
    holder: Any = root
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = rng.choice(keys)
        child = holder[key]
        if isinstance(child, dict | list) and child and (holder is root or rng.random() < 0.75):
            holder = child
            continue
        match rng.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder) + 1), child)
            case 2 if isinstance(holder, dict):
                holder[rng.choice(["role", "content", "type", "id", "messages", "tool_calls", "x"])] = child
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD))  # a later step may change it
        return


def mutated_tables(data: bytes, rng: random.Random) -> bytes:
    """A zip of Arrow tables with a byte, a member's byte, a cell or a value inside a packed cell changed."""
    if rng.random() < 0.1:
        return mutated_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = rng.choice([name for name in members if name.endswith(".arrow")])
    members[name] = mutated_bytes(members[name], rng) if rng.random() < 0.4 else _mutated_cell(members[name], rng)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for member, body in members.items():
            file.writestr(member, body)
    return made.getvalue()


def _mutated_cell(body: bytes, rng: random.Random) -> bytes:
    table = pa.ipc.open_file(body).read_all()
    rows = table.to_pylist()
    if not rows:
        return mutated_bytes(body, rng)
    row, column = rng.choice(rows), rng.choice(table.column_names)
    row[column] = _changed(row[column], rng)
    try:
        changed = pa.Table.from_pylist(rows, schema=table.schema)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return mutated_bytes(body, rng)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, changed.schema) as writer:
        writer.write_table(changed)
    return sink.getvalue()


def _changed(cell: Any, rng: random.Random) -> Any:
    if isinstance(cell, bytes):
        try:
            holder = [msgspec.msgpack.decode(cell)]
            mutate_value(holder, rng)
            return msgspec.msgpack.encode(holder[0])
        except (msgspec.MsgspecError, RecursionError, OverflowError):
            return mutated_bytes(cell, rng)
    if isinstance(cell, list) and cell and rng.random() < 0.5:
        holder = [copy.deepcopy(cell)]
        mutate_value(holder, rng)
        return holder[0]
    if isinstance(cell, int) and not isinstance(cell, bool):
        return rng.choice([-1, 0, 2**31 - 1, 10**11, 2**63 - 1])
    return rng.choice(ODD)


def mutated_text(text: str, rng: random.Random) -> str:
    """A short text, such as a link's value, with pieces repeated, replaced or made very long."""
    pieces = [
        text,
        "",
        "0",
        "-1",
        "9" * 5_000,
        "1e999",
        "\x00",
        "\u202e",
        "../../etc/passwd",
        "<script>",
        "a" * 20_000,
        ":=,+" * 500,
        "٣",
        "²",
    ]
    at = rng.randrange(len(text) + 1)
    match rng.randrange(4):
        case 0:
            return rng.choice(pieces)
        case 1:
            return text[:at] + rng.choice(pieces) + text[at:]
        case 2:
            return text[:at] * rng.choice([1, 2, 50])
        case _:
            return mutated_bytes(text.encode(), rng).decode("utf-8", "replace")
