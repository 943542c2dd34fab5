"""Small files that would become something large, slow or impossible further on."""

import json
from typing import Any

import pytest

from pamer_lab.blocks.render import render
from pamer_lab.trajectory import read_bytes
from pamer_lab.trajectory.draft import MOST_CALLS
from pamer_lab.trajectory.plain_values import MOST_DEPTH

ASKED: dict[str, Any] = {"role": "user", "content": "hi"}
DONE: dict[str, Any] = {"role": "assistant", "content": "done"}


def _calls(count: int, arguments: Any = "{}") -> dict[str, Any]:
    calls = [{"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": arguments}} for number in range(count)]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"properties": value}
    return value


def test_deep_tool_parameters_are_left_out_with_a_warning_and_the_request_can_be_written() -> None:
    for levels, kept in ((MOST_DEPTH - 1, True), (450, False), (900, False)):
        tools = [{"type": "function", "function": {"name": "f", "parameters": _nested(levels)}}]
        (trace,) = read_bytes(json.dumps({"messages": [ASKED, DONE], "tools": tools}).encode(), "x").traces
        assert render(trace.messages, trace.tools) and bool(trace.tools[0].parameters) is kept
        assert any(warning.where == "tools" for warning in trace.warnings) is not kept


def test_deep_arguments_are_refused_in_a_sentence() -> None:
    reading = read_bytes(json.dumps({"messages": [ASKED, _calls(1, _nested(450)), DONE]}).encode(), "x")
    assert not reading.traces and len(reading.rejected) == 1


def test_a_message_has_a_bearable_number_of_calls() -> None:
    assert read_bytes(json.dumps({"messages": [ASKED, _calls(MOST_CALLS), DONE]}).encode(), "x").traces
    reading = read_bytes(json.dumps({"messages": [ASKED, _calls(MOST_CALLS + 1), DONE]}).encode(), "x")
    assert not reading.traces and reading.rejected


@pytest.mark.parametrize("text", ['{"a":1, "a" : 2}', '{"a"\n:1,"b":"\\":","a":2}', '{"a\\\\":1,"a\\\\" :2}', '{"b":{"a"\t:1,"a"\r\n:1}}'])
def test_a_key_twice_is_refused_whatever_is_before_its_colon(text: str) -> None:
    (rejection,) = read_bytes(text.encode(), "x").rejected
    assert "twice" in rejection.reason


@pytest.mark.parametrize("text", ['{"a":"\\":","b":1}', '{"a\\\\":1,"b":"x\\\\\\": y"}', '{"a" : {"a" :1}, "b":[{"a":1},{"a":1}]}'])
def test_texts_that_look_like_keys_are_not_counted(text: str) -> None:
    assert not any("twice" in rejection.reason for rejection in read_bytes(text.encode(), "x").rejected)
