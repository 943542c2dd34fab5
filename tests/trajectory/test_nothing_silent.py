"""Every sample with one thing broken: what is not read as it was is named in a warning, or a second place of the file still has it."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_bytes
from pamer_lab.trajectory.reading import Reading

FOLDER = Path(__file__).parents[1] / "fixtures" / "traces"
ARGUMENTS = ("arguments", "args", "input", "rawInput", "parameters", "tool_input")
NONE = (None, "", "{}", {}, [])
Fits = Callable[[dict[str, Any]], bool]


class Sample:
    """A file as a value, and what it reads to."""

    def __init__(self, path: Path) -> None:
        self.name, text = path.name, path.read_text()
        lines = [line for line in text.splitlines() if line.strip()]
        self.lines = all(line[0] in "{[" and line[-1] in "}]" for line in lines) and len(lines) > 1
        self.value = [json.loads(line) for line in lines] if self.lines else json.loads(text)

    @cached_property
    def before(self) -> Reading:
        return self.read(self.value)

    def read(self, value: Any) -> Reading:
        return read_bytes(("\n".join(map(json.dumps, value)) if self.lines else json.dumps(value)).encode(), "sample")

    def check(self, fits: Fits, change: Callable[[dict[str, Any]], None]) -> None:
        """Change each object that fits, one at a time."""
        for place in list(_places(self.value, fits))[:6]:
            changed = deepcopy(self.value)
            change(_at(changed, place))
            read = self.read(changed)
            said = warnings(read) != warnings(self.before) or len(read.rejected) != len(self.before.rejected)
            assert said or _content(read) == _content(self.before), place


SAMPLES = [Sample(path) for path in sorted(FOLDER.iterdir()) if path.suffix in (".json", ".jsonl")]


def samples_with(fits: Fits) -> list[Sample]:
    """The samples that have an object of a kind."""
    return [sample for sample in SAMPLES if next(_places(sample.value, fits), None) is not None]


def of_lines() -> list[Sample]:
    return [sample for sample in SAMPLES if isinstance(sample.value, list) and all(isinstance(item, dict) for item in sample.value)]


def warnings(read: Reading) -> list[Any]:
    return [trace.warnings for trace in read.traces]


def _content(read: Reading) -> list[Any]:
    said = [message for trace in read.traces for message in trace.messages]
    return [(message.role, message.content, message.thinking, message.tool_calls) for message in said]


def _places(value: Any, fits: Callable[[dict[str, Any]], bool], place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict) and fits(value):
        yield place
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(inner, fits, (*place, key))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _parts(holder: dict[str, Any]) -> list[Any]:
    for key in ("content", "parts"):
        listed = holder.get(key)
        if isinstance(listed, list) and any(isinstance(part, dict) and {"type", "text"} <= part.keys() for part in listed):
            return listed
    return []


def _has_parts(holder: dict[str, Any]) -> bool:
    return bool(_parts(holder))


def _add_part(holder: dict[str, Any]) -> None:
    _parts(holder).append({"type": "of_tomorrow", "saying": "words"})


def _is_call(value: dict[str, Any]) -> bool:
    named = any(isinstance(value.get(key), str) for key in ("name", "toolName", "tool_name"))
    kind = value.get("type") in (None, "tool_use", "function_call", "tool_call", "tool-call", "toolCall", "toolUse")
    return named and kind and "description" not in value and any(value.get(key) not in NONE for key in ARGUMENTS)


def _take_arguments(call: dict[str, Any]) -> None:
    for key in ARGUMENTS:
        call.pop(key, None)


def _is_result(value: dict[str, Any]) -> bool:
    tool = value.get("role") in ("tool", "toolResult") or value.get("type") in ("tool_result", "toolResult", "function_call_output")
    return tool and isinstance(value.get("content", value.get("output")), str | list)


def _empty(result: dict[str, Any]) -> None:
    key = "content" if "content" in result else "output"
    result[key] = type(result[key])()


def _native(sample: Sample) -> bool:
    return isinstance(sample.value, dict) and "pamer_lab" in sample.value


def _name(sample: Sample) -> str:
    return sample.name


@pytest.mark.parametrize("sample", samples_with(_has_parts), ids=_name)
def test_a_part_of_an_unknown_type_is_named(sample: Sample) -> None:
    sample.check(_has_parts, _add_part)


# Our own format leaves empty arguments out.
@pytest.mark.parametrize("sample", [sample for sample in samples_with(_is_call) if not _native(sample)], ids=_name)
def test_a_call_without_its_arguments_is_counted(sample: Sample) -> None:
    sample.check(_is_call, _take_arguments)


@pytest.mark.parametrize("sample", samples_with(_is_result), ids=_name)
def test_an_empty_result_is_counted(sample: Sample) -> None:
    sample.check(_is_result, _empty)


@pytest.mark.parametrize("sample", of_lines(), ids=_name)
def test_a_line_of_an_unknown_type_is_named(sample: Sample) -> None:
    changed = [*sample.value[:1], {"type": "of_tomorrow", "data": {"text": "words"}}, *sample.value[1:]]
    read = sample.read(changed)
    assert sample.before.traces
    assert warnings(read) != warnings(sample.before) or len(read.rejected) > len(sample.before.rejected)
