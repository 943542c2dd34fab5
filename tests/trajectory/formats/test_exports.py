"""Frameworks and exports of 2026: small samples of each shape, counted by hand."""

import base64
import json
from typing import Any

from pamer_lab.trajectory import read_bytes
from tests.trajectory.formats.told import counts, only, read_lines, read_value

ARGUMENTS, RESULT = {"q": "oslo"}, "rain"


def test_ui_messages_of_several_steps_are_several_turns() -> None:
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "look"},
        {"type": "text", "text": "One moment."},
        {"type": "tool-search", "toolCallId": "a", "state": "output-available", "input": ARGUMENTS, "output": {"found": 1}},
        {"type": "dynamic-tool", "toolName": "read", "toolCallId": "b", "state": "output-error", "input": {}, "errorText": "no such file"},
        {"type": "step-start"},
        {"type": "text", "text": "Rain."},
        {"type": "data-progress", "data": 1},
    ]
    messages = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "weather?"}]},
        {"id": "2", "role": "assistant", "parts": parts},
    ]
    for value in (messages, {"id": "chat", "messages": messages}):
        trace = only(read_value(value))
        assert trace.format == "vercel-ui-messages" and counts(trace) == (2, 2, 2)
        assert [message.content for message in trace.messages] == ["weather?", "One moment.", '{"found":1}', "no such file", "Rain."]
        assert trace.messages[3].error and trace.messages[1].thinking == "look"
        assert "data-progress part" in trace.meta["other_lines"]


def test_older_ui_messages_keep_their_invocations() -> None:
    invocation = {"state": "result", "toolCallId": "a", "toolName": "search", "args": ARGUMENTS, "result": RESULT}
    old = [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": "Rain.", "toolInvocations": [invocation]}]
    trace = only(read_value({"messages": old}))
    assert counts(trace) == (1, 1, 1) and trace.messages[-1].content == RESULT


def test_model_messages_are_chat() -> None:
    output = {"type": "json", "value": {"sky": "grey"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "search", "input": ARGUMENTS}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "search", "output": output}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
    ]
    trace = only(read_value(messages))
    assert counts(trace) == (2, 1, 1) and trace.messages[2].content == '{"sky":"grey"}'
    assert json.loads(trace.messages[1].tool_calls[0].arguments) == ARGUMENTS


def test_converse_and_strands_messages_are_chat() -> None:
    messages = [
        {"role": "user", "content": [{"text": "weather?"}]},
        {"role": "assistant", "content": [{"text": "Hm."}, {"toolUse": {"toolUseId": "a", "name": "search", "input": ARGUMENTS}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a", "status": "error", "content": [{"text": "down"}, {"json": {"code": 5}}]}}],
        },
        {"role": "assistant", "content": [{"text": "Sorry."}]},
    ]
    stored = [{"message": message, "message_id": number, "created_at": "2026"} for number, message in enumerate(messages)]
    bodies = [
        messages,
        {"messages": messages, "system": [{"text": "Be brief."}], "modelId": "m"},
        stored,
        {"agent_id": "a", "messages": messages},
    ]
    for value in bodies:
        trace = only(read_value(value))
        assert counts(trace) == (2, 1, 1), value
        result = next(message for message in trace.messages if message.role == "tool")
        assert result.error and result.content == 'down\n{"code":5}'


PYDANTIC = [
    {"kind": "request", "instructions": "Be brief.", "parts": [{"part_kind": "user-prompt", "content": "weather?"}]},
    {
        "kind": "response",
        "model_name": "m",
        "usage": {"input_tokens": 9, "output_tokens": 2},
        "parts": [
            {"part_kind": "thinking", "content": "look"},
            {"part_kind": "tool-call", "tool_name": "search", "args": ARGUMENTS, "tool_call_id": "a"},
        ],
    },
    {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "search", "content": {"sky": "grey"}, "tool_call_id": "a"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Rain."}]},
]


def test_pydantic_ai_histories_are_read_as_lists_lines_and_text() -> None:
    as_text = {"id": 1, "message_list": json.dumps(PYDANTIC)}
    for traces in (read_value(PYDANTIC), read_lines(PYDANTIC), read_value({"messages": PYDANTIC}), read_lines([as_text, as_text])):
        trace = traces[0]
        assert counts(trace) == (2, 1, 1) and trace.format == "pydantic-ai"
        assert [message.role for message in trace.messages] == ["system", "user", "assistant", "tool", "assistant"]
        assert trace.messages[2].usage and trace.messages[2].usage.input_tokens == 9 and trace.messages[3].content == '{"sky":"grey"}'


def test_smolagents_memory_gives_one_turn_per_step() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "python_interpreter", "arguments": "print(1)"}}
    steps = [
        {"system_prompt": "You write code."},
        {"task": "weather?", "task_images": None},
        {
            "step_number": 1,
            "model_output": "Thought: look",
            "tool_calls": [call],
            "observations": "rain",
            "error": None,
            "token_usage": {"input_tokens": 5, "output_tokens": 1},
        },
        {
            "step_number": 2,
            "model_output": "final",
            "tool_calls": [],
            "code_action": "final_answer(1)",
            "error": {"type": "X", "message": "boom"},
            "observations": None,
        },
    ]
    for value in (steps, {"steps": steps}, {"memory": {"steps": steps}}):
        trace = only(read_value(value))
        assert counts(trace) == (2, 2, 2) and trace.format == "smolagents-memory"
        assert trace.messages[3].content == "rain" and trace.messages[5].error and trace.messages[5].content == "boom"


def test_autogen_events_and_states_are_read() -> None:
    call = {"id": "a", "name": "search", "arguments": json.dumps(ARGUMENTS)}
    result = {"call_id": "a", "name": "search", "content": RESULT, "is_error": False}
    events = [
        {"type": "TextMessage", "source": "user", "content": "weather?"},
        {"type": "ThoughtEvent", "source": "bot", "content": "look"},
        {"type": "ToolCallRequestEvent", "source": "bot", "content": [call], "models_usage": {"prompt_tokens": 9, "completion_tokens": 2}},
        {"type": "ToolCallExecutionEvent", "source": "bot", "content": [result]},
        {"type": "ToolCallSummaryMessage", "source": "bot", "content": RESULT},
        {"type": "TextMessage", "source": "bot", "content": "Rain."},
    ]
    context = [
        {"type": "UserMessage", "source": "user", "content": "weather?"},
        {"type": "AssistantMessage", "source": "bot", "content": [call]},
        {"type": "FunctionExecutionResultMessage", "content": [result]},
        {"type": "AssistantMessage", "source": "bot", "content": "Rain."},
    ]
    team = {"type": "TeamState", "agent_states": {"bot": {"agent_state": {"llm_context": {"messages": context}}}}}
    for value in (events, {"messages": events, "stop_reason": "x"}, context, team):
        trace = only(read_value(value))
        assert counts(trace) == (2, 1, 1) and trace.format == "autogen"
        assert trace.messages[-1].content == "Rain." and trace.messages[-1].name == "bot"
    assert only(read_value(events)).messages[1].thinking == "look"


def node(own: str, parent: str | None, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"author": {"role": role, "name": more.pop("name", None)}, "content": content, "recipient": "all", "metadata": {}} | more
    return {"id": own, "parent": parent, "children": [], "message": message}


def test_chatgpt_shows_the_last_path_and_keeps_the_others_as_notes() -> None:
    def text(said: str) -> dict[str, Any]:
        return {"content_type": "text", "parts": [said]}

    found = [
        {"id": "r", "parent": None, "children": ["u"], "message": None},
        node("u", "r", "user", text("weather?")),
        node("x", "u", "assistant", text("No idea.")),
        node("th", "u", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "look"}]}),
        node("c", "th", "assistant", {"content_type": "code", "text": 'search("oslo")'}, recipient="browser"),
        node("t1", "c", "tool", {"content_type": "tether_quote", "title": "T", "text": "rain"}, name="browser"),
        node("t2", "t1", "tool", text("more"), name="browser"),
        node("a", "t2", "assistant", text("Rain.")),
    ]
    tree = {"title": "w", "current_node": "a", "mapping": {item["id"]: item for item in found}}
    for value in (tree, [tree], {"conversations": [tree]}):
        trace = only(read_value(value))
        assert counts(trace) == (2, 1, 2)
        assert trace.messages[1].thinking == "s\nlook" and trace.messages[1].tool_calls[0].name == "browser"
        roles = [(message.role, message.result, message.name) for message in trace.messages[2:4]]
        assert roles == [("tool", False, "browser"), ("user", True, "browser")]
        assert "rain" in trace.messages[2].content and trace.messages[3].content == "more"
        assert [(event.kind, event.text) for event in trace.events] == [("note", "No idea.")]


def test_claude_ai_messages_are_put_in_order_with_files_and_tools() -> None:
    def at(minute: int, sender: str, **more: Any) -> dict[str, Any]:
        return {"uuid": f"{sender}{minute}", "sender": sender, "created_at": f"2026-01-01T00:{minute:02}:00Z", "text": "", **more}

    parts = [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "name": "search", "input": ARGUMENTS},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": RESULT}]},
        {"type": "text", "text": "Rain."},
    ]
    messages = [
        at(5, "assistant", text="Bye."),
        at(5, "human", text="thanks"),
        at(1, "human", text="weather?", attachments=[{"file_name": "a.txt", "extracted_content": "notes"}], files=[{"file_name": "b.png"}]),
        at(1, "assistant", content=parts),
    ]
    trace = only(read_value([{"uuid": "c", "name": "n", "chat_messages": messages}]))
    assert counts(trace) == (3, 1, 1)
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert "notes" in trace.messages[0].content and "b.png" in trace.messages[0].content


def test_computer_use_steps_have_placeholders_for_their_screenshots() -> None:
    osworld = [
        {
            "step_num": n,
            "action": {"action_type": "CLICK", "x": n},
            "response": "click",
            "reward": n - 1,
            "done": n == 2,
            "screenshot_file": f"{n}.png",
        }
        for n in (1, 2)
    ]
    trace = only(read_lines(osworld))
    assert counts(trace) == (2, 2, 0) and trace.reward == 1 and len(trace.messages[0].images) == 1
    step = {"index": 0, "image": "0.png", "value": {"code": "pyautogui.click()", "thought": "t", "action": "Click it.", "observation": "o"}}
    trace = only(read_value({"task_id": "a", "instruction": "do", "task_completed": True, "traj": [step]}))
    assert counts(trace) == (1, 1, 0) and trace.messages[-1].content == "Click it." and trace.reward == 1
    assert json.loads(trace.messages[-1].tool_calls[0].arguments) == {"action": "pyautogui.click()"}


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"q":"oslo"}'}}],
}
ASKED = [{"role": "user", "content": "weather?"}]
TOLD = [*ASKED, CALLED, {"role": "tool", "tool_call_id": "a", "content": RESULT}]


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def delta(**more: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": more}]}


STREAM = sse(
    delta(role="assistant", tool_calls=[{"index": 0, "id": "a", "function": {"name": "search", "arguments": '{"q":'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '"oslo"}'}}]),
    {"id": "x", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
)
LAST = sse(delta(content="Ra"), delta(content="in."))


def test_har_files_and_cassettes_put_streams_together() -> None:
    bodies = [json.dumps({"model": "m", "messages": ASKED, "stream": True}), json.dumps({"model": "m", "messages": TOLD, "stream": True})]
    har = [
        {
            "request": {"method": "POST", "url": "https://h/v1", "postData": {"text": body}},
            "response": {"status": 200, "content": {"text": text, **more}},
        }
        for body, text, more in ((bodies[0], STREAM, {}), (bodies[1], base64.b64encode(LAST.encode()).decode(), {"encoding": "base64"}))
    ]
    har.insert(1, {"request": {"method": "GET", "url": "https://h/logo"}, "response": {"content": {"text": "x"}}})
    vcr = [
        {"request": {"body": body, "method": "POST"}, "response": {"body": {"string": text}}}
        for body, text in zip(bodies, (STREAM, LAST), strict=True)
    ]
    flat = [{"request": {"body": json.loads(body)}, "response": {"body": text}} for body, text in zip(bodies, (STREAM, LAST), strict=True)]
    for traces in (
        read_value({"log": {"version": "1.2", "entries": har}}),
        read_value({"interactions": vcr}),
        read_value(flat),
        read_lines(flat),
    ):
        trace = only(traces)
        assert trace.format == "model-call-log" and counts(trace) == (2, 1, 1)
        assert trace.messages[-1].content == "Rain." and json.loads(trace.messages[1].tool_calls[0].arguments) == ARGUMENTS
        assert trace.messages[1].usage and trace.messages[1].usage.output_tokens == 2


def test_streams_of_other_apis_are_put_together() -> None:
    anthropic = sse(
        {"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "search", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"q": "oslo"}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    )
    responses = sse(
        {"type": "response.created", "response": {"id": "r", "model": "c"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hm."},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "a", "name": "search", "arguments": '{"q": "oslo"}'},
        },
        {"type": "response.completed", "response": {"id": "r", "output": [], "usage": {"input_tokens": 9, "output_tokens": 4}}},
    )
    part = {"functionCall": {"name": "search", "args": ARGUMENTS}}
    gemini = sse(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "H"}]}}]},
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "m."}, part]}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4},
        },
    )
    requests = [
        {"model": "c", "messages": ASKED},
        {"model": "c", "input": ASKED},
        {"contents": [{"role": "user", "parts": [{"text": "weather?"}]}]},
    ]
    for request, stream in zip(requests, (anthropic, responses, gemini), strict=True):
        trace = only(read_value([{"request": {"body": request}, "response": {"body": stream}}]))
        assert counts(trace) == (1, 1, 0) and trace.messages[-1].content == "Hm."
        assert json.loads(trace.messages[-1].tool_calls[0].arguments) == ARGUMENTS
        assert trace.usage and (trace.usage.input_tokens, trace.usage.output_tokens) == (9, 4)


def test_batch_outputs_are_answers_of_their_own() -> None:
    body = {
        "id": "x",
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "Rain."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }
    openai = {"id": "b", "custom_id": "task-1", "response": {"status_code": 200, "body": body}, "error": None}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Rain."}], "stop_reason": "end_turn"}
    anthropic = {"custom_id": "task-2", "result": {"type": "succeeded", "message": message}}
    for lines in ([openai, {**openai, "custom_id": "other"}], [anthropic, anthropic]):
        traces = read_lines(lines)
        assert {counts(trace) for trace in traces} == {(1, 0, 0)} and traces[0].messages[0].content == "Rain."
    assert read_lines([openai, {**openai, "custom_id": "other"}])[1].task_id == "other"


def test_rows_of_requests_and_answers_become_one_trace_with_every_usage() -> None:
    usage = [{"prompt_tokens": 9, "completion_tokens": 2}, {"prompt_tokens": 20, "completion_tokens": 3}]
    answers = [
        {"choices": [{"message": message}], "usage": spent}
        for message, spent in zip((CALLED, {"role": "assistant", "content": "Rain."}), usage, strict=True)
    ]
    for sent, got in (
        ("request_body", "response_body"),
        ("reqPayload", "respPayload"),
        ("input", "output"),
        ("raw_request", "raw_response"),
    ):
        lines = [
            {"id": n, sent: {"model": "m", "messages": prompt}, got: answer}
            for n, (prompt, answer) in enumerate(zip((ASKED, TOLD), answers, strict=True))
        ]
        for written in (lines, [{**line, sent: json.dumps(line[sent]), got: json.dumps(line[got])} for line in lines]):
            trace = only(read_lines(written))
            assert counts(trace) == (2, 1, 1) and trace.usage and trace.usage.input_tokens == 29
            assert [message.usage.output_tokens for message in trace.messages if message.usage] == [2, 3]


def test_rows_that_do_not_continue_one_another_stay_apart() -> None:
    rows = [{"input": {"messages": [{"role": "user", "content": text}]}, "output": {"role": "assistant", "content": "x"}} for text in "abb"]
    assert [counts(trace) for trace in read_lines(rows)] == [(1, 0, 0)] * 3
    assert len(read_lines([{**row, "session_id": "s"} for row in rows])) == 1


def test_fine_tuning_lines_that_continue_one_another_are_one_trace() -> None:
    end = [*TOLD, {"role": "assistant", "content": "Rain."}]
    other = [{"role": "user", "content": "bye"}, {"role": "assistant", "content": "Bye."}]
    lines = [{"messages": TOLD[:2], "usage": {"prompt_tokens": 9}}, {"messages": other}, {"messages": end, "usage": {"prompt_tokens": 20}}]
    first, second = read_lines(lines)
    assert (counts(second), counts(first)) == ((1, 0, 0), (2, 1, 1))
    assert first.usage and first.usage.input_tokens == 29 and first.meta["requests"] == 2
    again = [{"messages": TOLD[:2]}, {"messages": TOLD[:2]}]
    assert len(read_lines(again)) == 2


def test_messages_that_are_json_text_in_rows_are_read() -> None:
    end = [*TOLD, {"role": "assistant", "content": "Rain."}]
    whole = {"id": 7, "model": "m", "messages": json.dumps(end)}
    assert counts(only(read_value(whole))) == (2, 1, 1)
    assert [counts(trace) for trace in read_lines([whole, whole])] == [(2, 1, 1)] * 2
    single = [{"id": n, "session_id": "s", "message_data": json.dumps(message)} for n, message in enumerate(end)]
    items = [{"role": "user", "content": "weather?"}, {"type": "function_call", "call_id": "a", "name": "search", "arguments": "{}"}]
    items += [
        {"type": "function_call_output", "call_id": "a", "output": RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
    ]
    agents = [{"id": n, "session_id": "s", "message_data": json.dumps(item)} for n, item in enumerate(items)]
    chain = [
        {"type": "human", "data": {"content": "weather?"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "a", "name": "search", "args": ARGUMENTS}]}},
    ]
    chain += [{"type": "tool", "data": {"content": RESULT, "tool_call_id": "a"}}, {"type": "ai", "data": {"content": "Rain."}}]
    memory = [{"id": n, "session_id": "s", "message": json.dumps(item)} for n, item in enumerate(chain)]
    parts = (
        [{"type": "tool_use", "id": "a", "name": "search", "input": ARGUMENTS}],
        [{"type": "tool_result", "tool_use_id": "a", "content": RESULT}],
    )
    cells = [
        {"session_id": "s", "role": "user", "content": "weather?"},
        {"session_id": "s", "role": "assistant", "content": json.dumps(parts[0])},
        {"session_id": "s", "role": "user", "content": json.dumps(parts[1])},
        {"session_id": "s", "role": "assistant", "content": "Rain."},
    ]
    for lines in (single, agents, memory, cells):
        assert counts(only(read_lines(lines))) == (2, 1, 1), lines
    two = [*single, *({**row, "session_id": "t"} for row in single)]
    assert [trace.task_id for trace in read_lines(two)] == ["s", "t"]


def test_a_har_file_without_model_calls_is_not_taken_for_one() -> None:
    entry = {"request": {"method": "GET", "url": "https://h"}, "response": {"content": {"text": "hello"}}}
    reading = read_bytes(json.dumps({"log": {"entries": [entry]}}).encode(), "a.har")
    assert not reading.traces and reading.rejected
