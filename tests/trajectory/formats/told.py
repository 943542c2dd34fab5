"""What the reader tests share: everything a trace says, and an independent look at a source file."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from pamer_lab.trajectory import Trace, read_bytes


def raw_values(path: Path) -> list[Any]:
    """The JSON values of a file, by a parser of its own: one value, one per line, or several on a line."""
    text = path.read_text(encoding="utf-8")
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        decoder, values, position = json.JSONDecoder(), [], 0
        while position < len(text):
            if text[position].isspace():
                position += 1
                continue
            value, position = decoder.raw_decode(text, position)
            values.append(value)
        return values


def numbers(text: str) -> list[int]:
    """The numbers in a message, in order: what it says without its words."""
    return [int(found) for found in re.findall(r"\d+", text)]


def strings(value: Any, *, skip: Iterable[str] = ()) -> Iterator[str]:
    """Every text below a value, keys in `skip` left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, child in value.items():
            if key not in skip:
                yield from strings(child, skip=skip)
    elif isinstance(value, list):
        for child in value:
            yield from strings(child, skip=skip)


def told(traces: Iterable[Trace]) -> "Told":
    """All that the traces of a file say, ready to be searched."""
    pieces: list[str] = []
    for trace in traces:
        pieces += [trace.task_id, trace.model]
        for message in trace.messages:
            pieces += [message.content, message.thinking, message.name]
            for call in message.tool_calls:
                pieces += [call.name, call.arguments]
                pieces += strings(_parsed(call.arguments))
        for event in trace.events:
            pieces += [event.text, *strings(event.data)]
        for tool in trace.tools:
            pieces += [tool.name, tool.description, *strings(tool.parameters)]
        pieces += strings(trace.meta)
    return Told(pieces)


class Told:
    """Answers whether a text of the source is found in what was told."""

    def __init__(self, pieces: list[str]) -> None:
        self.whole = set(pieces)
        self.joined = "\n".join(pieces)

    def misses(self, texts: Iterable[str]) -> list[str]:
        return [text for text in texts if text not in self.whole and text not in self.joined]


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def counts(trace: Trace) -> tuple[int, int, int]:
    """(turns, tool calls, tool results), results without a recorded call included."""
    return trace.turns, sum(len(message.tool_calls) for message in trace.messages), trace.results


def read_lines(values: Iterable[Any]) -> list[Trace]:
    """The traces of values written one per line; a rejection fails the test with its reason."""
    return read_json_bytes(b"\n".join(orjson.dumps(value) for value in values))


def read_value(value: Any) -> list[Trace]:
    """The traces of one JSON value."""
    return read_json_bytes(orjson.dumps(value))


def read_json_bytes(data: bytes) -> list[Trace]:
    reading = read_bytes(data, "test.json")
    assert not reading.rejected, reading.rejected[0].sentence
    return reading.traces


def only(traces: list[Trace]) -> Trace:
    assert len(traces) == 1, f"{len(traces)} traces"
    return traces[0]
