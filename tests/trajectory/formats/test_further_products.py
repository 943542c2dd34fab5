"""Products and exports of 2026 beyond the open set: one small run in the shape of each, read to the same counts."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_bytes, read_traces
from tests.trajectory.formats.test_agent_clis import FIXTURES
from tests.trajectory.formats.test_telemetry import ANSWER, ARGUMENTS, ASKED, CALL, CALLS, RESULT, SAID, TOOL, span
from tests.trajectory.formats.told import counts, only, read_lines, read_value

MODEL = "small-model"


def usage(sent: int, given: int) -> dict[str, int]:
    return {"input_tokens": sent, "output_tokens": given}


def datadog_spans() -> Any:
    found = [
        {
            "span_id": f"s{number}",
            "trace_id": "t",
            "parent_id": "undefined",
            "name": "chat",
            "start_ns": 10**18 + number,
            "meta": {"span.kind": "llm", "input": {"messages": prompt}, "output": {"messages": [answer]}, "model_name": MODEL},
            "metrics": usage(sent, given),
        }
        for number, (prompt, answer, sent, given) in enumerate(CALLS)
    ]
    return {"spans": found}


def datadog_api() -> Any:
    keys = ("span_id", "trace_id", "parent_id", "name")
    return {
        "data": [
            {
                "id": one["span_id"],
                "type": "span",
                "attributes": {key: one[key] for key in keys}
                | {key: one["meta"][key] for key in ("input", "output", "model_name")}
                | {"span_kind": "llm", "start_ms": 1_780_000_000_000 + number, "metrics": one["metrics"]},
            }
            for number, one in enumerate(datadog_spans()["spans"])
        ]
    }


def posthog() -> Any:
    return [
        {
            "event": "$ai_generation",
            "uuid": f"u{number}",
            "timestamp": f"2026-01-01T00:00:0{number}Z",
            "properties": {
                "$ai_trace_id": "t",
                "$ai_model": MODEL,
                "$ai_input": prompt,
                "$ai_output_choices": [answer],
                "$ai_input_tokens": sent,
                "$ai_output_tokens": given,
            },
        }
        for number, (prompt, answer, sent, given) in enumerate(CALLS)
    ]


def sentry() -> Any:
    found = []
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        data = {"gen_ai.request.model": MODEL, "gen_ai.request.messages": json.dumps(prompt)}
        data |= {f"gen_ai.usage.{key}": value for key, value in usage(sent, given).items()}
        calls = [{"id": CALL, "name": TOOL, "arguments": json.dumps(ARGUMENTS)}]
        data |= {"gen_ai.response.tool_calls": json.dumps(calls)} if answer is ASKED else {"gen_ai.response.text": json.dumps([ANSWER])}
        found.append({"span_id": f"s{number}", "trace_id": "t", "op": "gen_ai.chat", "start_timestamp": 1.0 + number, "data": data})
    return {"event_id": "e", "type": "transaction", "spans": found}


def honeyhive() -> Any:
    return {
        "events": [
            {
                "event_id": f"e{number}",
                "session_id": "s",
                "event_type": "model",
                "event_name": "chat",
                "config": {"model": MODEL},
                "inputs": {"chat_history": prompt},
                "outputs": answer,
                "metadata": usage(sent, given) | {"model_name": "unknown"},
                "start_time": 1_790_000_000_000 + number,
            }
            for number, (prompt, answer, sent, given) in enumerate(CALLS)
        ]
    }


def langfuse_table() -> Any:
    return [
        {
            "id": f"o{number}",
            "trace_id": "t",
            "type": "GENERATION",
            "parent_observation_id": None,
            "start_time": f"2026-01-01 00:00:0{number}.000",
            "name": "chat",
            "input": json.dumps(prompt),
            "output": json.dumps(answer),
            "provided_model_name": MODEL,
            "usage_details": {"input": sent, "output": given},
        }
        for number, (prompt, answer, sent, given) in enumerate(CALLS)
    ]


def langchain(message: dict[str, Any]) -> dict[str, Any]:
    """A message as LangChain's tracer writes it."""
    kind = {"system": "System", "user": "Human", "assistant": "AI", "tool": "Tool"}[message["role"]]
    fields = {"content": message["content"] or "", "tool_call_id": message.get("tool_call_id")}
    calls = [{"id": CALL, "name": TOOL, "args": ARGUMENTS, "type": "tool_call"}] if message.get("tool_calls") else []
    return {"lc": 1, "type": "constructor", "id": ["langchain", f"{kind}Message"], "kwargs": fields | {"tool_calls": calls}}


def langsmith_bulk() -> Any:
    """Rows whose inputs and outputs are JSON text, and whose answer says that it is an `LLMResult`."""
    found = []
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        message = langchain(answer)
        message["kwargs"]["usage_metadata"] = usage(sent, given)
        result = {"generations": [[{"text": "", "type": "ChatGeneration", "message": message}]], "type": "LLMResult"}
        row = {"id": f"r{number}", "trace_id": "t", "run_type": "llm", "name": "Chat", "start_time": f"2026-01-01T00:00:0{number}"}
        row |= {"inputs": json.dumps({"messages": [[langchain(one) for one in prompt]]}), "outputs": json.dumps(result)}
        found.append(row | {"extra": json.dumps({"metadata": {"ls_model_name": MODEL}})})
    return found


@pytest.mark.parametrize("lines", [posthog, langfuse_table, langsmith_bulk])
def test_rows_of_a_product_are_one_run(lines: Any) -> None:
    check(only(read_lines(lines())))


@pytest.mark.parametrize("value", [datadog_spans, datadog_api, sentry, honeyhive])
def test_an_export_of_a_product_is_one_run(value: Any) -> None:
    check(only(read_value(value())))


def check(trace: Any) -> None:
    assert trace.format == "telemetry-spans" and counts(trace) == (2, 1, 1) and not trace.warnings
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert trace.messages[3].content == RESULT and trace.messages[-1].content == ANSWER
    assert json.loads(trace.messages[2].tool_calls[0].arguments) == ARGUMENTS
    assert trace.model == MODEL and (trace.usage.input_tokens, trace.usage.output_tokens) == (41, 10)


def test_events_in_the_log_of_opentelemetry_keep_the_answer() -> None:
    def record(number: int, name: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"timeUnixNano": str(10**18 + number), "eventName": name, "body": body, "traceId": "t", "spanId": "s"}

    said = [record(1, "gen_ai.user.message", {"content": "q"}), record(2, "gen_ai.choice", {"index": 0, "message": SAID})]
    trace = only(read_value({"resourceLogs": [{"scopeLogs": [{"logRecords": said}]}]}))
    assert [message.content for message in trace.messages] == ["q", ANSWER] and not trace.warnings


def test_an_agent_without_recorded_model_calls_has_the_calls_of_its_tools() -> None:
    words = {
        f"gen_ai.{side}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
        for side, role, text in (("input", "user", "q"), ("output", "assistant", ANSWER))
    }
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": TOOL, "gen_ai.tool.call.result": RESULT}
    ran |= {"gen_ai.tool.call.id": CALL, "gen_ai.tool.call.arguments": json.dumps(ARGUMENTS)}
    trace = only(
        read_value([span("a", "", "agent", 0, {"gen_ai.operation.name": "invoke_agent", **words}), span("t", "a", "tool", 1, ran)])
    )
    assert counts(trace) == (2, 1, 1) and [message.content for message in trace.messages] == ["q", "", RESULT, ANSWER]
    assert len(trace.warnings) == 1


def test_a_call_that_was_printed_as_text_is_a_call() -> None:
    printed = f"ResponseFunctionToolCall(arguments='{json.dumps(ARGUMENTS)}', call_id='{CALL}', name='{TOOL}', type='function_call')"

    def said(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said("user", "q")}
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": TOOL, "gen_ai.tool.call.result": RESULT}
    found = [
        span("1", "", "chat", 1, asked | {"gen_ai.output.messages": said("assistant", printed)}),
        span("2", "", "execute_tool", 2, ran),
        span("3", "", "chat", 3, asked | {"gen_ai.output.messages": said("assistant", ANSWER)}),
    ]
    trace = only(read_value(found))
    assert counts(trace) == (2, 1, 1) and [message.content for message in trace.messages] == ["q", "", RESULT, ANSWER]


def test_a_chat_tree_is_the_path_that_was_shown_and_its_branches_are_notes() -> None:
    trace = only(read_traces(FIXTURES / "chat-tree.json"))
    assert trace.format == "chat-tree" and counts(trace) == (1, 0, 0) and trace.messages[-1].content == "At nine."
    assert [event.text for event in trace.events] == ["I do not know."]
    assert trace.messages[-1].usage and trace.messages[-1].usage.input_tokens == 12 and trace.model == MODEL


def test_a_tree_of_children_keeps_calls_with_their_outputs() -> None:
    trace = only(read_traces(FIXTURES / "chat-tree-children.json"))
    assert counts(trace) == (2, 1, 1)
    assert [message.content for message in trace.messages] == ["When does the ferry leave?", "", "09:00", "At nine."]
    assert trace.messages[1].thinking == "Look it up."


def test_preferences_are_the_preferred_answer_and_the_rejected_one_a_note() -> None:
    first, second = read_traces(FIXTURES / "preference-pairs.jsonl")
    assert [message.content for message in first.messages] == ["When does the ferry leave?", "At nine."] and len(first.tools) == 1
    assert [event.text for event in second.events] == ["Never."]


@pytest.mark.parametrize("prompt", [{}, {"prompt": "q"}, {"prompt": [{"role": "user", "content": "q"}]}])
def test_preferences_of_trl_may_repeat_the_prompt(prompt: dict[str, Any]) -> None:
    sides = {key: [{"role": "user", "content": "q"}, {"role": "assistant", "content": key}] for key in ("chosen", "rejected")}
    trace = only(read_value([prompt | sides]))
    assert [message.content for message in trace.messages] == ["q", "chosen"]
    assert [event.text for event in trace.events] == ["rejected"]


def test_a_stored_completion_has_its_prompt_and_its_answer() -> None:
    stored = {"object": "chat.completion", "model": MODEL, "messages": CALLS[0][0], "choices": [{"message": SAID}]}
    trace = only(read_lines([stored | {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}]))
    assert counts(trace) == (1, 0, 0) and trace.messages[-1].content == ANSWER and trace.usage and trace.usage.input_tokens == 5


def test_a_result_with_an_id_answers_a_call_that_has_none() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": TOOL, "args": ARGUMENTS}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"id": "x", "name": TOOL, "response": {"output": RESULT}}}]}
    trace = only(read_value([{"role": "user", "parts": [{"text": "q"}]}, call, answer]))
    assert counts(trace) == (1, 1, 1) and not trace.warnings and trace.messages[-1].role == "tool"


def test_a_result_with_another_id_than_its_call_stays_the_users() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": TOOL, "input": {}}]}
    other = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": RESULT}]}
    reading = read_bytes(json.dumps([call, other]).encode(), "test.json")
    assert not [message for trace in reading.traces for message in trace.messages if message.role == "tool"]


@pytest.mark.parametrize("key", ["system_prompt", "systemPrompt", "system", "instructions"])
@pytest.mark.parametrize("prompt", ["Be brief.", [{"text": "Be brief."}], [{"type": "text", "text": "Be brief."}]])
def test_a_system_prompt_beside_the_messages_is_kept(key: str, prompt: Any) -> None:
    chat = {key: prompt, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    for value in (chat, {"run": chat, "other": chat}):
        for trace in read_value(value):
            assert (trace.messages[0].role, trace.messages[0].content) == ("system", "Be brief.")


def test_a_store_says_of_a_session_its_model_its_system_prompt_and_its_tokens(tmp_path: Path) -> None:
    store = tmp_path / "chat.db"
    with sqlite3.connect(store) as database:
        database.execute("CREATE TABLE sessions (id TEXT, model TEXT, system_prompt TEXT, input_tokens INTEGER, output_tokens INTEGER)")
        database.execute("CREATE TABLE messages (session_id TEXT, role TEXT, content TEXT)")
        database.execute("INSERT INTO sessions VALUES ('s', ?, 'Be brief.', 7, 2)", (MODEL,))
        database.executemany("INSERT INTO messages VALUES ('s', ?, ?)", [("user", "q"), ("assistant", "a")])
    trace = only(read_traces(store))
    assert [message.content for message in trace.messages] == ["Be brief.", "q", "a"]
    assert trace.model == MODEL and trace.usage and trace.usage.input_tokens == 7


def test_items_that_codex_writes_in_lists_are_all_read() -> None:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-09-01T10:00:00Z", "type": kind, "payload": payload}

    asked = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}]
    asked += [{"type": "custom_tool_call", "name": TOOL, "call_id": CALL, "input": "{}"}]
    asked += [{"type": "custom_tool_call_output", "call_id": CALL, "output": RESULT}]
    said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}]
    lines = [line("session_meta", id="s"), line("history_mutation", operation="append", items=asked)]
    lines += [line("token_usage_record", usage=usage(9, 4)), line("history_mutation", operation="append", items=said)]
    trace = only(read_lines([*lines, line("history_mutation", operation="rewrite", items=[])]))
    assert counts(trace) == (2, 1, 1) and trace.messages[1].usage and trace.messages[1].usage.input_tokens == 9
    assert [warning.kind for warning in trace.warnings] == ["unread"]


def test_lines_of_calls_and_results_in_claude_codes_log_are_read() -> None:
    def line(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": kind, "sessionId": "s", "parentUuid": None, "uuid": kind, **fields}

    lines = [line("user", message={"role": "user", "content": "q"}), line("tool_use", name=TOOL, input=ARGUMENTS)]
    lines += [line("tool_result", name=TOOL, output=RESULT), line("assistant", message={"role": "assistant", "content": ANSWER})]
    assert counts(only(read_lines(lines))) == (2, 1, 1)


def test_states_that_grow_are_one_trace() -> None:
    messages = [{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}]
    trace = only(read_lines([{"values": {"messages": messages[:count]}, "next": []} for count in (1, 2)]))
    assert counts(trace) == (1, 0, 0)


def test_records_without_messages_are_counted() -> None:
    chat = {"steps": [{"speaker": "human", "text": "q"}, {"speaker": "ai", "text": "a"}]}
    trace = only(read_lines([chat, {"note": 1}, {"note": 2}]))
    assert [(warning.where, warning.kind) for warning in trace.warnings if warning.kind == "unread"] == [("line 2", "unread")]


def test_ids_of_blocks_are_not_taken_for_text() -> None:
    messages = [{"role": role, "blocks": [f"block-{role}"]} for role in ("user", "assistant")]
    assert not read_bytes(json.dumps({"topics": [{"messages": messages}]}).encode(), "test.json").traces


def test_a_hidden_thought_keeps_its_summary() -> None:
    hidden = {"type": "thinking", "thinking": "", "summaries": [{"summary": "Looks it up."}]}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [hidden, {"type": "text", "text": "a"}]}]
    assert only(read_value(messages)).messages[1].thinking == "Looks it up."


@pytest.mark.parametrize("data", [b"PAR1\x15\x04", b"name,span_kind,parent_id\nchat,LLM,\n", b'"a","b b","c.d"\r\n1,2,3\r\n'])
def test_a_table_is_refused_as_a_table(data: bytes) -> None:
    assert "write_ndjson" in read_bytes(data, "spans.csv").rejected[0].reason


def test_a_text_with_commas_is_no_table() -> None:
    assert "orient" not in read_bytes(b"Dear all, hi, there\nsecond line\n", "notes.txt").rejected[0].reason


def test_events_of_a_vertex_session_are_an_adk_session() -> None:
    def event(author: str, role: str, part: dict[str, Any]) -> dict[str, Any]:
        return {"author": author, "content": {"role": role, "parts": [part]}}

    asked = [event("user", "user", {"text": "q"}), event("a", "model", {"functionCall": {"id": CALL, "name": TOOL, "args": ARGUMENTS}})]
    got = event("agent", "user", {"functionResponse": {"id": CALL, "name": TOOL, "response": {"result": RESULT}}})
    events = [*asked, got, event("agent", "model", {"text": ANSWER})]
    for value in ({"sessionEvents": events}, events):
        trace = only(read_value(value))
        assert counts(trace) == (2, 1, 1) and not [warning for warning in trace.warnings if warning.kind == "empty"]


def test_thoughts_that_vs_code_shows_beside_its_rounds_are_kept() -> None:
    shown = [{"kind": "thinking", "value": "Hm."}, {"value": ANSWER}]
    rounds = [{"response": ANSWER, "toolCalls": []}]
    request = {"requestId": "r", "message": {"text": "q"}, "response": shown, "result": {"metadata": {"toolCallRounds": rounds}}}
    trace = only(read_value({"responderUsername": "GitHub Copilot", "sessionId": "s", "version": 3, "requests": [request]}))
    assert [event.text for event in trace.events] == ["Hm."] and trace.messages[-1].content == ANSWER


def test_every_chat_of_an_export_is_a_trace() -> None:
    chats = [{"model": MODEL, "talk": [{"speaker": "human", "text": text}, {"speaker": "ai", "text": "a"}]} for text in "xyz"]
    traces = read_value({"export": {"at": 1, "chats": chats}})
    assert [trace.messages[0].content for trace in traces] == ["x", "y", "z"] and {trace.model for trace in traces} == {MODEL}


def test_fields_that_are_left_out_of_messages_on_lines_are_named() -> None:
    lines = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "metadata": {"tool_calls": []}}]
    assert "metadata" in only(read_lines(lines)).warnings[0].text
