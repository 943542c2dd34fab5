"""Messages, events and steps in the names of many frameworks and tools: one small conversation in each, read to the same counts.

Every sample is a question, a call with its result, and an answer.
"""

import sqlite3
from typing import Any

import orjson
import pyarrow
import pytest

from pamer_lab.trajectory import Trace, read_bytes, read_traces
from pamer_lab.trajectory.values import EVENTS
from tests.trajectory.formats.test_agent_clis import FIXTURES
from tests.trajectory.formats.told import counts, only, read_lines, read_value

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
ANSWERED = (2, 1, 1)


def blocks(role: str, *parts: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": extra, "blocks": list(parts)}


def text_block(text: str) -> dict[str, str]:
    return {"block_type": "text", "text": text}


LLAMA_INDEX = [
    blocks("user", text_block("hi")),
    blocks("assistant", {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "f", "tool_kwargs": {"a": 1}}),
    blocks("tool", text_block("r"), tool_call_id="c"),
    blocks("assistant", text_block("done")),
]
SEMANTIC_KERNEL = [
    {"role": {"Label": "user"}, "items": [{"$type": "TextContent", "text": "hi"}]},
    {"role": {"Label": "assistant"}, "items": [{"$type": "FunctionCallContent", "id": "c", "functionName": "f", "arguments": {"a": 1}}]},
    {"role": {"Label": "tool"}, "items": [{"$type": "FunctionResultContent", "callId": "c", "result": "r"}]},
    {"role": {"Label": "assistant"}, "items": [{"$type": "TextContent", "text": "done"}]},
]
AGENT_FRAMEWORK = [
    {"type": "chat_message", "role": {"type": "role", "value": "user"}, "contents": [{"type": "text", "text": "hi"}]},
    {"role": {"value": "assistant"}, "contents": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}]},
    {"role": {"value": "tool"}, "contents": [{"type": "function_result", "call_id": "c", "result": "r"}]},
    {"role": {"value": "assistant"}, "contents": [{"type": "text", "text": "done"}]},
]
HAYSTACK = [
    {"_role": "user", "_content": [{"text": "hi"}]},
    {"_role": "assistant", "_content": [{"tool_call": {"tool_name": "f", "arguments": {"a": 1}, "id": "c"}}]},
    {"_role": "tool", "_content": [{"tool_call_result": {"result": "r", "origin": {"tool_name": "f", "id": "c"}, "error": False}}]},
    {"_role": "assistant", "_content": [{"text": "done"}]},
]
MASTRA = [
    {"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "hi"}]}},
    {
        "role": "assistant",
        "content": {
            "format": 2,
            "parts": [
                {
                    "type": "tool-invocation",
                    "toolInvocation": {"state": "result", "toolCallId": "c", "toolName": "f", "args": {"a": 1}, "result": "r"},
                },
                {"type": "text", "text": "done"},
            ],
        },
    },
]
ADK_EVENTS = [
    {"author": "user", "content": {"role": "user", "parts": [{"text": "hi"}]}},
    {"author": "helper", "content": {"role": "model", "parts": [{"function_call": {"id": "c", "name": "f", "args": {"a": 1}}}]}},
    {
        "author": "helper",
        "content": {"role": "user", "parts": [{"function_response": {"id": "c", "name": "f", "response": {"result": "r"}}}]},
    },
    {"author": "helper", "content": {"role": "model", "parts": [{"text": "done"}]}},
]
RESPONSES = [
    {"role": "user", "content": "hi"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
    {"type": "function_call_output", "call_id": "c", "output": "r"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
]
ZED_OLD = [
    {"role": "user", "segments": [{"type": "text", "text": "hi"}], "tool_uses": [], "tool_results": []},
    {"role": "assistant", "segments": [{"type": "text", "text": "look"}], "tool_uses": [{"id": "c", "name": "f", "input": {"a": 1}}]},
    {"role": "user", "segments": [], "tool_results": [{"tool_use_id": "c", "is_error": False, "content": "r"}]},
    {"role": "assistant", "segments": [{"type": "text", "text": "done"}]},
]
DIALECTS: dict[str, Any] = {
    "llama-index": {"chat_store": {"store": {"user": LLAMA_INDEX}}},
    "semantic-kernel": {"messages": SEMANTIC_KERNEL},
    "agent-framework": {"messages": AGENT_FRAMEWORK},
    "haystack": {"messages": HAYSTACK},
    "mastra": {"messages": MASTRA},
    "adk-events": ADK_EVENTS,
    "responses": RESPONSES,
    "responses-input": {"input": RESPONSES, "model": "m"},
    "responses-page": {"object": "list", "data": RESPONSES, "has_more": False},
    "zed-old": {"version": "0.2.0", "messages": ZED_OLD},
    "adk-evaluation": {
        "evalCases": [
            {
                "evalId": "e",
                "conversation": [
                    {
                        "userContent": {"parts": [{"text": "hi"}]},
                        "intermediateData": {
                            "toolUses": [{"id": "c", "name": "f", "args": {"a": 1}}],
                            "toolResponses": [{"id": "c", "name": "f", "response": {"result": "r"}}],
                        },
                        "finalResponse": {"parts": [{"text": "done"}]},
                    }
                ],
            }
        ]
    },
    "dspy": {
        "question": "hi",
        "trajectory": {
            **{"thought_0": "look", "tool_name_0": "f", "tool_args_0": {"a": 1}, "observation_0": "r"},
            **{"thought_1": "done"},
        },
    },
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_frameworks_own_names_are_read_like_any_other(name: str) -> None:
    _is_the_conversation(only(read_value(DIALECTS[name])))


@pytest.mark.parametrize("name", ["adk-events", "responses"])
def test_the_same_messages_may_be_lines(name: str) -> None:
    _is_the_conversation(only(read_lines(DIALECTS[name])))


def _is_the_conversation(trace: Trace) -> None:
    assert counts(trace) == ANSWERED
    call = next(call for message in trace.messages for call in message.tool_calls)
    assert call.name == "f"
    assert call.arguments.replace(" ", "") == '{"a":1}'
    assert [message.content for message in trace.messages if message.role == "tool"] == ["r"]
    assert trace.messages[0].content == "hi"
    assert trace.messages[-1].content == "done"
    assert not [warning for warning in trace.warnings if warning.kind in ("empty", "unread")]


EVENT_LOGS: dict[str, list[dict[str, Any]]] = {
    "snake": [
        {"event": "user_prompt", "text": "hi"},
        {"event": "tool_call", "tool": "f", "args": {"a": 1}, "id": "c"},
        {"event": "tool_result", "id": "c", "output": "r"},
        {"event": "assistant_text", "text": "done"},
    ],
    "dotted with a payload": [
        {"type": "user.input", "data": {"text": "hi"}},
        {"type": "agent.action", "data": {"tool": "f", "input": {"a": 1}}},
        {"type": "observation", "data": {"output": "r"}},
        {"type": "agent.final_answer", "data": {"text": "done"}},
    ],
    "started and finished": [
        {"kind": "UserMessage", "payload": {"text": "hi"}},
        {"kind": "ToolStarted", "payload": {"name": "f", "input": {"a": 1}, "call_id": "c"}},
        {"kind": "ToolFinished", "payload": {"call_id": "c", "output": "r"}},
        {"kind": "ModelResponse", "payload": {"text": "done"}},
    ],
    "in pieces": [
        {"type": "user_message", "text": "hi"},
        {"type": "TOOL_CALL_BEGIN", "toolCallId": "c", "toolName": "f"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"a"'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": ":1}"},
        {"type": "TOOL_CALL_RESULT", "toolCallId": "c", "content": "r"},
        {"type": "text_delta", "delta": "do"},
        {"type": "text_delta", "delta": "ne"},
    ],
}


@pytest.mark.parametrize("name", EVENT_LOGS)
def test_events_of_an_unknown_program_are_read_by_their_words_and_said_to_be_a_guess(name: str) -> None:
    trace = only(read_lines(EVENT_LOGS[name]))
    _is_the_conversation(trace)
    assert trace.format == EVENTS
    assert trace.confidence == "guessed"
    assert trace.warnings


def test_an_event_that_no_rule_takes_is_counted() -> None:
    log = [*EVENT_LOGS["snake"], {"event": "zebra", "stripes": 3}, {"event": "zebra", "stripes": 4}]
    unread = [warning for warning in only(read_lines(log)).warnings if warning.kind == "unread"]
    assert len(unread) == 1
    assert "zebra (2)" in unread[0].text
    assert unread[0].where == "line 5"


@pytest.mark.parametrize(
    ("file", "form", "expected"),
    [
        ("claude-managed-agents.jsonl", "claude-managed-agents", (4, 3, 3)),
        ("ag-ui-events.jsonl", "ag-ui-events", ANSWERED),
        ("zed-thread.json", "framework-messages", ANSWERED),
        ("cortex-trajectory.json", "antigravity-transcript", (3, 2, 2)),
        ("react-steps.json", "react-steps", (2, 2, 2)),
    ],
)
def test_the_samples_are_recognised(file: str, form: str, expected: tuple[int, int, int]) -> None:
    trace = only(read_traces(FIXTURES / file))
    assert (trace.format, counts(trace)) == (form, expected)
    assert trace.confidence == "recognised"


def test_usage_of_managed_agents_and_cortex_is_kept_per_turn() -> None:
    agents = only(read_traces(FIXTURES / "claude-managed-agents.jsonl"))
    first = next(message.usage for message in agents.messages if message.role == "assistant")
    assert first is not None
    assert (first.input_tokens, first.cached_tokens, first.output_tokens) == (112, 100, 5)
    cortex = only(read_traces(FIXTURES / "cortex-trajectory.json"))
    assert sum(message.usage is not None for message in cortex.messages) == 1


def test_threads_in_zeds_database_are_unpacked() -> None:
    packed = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, "zstd") as stream:
        stream.write((FIXTURES / "zed-thread.json").read_bytes())
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE threads (id TEXT, summary TEXT, data_type TEXT, data BLOB)")
        connection.execute("INSERT INTO threads VALUES ('t', 'x', 'zstd', ?)", (packed.getvalue().to_pybytes(),))
        connection.commit()
        reading = read_bytes(connection.serialize(), "threads.db")
    assert counts(only(reading.traces)) == ANSWERED


def test_a_list_with_the_newest_message_first_is_put_in_order() -> None:
    page = {"data": [{"role": "assistant", "content": "done", "created_at": 2}, {"role": "user", "content": "hi", "created_at": 1}]}
    trace = only(read_value(page))
    assert [message.content for message in trace.messages] == ["hi", "done"]
    assert any(warning.where == "data" for warning in trace.warnings)


def test_other_conversations_of_a_record_are_counted() -> None:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}]
    trace = only(read_value({"first": said, "second": [said[0], {"role": "assistant", "content": "bad"}]}))
    assert [warning.where for warning in trace.warnings if warning.kind == "unread"] == ["second"]


def test_a_log_whose_last_line_is_cut_is_read_with_a_note() -> None:
    data = b'{"role":"user","content":"hi"}\n{"role":"assistant","content":"done"}\n{"role":"user","cont'
    reading = read_bytes(data, "x.jsonl")
    assert counts(only(reading.traces)) == (1, 0, 0)
    assert [warning.where for warning in reading.traces[0].warnings] == ["line 3"]


def test_copilot_messages_that_are_only_there_in_pieces_are_put_together() -> None:
    events = [
        {"type": "user.message", "data": {"content": "hi"}},
        {"type": "assistant.message_delta", "data": {"messageId": "m", "deltaContent": "do"}},
        {"type": "assistant.message_delta", "data": {"messageId": "m", "deltaContent": "ne"}},
    ]
    assert only(read_lines(events)).messages[-1].content == "done"


def test_a_tool_span_that_starts_with_the_next_call_answers_the_call_before() -> None:
    def span(number: int, start: int, data: dict[str, Any]) -> dict[str, Any]:
        own = {"object": "trace.span", "id": f"s{number}", "trace_id": "t", "parent_id": "a" if number else None}
        return {**own, "started_at": f"2026-01-01T00:00:0{start}Z", "span_data": data}

    asked = [{"role": "user", "content": "hi"}]
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    trace = only(
        read_lines(
            [
                span(1, 0, {"type": "generation", "input": asked, "output": [called]}),
                span(2, 1, {"type": "function", "name": "f", "input": '{"a":1}', "output": "r"}),
                span(
                    3,
                    1,
                    {
                        "type": "generation",
                        "input": [*asked, called, {"role": "tool", "tool_call_id": "c", "content": "r"}],
                        "output": [{"role": "assistant", "content": "done"}],
                    },
                ),
            ]
        )
    )
    assert counts(trace) == ANSWERED


def test_a_named_call_without_arguments_is_said_and_nothing_is_taken_for_them() -> None:
    items = [{key: value for key, value in item.items() if key != "arguments"} | {"metadata": {"x": 1}} for item in RESPONSES]
    trace = only(read_value(items))
    assert [call.arguments for message in trace.messages for call in message.tool_calls] == ["{}"]
    assert [warning.kind for warning in trace.warnings] == ["empty"]


def test_a_record_of_telemetry_without_a_span_is_counted() -> None:
    span = {"id": "s", "trace_id": "t", "type": "llm", "input": [{"role": "user", "content": "hi"}], "start_time": "2026-01-01T00:00:00Z"}
    trace = only(read_lines([span | {"output": [{"role": "assistant", "content": "done"}]}, {"type": "zebra"}]))
    assert [warning.where.split()[-1] for warning in trace.warnings if warning.kind == "unread"] == ["2"]


def test_messages_that_only_a_search_finds_are_a_guess() -> None:
    thread = orjson.loads((FIXTURES / "zed-thread.json").read_bytes())
    deep = only(read_value({"dump": {"threads": [thread]}}))
    assert (deep.format, deep.confidence) == ("framework-messages", "guessed")
    assert deep.messages == only(read_traces(FIXTURES / "zed-thread.json")).messages


def test_screenshots_of_ui_tars_leave_their_size() -> None:
    turns = [{"from": "human", "value": "open it"}, {"from": "human", "value": "<image>", "screenshotBase64": "aaaa"}]
    trace = only(read_value({"conversations": [*turns, {"from": "gpt", "value": "Action: finished()"}]}))
    assert [image.bytes for message in trace.messages for image in message.images] == [3]
