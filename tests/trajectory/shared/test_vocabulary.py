"""One call and one result in every spelling that the readers share."""

import json
from typing import Any

import pytest

from pamer_lab.trajectory import Trace, read_bytes
from pamer_lab.trajectory.shared.parts import read_content

CALLS: list[dict[str, Any]] = [
    {"type": "tool_use", "id": "c", "name": "dig", "input": {"x": 1}},
    {"type": "toolCall", "id": "c", "name": "dig", "arguments": {"x": 1}},
    {"type": "tool-call", "toolCallId": "c", "toolName": "dig", "input": {"x": 1}},
    {"type": "tool_call", "id": "c", "name": "dig", "arguments": {"x": 1}},
    {"type": "tool_call", "call_id": "c", "function": {"name": "dig", "arguments": '{"x":1}'}},
    {"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "dig", "arguments": {"x": 1}}}},
    {"type": "function_call", "call_id": "c", "name": "dig", "arguments": '{"x":1}'},
    {"toolUse": {"toolUseId": "c", "name": "dig", "input": {"x": 1}}},
    {"functionCall": {"id": "c", "name": "dig", "args": {"x": 1}}},
]
RESULTS: list[dict[str, Any]] = [
    {"type": "tool_result", "tool_use_id": "c", "content": "a bean"},
    {"type": "tool_result", "toolUseID": "c", "run": {"status": "done", "result": "a bean"}},
    {"type": "tool_result", "tool_use_id": "c", "content": {"responseParts": {"functionResponse": {"response": {"output": "a bean"}}}}},
    {"type": "tool-result", "toolCallId": "c", "toolName": "dig", "output": {"type": "text", "value": "a bean"}},
    {"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "a bean"}]}}},
    {"type": "tool_call_response", "id": "c", "response": "a bean"},
    {"type": "function_call_output", "call_id": "c", "output": "a bean"},
    {"toolResult": {"toolUseId": "c", "content": [{"text": "a bean"}], "status": "success"}},
    {"functionResponse": {"id": "c", "name": "dig", "response": {"output": "a bean"}}},
]


@pytest.mark.parametrize("part", CALLS, ids=lambda part: part.get("type") or next(iter(part)))
def test_a_call_is_the_same_call_in_every_spelling(part: dict[str, Any]) -> None:
    content = read_content([part])
    assert [(call.id, call.name, call.arguments) for call in content.calls] == [("c", "dig", '{"x":1}')]
    assert not content.texts and not content.unknown


@pytest.mark.parametrize("part", RESULTS, ids=lambda part: part.get("type") or next(iter(part)))
def test_a_result_is_the_same_result_in_every_spelling(part: dict[str, Any]) -> None:
    content = read_content([part])
    assert [(call_id, inner.text, failed) for call_id, inner, failed in content.results] == [("c", "a bean", False)]
    assert not content.texts and not content.unknown


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True},
        {"type": "tool-result", "toolCallId": "c", "output": {"type": "error-text", "value": "no"}},
        {"type": "toolResponse", "id": "c", "toolResult": {"status": "error", "error": "no"}},
        {"type": "tool_result", "toolUseID": "c", "run": {"status": "error", "error": "no"}},
        {"functionResponse": {"id": "c", "response": {"error": "no"}}},
    ],
)
def test_a_failed_result_is_an_error_with_its_text(part: dict[str, Any]) -> None:
    assert [(inner.text, failed) for _, inner, failed in read_content([part]).results] == [("no", True)]


def test_a_tools_own_answer_is_no_wrapper() -> None:
    part = {"type": "tool_result", "tool_use_id": "c", "content": {"result": 5, "unit": "m"}}
    assert [json.loads(inner.text) for _, inner, _ in read_content([part]).results] == [{"result": 5, "unit": "m"}]


def test_a_part_with_call_and_result_gives_both() -> None:
    part = {"type": "tool-dig", "toolCallId": "c", "state": "output-available", "input": {"x": 1}, "output": "a bean"}
    content = read_content([part])
    assert [(call.id, call.name, call.arguments) for call in content.calls] == [("c", "dig", '{"x":1}')]
    assert [(call_id, inner.text) for call_id, inner, _ in content.results] == [("c", "a bean")]


def _read(*messages: dict[str, Any]) -> Trace:
    (trace,) = read_bytes(json.dumps([{"role": "user", "content": "Dig."}, *messages]).encode(), "log.json").traces
    return trace


def test_calls_and_results_beside_the_content_are_read_in_camel_case() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "dig", "arguments": "{}"}}
    trace = _read({"role": "assistant", "content": "Now.", "toolCalls": [call]}, {"role": "tool", "toolCallId": "c", "content": "a bean"})
    assert [(message.tool_call_id, message.content) for message in trace.messages if message.role == "tool"] == [("c", "a bean")]


def test_a_custom_call_of_openai_is_free_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "dig", "input": "two beds"}}
    trace = _read({"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "a bean"})
    assert [(found.name, found.arguments) for found in trace.messages[1].tool_calls] == [("dig", "two beds")]
    assert trace.warnings == ()


def test_an_unknown_role_is_kept_as_a_note() -> None:
    trace = _read({"role": "assistant", "content": "No."}, {"role": "wizard", "content": "Abracadabra"})
    assert [(event.kind, event.text, event.data) for event in trace.events] == [("note", "Abracadabra", {"role": "wizard"})]
    assert [warning.where for warning in trace.warnings] == ["messages[2]"]


def test_the_result_of_a_call_in_the_text_is_kept() -> None:
    trace = _read({"role": "assistant", "content": "<tool_call>dig</tool_call>"}, {"role": "tool", "content": "a bean"})
    assert (trace.messages[-1].role, trace.messages[-1].content) == ("user", "a bean")
    assert [warning.where for warning in trace.warnings] == ["messages[2]"]
