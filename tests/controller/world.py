"""A small world for the controller: agents' histories, and a controller without weights."""

import copy
import json
from pathlib import Path
from typing import Any

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller import ControllerSettings, FixedProbe, PamerController
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.storage import Database

TOOLS = [{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {"type": "object"}}}]
YES, NO = (2.0,) * 5, (-2.0,) * 5


def turn(number: int, *, words: int = 150) -> list[dict[str, Any]]:
    """One complete block: a call and its result, of about `words * 2` tokens."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "src/part_{number}.py"}}'}}
    body = " ".join(f"w{(number * 7 + place) % 97}x{number}" for place in range(words))
    return [
        {"role": "assistant", "content": f"Next I read part_{number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{body}\nThe total of ORD-{number} is {number * 17} EUR."},
    ]


def history(turns: int, *, words: int = 150) -> list[dict[str, Any]]:
    """Prefix and `turns` complete blocks."""
    prefix = [{"role": "system", "content": "You are careful."}, {"role": "user", "content": "Find the total of ORD-3."}]
    return [*prefix, *(message for number in range(turns) for message in turn(number, words=words))]


def controller(folder: Path, *, settings: ControllerSettings | None = None, **parts: Any) -> PamerController:
    """A controller over the memory in `folder`, with parts replaced by name."""
    counter = EstimatedCounter()
    made: dict[str, Any] = {
        "store": MemoryStore(Database(folder)),
        "embedder": HashingEmbedder(64),
        "summariser": ExtractiveSummariser(counter),
        "probe": FixedProbe(YES),
        "tokens": MessageTokens(counter),
    }
    return PamerController(**{**made, **parts}, settings=settings)


def as_bytes(messages: Any) -> bytes:
    return json.dumps(messages).encode()


def snapshot(folder: Path) -> dict[str, list[Any]]:
    """Everything that is stored, read by a fresh connection; unreadable tables as their files."""
    from pamer_lab.memory.schema import BLOCKS, MEMORIES

    database = Database(folder)
    rows = {spec.name: database.rows(spec) if database.exists(spec) else [] for spec in (BLOCKS, MEMORIES)}
    return {name: sorted(map(repr, copy.deepcopy(found))) for name, found in rows.items()}


def memories(folder: Path) -> list[str]:
    return snapshot(folder)["memories"]
