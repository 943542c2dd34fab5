"""Chat files of any size for benchmarks: plain OpenAI chat with tool calls, seeded, with realistic text lengths."""

import random
from collections.abc import Iterator

import orjson

from pamer_lab.trajectory.values import Message, ToolCall

WORDS = [
    *("archive", "museum", "founder", "editor", "the", "letter", "of", "harbour", "station", "reading", "1932", "catalogue"),
    *("volume", "was", "city", "report", "found", "in", "and", "by", "gallery", "river", "press", "née"),
]
RARE = ["Łódź", "–", "東京", "\U0001f4da"]
"""Now and then a wider character, as in real tool output: it makes Python keep that whole text in a wider form."""


def sentence(rng: random.Random, words: int) -> str:
    chosen = rng.choices(WORDS, k=words)
    if rng.random() < 0.1:
        chosen[-1] = rng.choice(RARE)
    return " ".join(chosen)


def messages(turns: int, *, seed: int = 0, words: int = 120) -> Iterator[Message]:
    """A trace of `turns` turns, each with one call and one result of about `words` words."""
    rng = random.Random(seed)  # noqa: S311 - text for a benchmark
    yield Message("system", sentence(rng, 60))
    yield Message("user", sentence(rng, 40))
    for turn in range(turns):
        call = ToolCall(f"call_{turn}", "search", orjson.dumps({"query": sentence(rng, 6), "turn": turn}).decode())
        yield Message("assistant", sentence(rng, 20), (call,))
        yield Message("tool", sentence(rng, rng.randrange(words // 2, words * 2)), tool_call_id=call.id, name="search")


def chat_object(turns: int, *, seed: int = 0) -> dict[str, object]:
    """The same as an OpenAI chat object."""
    rows: list[dict[str, object]] = []
    for message in messages(turns, seed=seed):
        row: dict[str, object] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            row["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if message.tool_call_id:
            row["tool_call_id"] = message.tool_call_id
        rows.append(row)
    return {"messages": rows}


def chat_file(size: int, *, lines: bool) -> bytes:
    """About `size` bytes of chat: one conversation per line, or one list of conversations."""
    conversations: list[bytes] = []
    total = 0
    while total < size:
        conversations.append(orjson.dumps(chat_object(60, seed=len(conversations))))
        total += len(conversations[-1])
    return b"\n".join(conversations) if lines else b"[" + b",".join(conversations) + b"]"
