"""Sessions of agent CLIs and IDEs: the real files against independent counts, and hand-made variants that they do not show."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import Trace, read_traces
from pamer_lab.trajectory.shared.steps import REWOUND
from tests.conftest import REAL_TRACES
from tests.trajectory.formats.told import counts, only, read_lines, read_value

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"

COUNTS: dict[str, tuple[str, int, int, int, int]] = {
    "copilot-vscode/copilot_session_simple.jsonl": ("copilot-vscode-session", 5, 2, 2, 0),
    "copilot-vscode/copilot_vscode_event_stream.jsonl": ("copilot-events", 2, 2, 2, 0),
    "copilot-cli/copilot-cli-events.jsonl": ("copilot-events", 5, 4, 4, 1),
    "copilot-chatreplay/spec.chatreplay.json": ("copilot-chatreplay", 4, 2, 2, 0),
    "amp/T-019ca1ce-3ae2-7686-a41e-ccc078837f8a.json": ("amp-thread", 3, 4, 4, 0),
    "windsurf/windsurf-session-simple.jsonl": ("windsurf-transcript", 5, 18, 18, 0),
    "cursor/cursor-session-simple.jsonl": ("cursor", 10, 10, 0, 0),
    "continue/continue-cli-session-simple.json": ("continue-session", 3, 2, 2, 0),
    "droid/droid-session.jsonl": ("droid-session", 5, 5, 5, 0),
    "droid/droid_stream_json_large.jsonl": ("agent-stream-json", 1, 1, 1, 0),
    "gemini-cli-jsonl/gemini-session-simple.jsonl": ("gemini-contents", 5, 4, 0, 0),
    "gemini-cli-jsonl/jsonl_v040.jsonl": ("gemini-contents", 2, 1, 1, 0),
    "iflow/session-5de701fc-7454-4858-a249-95cac4fd3b51.jsonl": ("iflow-session", 4, 6, 6, 0),
    "grok-build/chat_history.jsonl": ("grok-build", 2, 2, 2, 0),
    "qwen-code/019f0000-0000-7000-8000-000000000004.jsonl": ("qwen-code", 2, 1, 0, 0),
    "qwen-code/system_telemetry.jsonl": ("qwen-code", 1, 1, 1, 0),
    "antigravity/cli_small.jsonl": ("antigravity-transcript", 3, 2, 9, 7),
    "openclaw/openclaw-large.jsonl": ("pi-session-jsonl", 3, 2, 2, 0),
    "openclaw-telemetry/sample-telemetry.jsonl": ("openclaw-telemetry", 6, 6, 6, 0),
    "codex-exec-json/codex_exec_unwrapped.jsonl": ("codex-exec-json", 2, 1, 1, 0),
    "codex-2026/codex-2026-small.jsonl": ("codex-rollout", 7, 8, 6, 1),
    "kilocode/_capture-wsl.json": ("opencode-events", 12, 5, 5, 0),
    "opencode-run-json/opencode_run.jsonl": ("opencode-events", 2, 2, 2, 0),
    "atif-new/terminus_2_hello-world-context-summarization-linear-history.trajectory.cont-1.json": ("atif", 5, 0, 4, 4),
    "cline-cli/sample-session-messages.json": ("cline-sdk-session", 3, 1, 1, 0),
    "cline/api_conversation_history.json": ("anthropic-messages", 3, 3, 3, 0),
    "cline/cline_sdk_agentic.compaction.json": ("cline-sdk-session", 1, 0, 0, 0),
    "claude-code-2026/cua_openshot_session.jsonl": ("claude-code-jsonl", 45, 44, 44, 0),
    "goose/goose_recording_weather_tool.json": ("goose-session", 2, 1, 1, 0),
}
"""File -> its format, turns, calls and results as the collection's index counts them, and how many of the results name no open call."""


@pytest.mark.skipif(not REAL_TRACES.is_dir(), reason="the real traces are not next to this checkout")
@pytest.mark.parametrize("name", COUNTS)
def test_a_real_session_gives_the_counts_of_the_index_and_no_empty_text(name: str) -> None:
    form, *expected, loose = COUNTS[name]
    trace = only(read_traces(REAL_TRACES / name))
    assert trace.format == form
    assert list(counts(trace)) == expected
    assert sum(message.result for message in trace.messages) == loose
    assert not violations(trace.messages)
    assert not [message for message in trace.messages if message.role in ("user", "tool") and not message.content.strip()]
    assert all(said.content.strip() or said.tool_calls or said.thinking for said in trace.messages if said.role == "assistant")


MADE: dict[str, tuple[str, int, int, int]] = {
    "acp-updates": ("acp-updates.jsonl", 2, 1, 1),
    "agent-stream-json": ("droid-stream.jsonl", 2, 1, 1),
    "amp-thread": ("amp-thread.json", 2, 1, 1),
    "antigravity-transcript": ("antigravity.jsonl", 2, 1, 1),
    "cline-sdk-session": ("cline-sdk.json", 2, 1, 1),
    "codex-exec-json": ("codex-exec.jsonl", 2, 1, 1),
    "continue-session": ("continue-session.json", 2, 1, 1),
    "copilot-chatreplay": ("copilot-chatreplay.json", 2, 1, 1),
    "copilot-events": ("copilot-events.jsonl", 2, 2, 2),
    "copilot-vscode-session": ("copilot-session.json", 2, 1, 1),
    "cursor": ("cursor-stream.jsonl", 2, 1, 1),
    "droid-session": ("droid-session.jsonl", 2, 1, 1),
    "gemini-contents": ("gemini-recording.jsonl", 2, 1, 1),
    "goose-session": ("goose-session.jsonl", 2, 1, 1),
    "grok-build": ("grok-build.jsonl", 2, 1, 1),
    "iflow-session": ("iflow.jsonl", 2, 2, 2),
    "openclaw-telemetry": ("openclaw-telemetry.jsonl", 2, 1, 1),
    "opencode-events": ("opencode-run.jsonl", 2, 1, 1),
    "qwen-code": ("qwen-code.jsonl", 2, 1, 1),
    "windsurf-transcript": ("windsurf.jsonl", 2, 2, 2),
}
"""Format -> a hand-made session about two rakes in a locked shed, its turns, calls and results."""


@pytest.mark.parametrize("form", MADE)
def test_a_hand_made_session_is_taken_by_its_own_reader_at_once(form: str) -> None:
    name, *expected = MADE[form]
    trace = only(read_traces(FIXTURES / name))
    assert (trace.format, list(counts(trace))) == (form, expected)
    assert not violations(trace.messages)
    assert not [warning for warning in trace.warnings if warning.kind == "empty" or warning.where == "file"]
    if form not in ("codex-exec-json", "opencode-events"):  # these two do not record the prompt
        assert any("count the rakes" in message.content or "so far" in message.content for message in trace.messages)


def _cursor_call(stage: str, own: str, group: str = "", **fields: Any) -> dict[str, Any]:
    line = {"type": "tool_call", "subtype": stage, "call_id": own, "tool_call": {"readToolCall": {"args": {"path": own}, **fields}}}
    return line | ({"model_call_id": group} if group else {})


def _said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}, "session_id": "s", **fields}


CURSOR_INIT = {"type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/w", "session_id": "s", "model": "Auto"}


def test_cursors_stream_keeps_parallel_calls_of_one_model_call_in_one_turn() -> None:
    trace = only(
        read_lines(
            [
                CURSOR_INIT,
                _said("user", "count"),
                {"type": "thinking", "subtype": "delta", "text": "look ", "session_id": "s"},
                {"type": "thinking", "subtype": "delta", "text": "first", "session_id": "s"},
                _said("assistant", "I look.", model_call_id="m1", timestamp_ms=1),
                _cursor_call("started", "a", "m1"),
                _cursor_call("completed", "a", "m1", result={"success": {"content": "one"}}),
                _cursor_call("started", "b", "m1"),
                _cursor_call("completed", "b", "m1", result={"error": {"errorMessage": "gone"}}),
                _said("assistant", "One."),
                {"type": "result", "subtype": "success", "is_error": False, "result": "I look.One.", "session_id": "s"},
            ]
        )
    )
    assert (trace.format, counts(trace)) == ("cursor", (2, 2, 2))
    first = next(message for message in trace.messages if message.role == "assistant")
    assert (first.thinking, [call.name for call in first.tool_calls]) == ("look first", ["read", "read"])
    results = [message for message in trace.messages if message.role == "tool"]
    assert [(result.content, result.error) for result in results] == [("one", False), ('{"errorMessage":"gone"}', True)]
    assert not trace.events


def test_cursors_partial_output_counts_a_message_once() -> None:
    pieces = [_said("assistant", text, timestamp_ms=1) for text in ("He", "llo")]
    trace = only(read_lines([CURSOR_INIT, _said("user", "hi"), *pieces, _said("assistant", "Hello"), _cursor_call("started", "a")]))
    assert [message.content for message in trace.messages] == ["hi", "Hello"]
    assert counts(trace) == (1, 1, 0)


def test_gemini_stream_joins_the_pieces_of_a_message() -> None:
    trace = only(
        read_lines(
            [
                {"type": "init", "session_id": "s", "model": "gemini-3"},
                {"type": "message", "role": "user", "content": "go"},
                {"type": "message", "role": "assistant", "content": "I ", "delta": True},
                {"type": "message", "role": "assistant", "content": "go.", "delta": True},
                {"type": "tool_use", "tool_name": "ls", "tool_id": "x", "parameters": {"p": 1}},
                {"type": "tool_result", "tool_id": "x", "status": "error", "error": {"type": "io", "message": "none"}},
                {"type": "message", "role": "assistant", "content": "Nothing there.", "delta": True},
                {"type": "result", "status": "success", "stats": {"input_tokens": 9, "output_tokens": 3}},
            ]
        )
    )
    assert (trace.format, trace.model, counts(trace)) == ("agent-stream-json", "gemini-3", (2, 1, 1))
    assert [message.content for message in trace.messages] == ["go", "I go.", "none", "Nothing there."]
    assert trace.messages[2].error
    assert trace.usage is not None and trace.usage.input_tokens == 9


def _request(text: str, response: list[Any], **metadata: Any) -> dict[str, Any]:
    return {"requestId": text, "message": {"text": text}, "response": response, "result": {"metadata": metadata}}


def test_vs_codes_log_of_changes_gives_the_session_as_it_was_last() -> None:
    rounds = [
        {"response": "I read.", "toolCalls": [{"id": "c", "name": "read", "arguments": "{}"}]},
        {"response": "", "toolCalls": []},
        {"response": "Done.", "toolCalls": []},
    ]
    trace = only(
        read_lines(
            [
                {"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": [_request("old", [{"value": "gone"}])]}},
                {"kind": 2, "k": ["requests"], "i": 0, "v": [_request("new", [{"value": "shown"}])]},
                {"kind": 1, "k": ["requests", 0, "result"], "v": {"metadata": {"toolCallRounds": rounds}}},
                {"kind": 1, "k": ["requests", 0, "result", "metadata", "toolCallResults"], "v": {"c": {"content": [{"value": "text"}]}}},
                {"kind": 3, "k": ["requests", 0, "requestId"]},
                {"kind": 1, "k": ["nowhere", "below"], "v": 1},
            ]
        )
    )
    assert [message.content for message in trace.messages] == ["new", "I read.", "text", "Done."]
    assert [warning.kind for warning in trace.warnings] == ["unread"]


def test_vs_codes_answer_is_read_from_what_was_shown_where_no_rounds_are_kept() -> None:
    tool = {"kind": "toolInvocationSerialized", "toolCallId": "t", "toolId": "grep", "isComplete": True}
    tool |= {"invocationMessage": {"value": "Searching"}, "pastTenseMessage": {"value": "Found 2"}}
    parts = [{"value": "First "}, {"value": "I look."}, tool, {"kind": "undoStop"}, {"value": "Two."}, {"kind": "novelty", "x": 1}]
    trace = only(read_value({"sessionId": "s", "requests": [_request("find", parts)]}))
    assert [message.content for message in trace.messages] == ["find", "First I look.", "Found 2", "Two."]
    assert counts(trace) == (2, 1, 1)
    assert "novelty (1)" in trace.warnings[-1].text


def test_a_side_agent_of_copilot_is_one_event() -> None:
    def event(kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": kind, "parentId": None}

    trace = only(
        read_lines(
            [
                event("user.message", content="go", transformedContent="<now>1</now> go"),
                event("assistant.message", content="", toolRequests=[{"toolCallId": "t", "name": "task", "arguments": {"p": 1}}]),
                event("assistant.message", content="side words", parentToolCallId="t", toolRequests=[]),
                event("tool.execution_complete", toolCallId="t", success=True, result={"content": "report"}),
                event("session.compaction_complete", success=True, preCompactionTokens=50, summaryContent="short"),
                event("assistant.message", content="Done.", outputTokens=3),
                event("novel.event", x=1),
            ]
        )
    )
    assert [message.content for message in trace.messages] == ["<now>1</now> go", "", "report", "Done."]
    assert [(event.kind, event.text) for event in trace.events] == [("subagent", "side words"), ("compaction", "short")]
    assert trace.events[1].replaced == ((0, 3),)
    assert "novel.event (1)" in trace.warnings[-1].text


def test_codex_exec_takes_the_last_version_of_an_item_and_its_totals() -> None:
    def item(stage: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"item.{stage}", "item": fields}

    trace = only(
        read_lines(
            [
                {"type": "thread.started", "thread_id": "th"},
                {"type": "turn.started"},
                item("completed", id="0", type="reasoning", text="hm"),
                item("started", id="1", type="mcp_tool_call", server="s", tool="t", arguments={"a": 1}, status="in_progress"),
                item("completed", id="1", type="mcp_tool_call", server="s", tool="t", arguments={"a": 1}, status="completed")
                | {
                    "item": {"id": "1", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "completed"}
                    | {"result": {"content": [{"type": "text", "text": "found"}]}}
                },
                item("completed", id="2", type="file_change", changes=[{"path": "a", "kind": "add"}], status="failed"),
                item("completed", id="3", type="agent_message", text="Done."),
                {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}},
            ]
        )
    )
    assert counts(trace) == (3, 2, 2)
    assert trace.messages[0].thinking == "hm"
    results = [(message.content, message.error) for message in trace.messages if message.role == "tool"]
    assert results[0] == ("found", False) and results[1][1]
    assert trace.usage is not None and (trace.usage.input_tokens, trace.usage.cached_tokens) == (10, 4)


def test_the_items_of_codexs_app_server_are_the_same_items() -> None:
    def notice(**item: Any) -> dict[str, Any]:
        return {"method": "item/completed", "params": {"threadId": "t", "item": item}}

    done = notice(id="2", type="commandExecution", command="ls", aggregatedOutput="a.txt", exitCode=1, status="completed")
    said = notice(id="1", type="userMessage", content=[{"type": "text", "text": "list"}])
    trace = only(read_lines([said, done, notice(id="3", type="agentMessage", text="One file.")]))
    assert [(message.role, message.content, message.error) for message in trace.messages] == [
        ("user", "list", False),
        ("assistant", "", False),
        ("tool", "a.txt", True),
        ("assistant", "One file.", False),
    ]


def test_a_compression_of_qwen_code_replaces_what_came_before() -> None:
    def line(own: str, above: str | None, kind: str, role: str = "", **fields: Any) -> dict[str, Any]:
        body = {"message": {"role": role, "parts": fields.pop("parts")}} if role else {}
        return {"uuid": own, "parentUuid": above, "sessionId": "s", "type": kind, **body, **fields}

    summary = {
        "info": {"originalTokenCount": 90, "newTokenCount": 9},
        "compressedHistory": [{"role": "user", "parts": [{"text": "so far"}]}],
    }
    trace = only(
        read_lines(
            [
                line("1", None, "user", "user", parts=[{"text": "go"}]),
                line("2", "1", "assistant", "model", parts=[{"functionCall": {"id": "f", "name": "ls", "args": {}}}]),
                line("3", "2", "tool_result", "user", parts=[{"functionResponse": {"id": "f", "name": "ls", "response": {"error": "no"}}}]),
                line("4", "3", "system", subtype="chat_compression", systemPayload=summary),
                line("5", "4", "assistant", "model", parts=[{"text": "Done."}]),
            ]
        )
    )
    assert counts(trace) == (2, 1, 1)
    assert trace.messages[2].error
    event = only_event(trace)
    assert (event.kind, event.text, event.replaced, event.tokens_before) == ("compaction", "so far", ((0, 3),), 90)


def test_a_rewound_session_of_qwen_code_says_where() -> None:
    lines = [
        {"uuid": str(number), "sessionId": "s", "type": role, "message": {"role": role, "parts": [{"text": role}]}}
        for number, role in enumerate(("user", "assistant", "user", "assistant"))
    ]
    payload = {"targetUuid": "0"}
    lines.insert(2, {"uuid": "r", "sessionId": "s", "type": "system", "subtype": "rewind", "systemPayload": payload})
    trace = only(read_lines(lines))
    event = only_event(trace)
    assert (counts(trace), event.kind, event.before_message, event.data) == ((2, 0, 0), "context_edit", 2, {"to": "0"})
    assert [(warning.where, warning.text) for warning in trace.warnings] == [("line 3", REWOUND)]


def only_event(trace: Trace) -> Any:
    assert len(trace.events) == 1
    return trace.events[0]


def test_a_goose_session_in_lines_keeps_its_summary_as_a_compaction() -> None:
    def message(role: str, *parts: Any, **metadata: Any) -> dict[str, Any]:
        return {"role": role, "created": 1, "content": list(parts), "metadata": metadata}

    request = {"type": "toolRequest", "id": "t", "toolCall": {"status": "success", "value": {"name": "ls", "arguments": {"p": "."}}}}
    response = {
        "type": "toolResponse",
        "id": "t",
        "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "a"}]}},
    }
    hidden = {"agentVisible": False, "userVisible": True}
    trace = only(
        read_lines(
            [
                {"working_dir": "/w", "description": "title"},
                message("user", {"type": "text", "text": "list"}, **hidden),
                message("assistant", {"type": "text", "text": "I do."}, request, **hidden),
                message("user", response, **hidden),
                message("user", {"type": "text", "text": "summary"}, agentVisible=True, userVisible=False),
                message("assistant", {"type": "text", "text": "Done."}),
            ]
        )
    )
    assert (trace.format, counts(trace)) == ("goose-session", (2, 1, 1))
    assert only_event(trace).replaced == ((0, 3),)
    assert trace.messages[2].content == "a"


def test_an_unseen_line_of_each_reader_is_named() -> None:
    lines = [{"type": "session_start", "id": "s"}, {"type": "hologram"}, {"type": "message", "message": {"role": "user", "content": "go"}}]
    trace = only(read_lines([*lines, {"type": "message", "message": {"role": "assistant", "content": "Done."}}]))
    assert trace.format == "droid-session"
    assert [(warning.kind, "hologram (1)" in warning.text) for warning in trace.warnings] == [("unread", True)]


def test_the_open_files_of_these_formats_exist_where_the_collection_does() -> None:
    if REAL_TRACES.is_dir():
        assert not [name for name in COUNTS if not (REAL_TRACES / Path(name)).is_file()]


def test_goose_writes_a_text_in_pieces_that_are_one_turn() -> None:
    def line(own: str, text: str) -> dict[str, Any]:
        return {"type": "message", "message": {"id": own, "role": "assistant", "created": 1, "content": [{"type": "text", "text": text}]}}

    request = {"type": "toolRequest", "id": "t", "toolCall": {"status": "success", "value": {"name": "ls", "arguments": {}}}}
    asked = {"type": "message", "message": {"id": "a", "role": "assistant", "created": 1, "content": [request]}}
    value = {"type": "toolResponse", "id": "t", "toolResult": {"status": "success", "value": [{"type": "text", "text": "two"}]}}
    answered = {"type": "message", "message": {"id": "u", "role": "user", "created": 1, "content": [value]}}
    trace = only(read_lines([line("a", "I "), line("a", "look."), asked, answered, line("b", "Two."), {"type": "complete"}]))
    assert (trace.format, counts(trace)) == ("goose-session", (2, 1, 1))
    assert [message.content for message in trace.messages] == ["I look.", "two", "Two."]


def test_events_in_a_payload_and_a_chat_behind_a_header_are_read() -> None:
    events = [
        {"id": "0", "type": "session_configured", "payload": {"session_id": "s", "model": "m1"}},
        {"id": "1", "type": "user_message", "payload": {"content": "count"}},
        {"id": "2", "type": "tool_call", "payload": {"call_id": "a", "tool": "ls", "input": {}}},
        {"id": "3", "type": "tool_output", "payload": {"call_id": "a", "output": "none", "success": False}},
        {"id": "4", "type": "agent_message", "payload": {"content": "None."}},
    ]
    trace = only(read_lines(events))
    assert (trace.format, trace.model, counts(trace), trace.messages[2].error) == ("agent-stream-json", "m1", (2, 1, 1), True)
    chat = [
        {"id": "z", "creationReason": "newChat", "createdAt": "2026-01-01"},
        {"role": "user", "content": [{"type": "text", "text": "count"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "ls", "input": {}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "content": [{"type": "text", "text": "two"}]}]},
        {"role": "finish", "reason": "stop"},
    ]
    trace = only(read_lines(chat))
    assert counts(trace) == (1, 1, 1) and only_event(trace).text == "stop"


def test_a_gemini_recording_merges_an_update_and_takes_results_that_are_messages() -> None:
    call = {"type": "functionCall", "functionCall": {"id": "c", "name": "sh", "args": {"c": "ls"}}}
    answer = {"type": "functionResponse", "functionResponse": {"id": "c", "name": "sh", "response": {"output": "two"}}}
    lines = [
        {"type": "session_metadata", "sessionId": "s", "projectHash": "h"},
        {"type": "user", "id": "u", "content": [{"type": "text", "text": "count"}]},
        {"type": "gemini", "id": "m", "content": [call], "tokens": {"input": 5, "output": 1}},
        {"type": "tool", "id": "t", "content": [answer]},
        {"type": "message_update", "id": "m", "tokens": {"input": 5, "output": 9}},
    ]
    trace = only(read_lines(lines))
    assert counts(trace) == (1, 1, 1) and trace.meta["session"] == "s"
    assert trace.messages[1].usage is not None and trace.messages[1].usage.output_tokens == 9
    roles = [{**line, "role": line["type"]} for line in lines[1:4]]
    for line in roles:
        del line["type"]
    assert counts(only(read_value({"sessionId": "s", "messages": roles}))) == (1, 1, 1)


def test_chunks_of_the_agent_client_protocol_are_joined_and_its_calls_updated() -> None:
    def update(name: str, **fields: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": name, **fields}}}

    def chunk(who: str, text: str) -> dict[str, Any]:
        return update(f"{who}_chunk", content={"type": "text", "text": text})

    trace = only(
        read_lines(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "count"}]}},
                chunk("agent_thought", "h"),
                chunk("agent_thought", "m"),
                chunk("agent_message", "I "),
                chunk("agent_message", "look."),
                update("tool_call", toolCallId="a", title="List", kind="read", status="pending", rawInput={"p": "."}),
                update("tool_call_update", toolCallId="a", status="in_progress"),
                update(
                    "tool_call_update",
                    toolCallId="a",
                    status="failed",
                    content=[{"type": "content", "content": {"type": "text", "text": "no"}}],
                ),
                chunk("agent_message", "None."),
                update("hologram"),
            ]
        )
    )
    assert (trace.format, counts(trace)) == ("acp-updates", (2, 1, 1))
    assert [message.content for message in trace.messages] == ["count", "I look.", "no", "None."]
    assert trace.messages[1].thinking == "hm" and trace.messages[2].error
    assert "hologram (1)" in trace.warnings[-1].text


def test_arguments_and_results_of_the_client_protocol_may_come_in_later_lines_and_without_a_status() -> None:
    def update(kind: str, **facts: Any) -> dict[str, Any]:
        return {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **facts}}}

    trace = only(
        read_lines(
            [
                update("user_message_chunk", content={"type": "text", "text": "count"}),
                update("tool_call", toolCallId="a", title="List", status="pending", rawInput={}),
                update("tool_call_update", toolCallId="a", status="in_progress", rawInput={"p": "."}),
                update("tool_call_update", toolCallId="a", status="completed", rawOutput="a.py"),
                update("tool_call", toolCallId="b", title="Look"),
                update("tool_call_update", toolCallId="b", content={"type": "text", "text": "seen"}),
                update("agent_message_chunk", content={"type": "text", "text": "One."}),
                update("tool_call_update", toolCallId="b", content={"type": "text", "text": "seen again"}),
                update("tool_call", toolCallId="c", title="Wait", status="in_progress", rawInput={"s": 1}, rawOutput="half"),
            ]
        )
    )
    assert counts(trace) == (3, 3, 3)
    assert [call.arguments for message in trace.messages for call in message.tool_calls] == ['{"p":"."}', "{}", '{"s":1}']
    assert [message.content for message in trace.messages if message.role == "tool"] == ["a.py", "seen", "half"]
    assert [warning.kind for warning in trace.warnings] == ["empty", "unread"]


def test_thoughts_on_a_line_of_their_own_belong_to_the_message_behind_them() -> None:
    lines = [
        {"type": "message", "role": "user", "text": "hi", "session_id": "s"},
        {"type": "reasoning", "text": "hm", "session_id": "s"},
        {"type": "message", "role": "assistant", "text": "I look.", "session_id": "s"},
        {"type": "tool_call", "id": "c", "toolName": "List", "parameters": {"p": "."}, "session_id": "s"},
        {"type": "tool_result", "id": "c", "value": "a.py", "session_id": "s"},
        {"type": "message", "role": "assistant", "text": "One.", "session_id": "s"},
    ]
    trace = only(read_lines(lines))
    assert (counts(trace), trace.messages[1].thinking) == ((2, 1, 1), "hm")


def test_a_prompt_of_copilot_that_is_sent_again_is_kept_and_history_is_not_repeated() -> None:
    said = ["Be brief.", "go", "Done.", "continue", "Done.", "continue", "Done."]
    held = [{"role": role, "content": text} for role, text in zip((0, 1, 2, 1, 2, 1, 2), said, strict=True)]
    done, failed = {"type": "success", "message": ["Done."]}, {"type": "failed", "reason": "network"}
    logs = [
        {"kind": "request", "requestMessages": {"messages": held[:sent]}, "response": response}
        for sent, response in ((2, done), (4, failed), (4, done), (6, done))
    ]
    trace = only(read_value({"prompts": [{"prompt": "go", "logs": logs}]}))
    assert [message.content for message in trace.messages] == said


def test_results_of_copilot_without_ids_are_all_kept() -> None:
    held = [{"role": 1, "content": "go"}]
    for text in ("one", "two"):
        call = {"id": text, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        held += [{"role": 2, "content": "", "toolCalls": [call]}, {"role": 3, "content": text}]  # type: ignore[dict-item]
    request = {"kind": "request", "requestMessages": {"messages": held}, "response": {"type": "success", "message": ["Done."]}}
    trace = only(read_value({"prompts": [{"prompt": "go", "logs": [request]}]}))
    assert [message.content for message in trace.messages if message.role == "tool"] == ["one", "two"]


def test_the_old_session_file_of_copilots_cli_is_a_chat() -> None:
    chat = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Done."}]
    trace = only(read_value({"sessionId": "s", "chatMessages": chat, "timeline": [{"type": "user", "text": "go"}]}))
    assert (trace.format, counts(trace), trace.meta["session"]) == ("copilot-events", (1, 0, 0), "s")


def test_the_times_of_a_session_are_those_of_its_lines() -> None:
    lines = [{"type": "session_start", "id": "s"}]
    for number, role in enumerate(("user", "assistant")):
        lines.append({"type": "message", "timestamp": f"2026-01-01T00:00:0{number}Z", "message": {"role": role, "content": "x"}})  # type: ignore[dict-item]
    first, second = (message.at for message in only(read_lines(lines)).messages)
    assert first is not None and second == first + 1
