"""One short run (a question, one tool call, an answer) in every container and dialect of telemetry gives the same trace."""

import json
from typing import Any

import pytest

from pamer_lab.trajectory import Trace
from tests.trajectory.formats.told import counts, only, read_lines, read_value

SYSTEM, ASK, CALL, TOOL, ARGUMENTS, RESULT, ANSWER = (
    "Be brief.",
    "Weather in Oslo?",
    "c1",
    "get_weather",
    {"city": "Oslo"},
    "rain, 9 °C",
    "Rain.",
)
FIRST = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
ASKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": CALL, "type": "function", "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}],
}
SECOND = [*FIRST, ASKED, {"role": "tool", "tool_call_id": CALL, "content": RESULT}]
SAID = {"role": "assistant", "content": ANSWER}
CALLS = ((FIRST, ASKED, 11, 7), (SECOND, SAID, 30, 3))


def spans(model: Any, tool: Any = None) -> list[dict[str, Any]]:
    """A root, two model calls and the tool's span between them; `model` and `tool` give the attributes."""
    found = [span("root", "", "invoke_agent weather", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"})]
    for number, exchange in enumerate(CALLS):
        found.append(span(f"llm{number}", "root", "chat", 10 * number + 1, model(*exchange)))
    if tool:
        found.append(span("tool", "root", f"execute_tool {TOOL}", 5, tool))
    return found


def span(own: str, parent: str, name: str, at: int, attributes: dict[str, Any]) -> dict[str, Any]:
    start = 1_700_000_000_000_000_000 + at * 10**9
    return {"trace_id": "t", "span_id": own, "parent_span_id": parent or None, "name": name, "start_time": start, "attributes": attributes}


def is_the_run(trace: Trace, *, system: bool = True, usage: bool = True) -> None:
    assert counts(trace) == (2, 1, 1)
    assert not [warning for warning in trace.warnings if warning.kind != "unread"], trace.warnings
    said = [message.content for message in trace.messages if message.role in ("system", "user")]
    assert said == [SYSTEM, ASK][not system :]
    turns = [message for message in trace.messages if message.role == "assistant"]
    assert json.loads(turns[0].tool_calls[0].arguments) == ARGUMENTS and turns[0].tool_calls[0].name == TOOL
    assert next(message.content for message in trace.messages if message.role == "tool") == RESULT
    assert turns[1].content == ANSWER
    if usage:
        assert [(turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns if turn.usage] == [(11, 7), (30, 3)]


def parts(message: dict[str, Any]) -> dict[str, Any]:
    """A message in OpenTelemetry's parts."""
    found: list[dict[str, Any]] = []
    if message["role"] == "tool":
        found.append({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]})
    elif message["content"]:
        found.append({"type": "text", "content": message["content"]})
    found += [{"type": "tool_call", "id": call["id"], "name": TOOL, "arguments": ARGUMENTS} for call in message.get("tool_calls", ())]
    return {"role": message["role"], "parts": found}


def conventions(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(message) for message in prompt]),
        "gen_ai.output.messages": json.dumps([parts(answer)]),
        "gen_ai.usage.input_tokens": sent,
        "gen_ai.usage.output_tokens": given,
    }


def openinference(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.token_count.prompt": str(sent), "llm.token_count.completion": given}
    for key, messages in (("llm.input_messages", prompt), ("llm.output_messages", [answer])):
        for number, message in enumerate(messages):
            own = f"{key}.{number}.message."
            found |= {own + name: message[name] for name in ("role", "content", "tool_call_id") if message.get(name)}
            for call in message.get("tool_calls", ()):
                found[own + "tool_calls.0.tool_call.id"] = call["id"]
                found[own + "tool_calls.0.tool_call.function.name"] = TOOL
                found[own + "tool_calls.0.tool_call.function.arguments"] = json.dumps(ARGUMENTS)
    return found


def openllmetry(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    found: dict[str, Any] = {"llm.request.type": "chat", "gen_ai.usage.prompt_tokens": sent, "gen_ai.usage.completion_tokens": given}
    for key, messages in (("gen_ai.prompt", prompt), ("gen_ai.completion", [answer])):
        for number, message in enumerate(messages):
            own = f"{key}.{number}."
            found |= {own + name: message[name] for name in ("role", "content", "tool_call_id") if message.get(name)}
            for call in message.get("tool_calls", ()):
                found |= {
                    own + "tool_calls.0.id": call["id"],
                    own + "tool_calls.0.name": TOOL,
                    own + "tool_calls.0.arguments": json.dumps(ARGUMENTS),
                }
    return found


def vercel(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    found = {"ai.operationId": "ai.streamText.doStream", "ai.usage.promptTokens": sent, "ai.usage.completionTokens": given}
    found["ai.prompt.messages"] = json.dumps([_model_message(message) for message in prompt])
    if answer["content"]:
        return found | {"ai.response.text": answer["content"]}
    return found | {
        "ai.response.toolCalls": json.dumps(
            [{"toolCallType": "function", "toolCallId": CALL, "toolName": TOOL, "args": json.dumps(ARGUMENTS)}]
        )
    }


def _model_message(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        return {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": CALL, "toolName": TOOL, "output": {"type": "text", "value": RESULT}}],
        }
    if message.get("tool_calls"):
        return {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": CALL, "toolName": TOOL, "input": ARGUMENTS}]}
    return message


def mlflow(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    output = {"choices": [{"message": answer}], "usage": {"prompt_tokens": sent, "completion_tokens": given}}
    return {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": json.dumps({"messages": prompt}),
        "mlflow.spanOutputs": json.dumps(output),
    }


def adk(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
    def content(message: Any) -> dict[str, Any]:
        if message["role"] == "tool":
            return {"role": "user", "parts": [{"function_response": {"id": CALL, "name": TOOL, "response": {"result": RESULT}}}]}
        if message.get("tool_calls"):
            return {"role": "model", "parts": [{"function_call": {"id": CALL, "name": TOOL, "args": ARGUMENTS}}]}
        return {"role": "model" if message["role"] == "assistant" else "user", "parts": [{"text": message["content"]}]}

    request = {"model": "m", "config": {"system_instruction": SYSTEM}, "contents": [content(message) for message in prompt[1:]]}
    response = {"content": content(answer), "usage_metadata": {"prompt_token_count": sent, "candidates_token_count": given}}
    return {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response)}


@pytest.mark.parametrize("dialect", [conventions, openinference, openllmetry, vercel, mlflow, adk])
def test_every_dialect_of_attributes_gives_the_same_run(dialect: Any) -> None:
    is_the_run(only(read_value(spans(dialect))))


def otlp(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def typed(value: Any) -> dict[str, Any]:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    return [
        {
            "traceId": "t",
            "spanId": item["span_id"],
            "parentSpanId": item["parent_span_id"] or "",
            "name": item["name"],
            "startTimeUnixNano": str(item["start_time"]),
            "attributes": [{"key": key, "value": typed(value)} for key, value in item["attributes"].items()],
        }
        for item in given
    ]


def jaeger(item: dict[str, Any]) -> dict[str, Any]:
    references = [{"refType": "CHILD_OF", "traceID": "t", "spanID": item["parent_span_id"]}] if item["parent_span_id"] else []
    tags = [{"key": key, "type": "string", "value": value} for key, value in item["attributes"].items()]
    facts = {"traceID": "t", "spanID": item["span_id"], "operationName": item["name"], "startTime": item["start_time"] // 1000}
    return facts | {"references": references, "tags": tags, "logs": []}


def console(item: dict[str, Any]) -> dict[str, Any]:
    """What OpenTelemetry's console exporter prints."""
    seconds = item["start_time"] // 10**9 - 1_700_000_000
    facts = {"name": item["name"], "context": {"trace_id": "0xt", "span_id": item["span_id"]}, "kind": "SpanKind.INTERNAL"}
    return facts | {
        "parent_id": item["parent_span_id"],
        "start_time": f"2023-11-14T22:13:{20 + seconds:02}.000000Z",
        "attributes": item["attributes"],
    }


def phoenix_table(item: dict[str, Any]) -> dict[str, Any]:
    facts = {"name": item["name"], "context.span_id": item["span_id"], "context.trace_id": "t", "parent_id": item["parent_span_id"]}
    return facts | {"start_time": item["start_time"] // 10**6} | {f"attributes.{key}": value for key, value in item["attributes"].items()}


def zipkin(item: dict[str, Any]) -> dict[str, Any]:
    facts = {"traceId": "t", "id": item["span_id"], "parentId": item["parent_span_id"] or "", "name": item["name"]}
    return facts | {"timestamp": item["start_time"] // 1000, "tags": {key: str(value) for key, value in item["attributes"].items()}}


def nested(given: list[dict[str, Any]]) -> dict[str, Any]:
    root, *rest = ({**item, "parent_span_id": None} for item in given)
    return {"trace_id": "t", "spans": [{**root, "child_spans": rest}]}


GIVEN = spans(conventions)
CONTAINERS = {
    "otlp": {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": otlp(GIVEN)}]}]},
    "old otlp": {"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": otlp(GIVEN)}]}]},
    "tempo": {"batches": [{"resource": {}, "scopeSpans": [{"spans": otlp(GIVEN)}]}]},
    "tempo 2": {"trace": {"resourceSpans": [{"scopeSpans": [{"spans": otlp(GIVEN)}]}]}},
    "jaeger": {"data": [{"traceID": "t", "spans": [jaeger(item) for item in GIVEN], "processes": {}}]},
    "list": GIVEN,
    "object": {"spans": GIVEN},
    "console": [console(item) for item in GIVEN],
    "table": [phoenix_table(item) for item in GIVEN],
    "zipkin": [zipkin(item) for item in GIVEN],
    "zipkin traces": [[zipkin(item) for item in GIVEN]],
    "nested": nested(GIVEN),
    "mlflow": {"info": {"trace_id": "t"}, "data": {"spans": GIVEN}},
    "backwards": GIVEN[::-1],
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_run(container: str) -> None:
    is_the_run(only(read_value(CONTAINERS[container])))


@pytest.mark.parametrize("number", ["²", "9" * 5_000])
def test_usage_and_times_that_only_look_like_numbers_do_not_keep_a_trace_from_being_read(number: str) -> None:
    given = otlp(GIVEN)
    for span in given:
        span["endTimeUnixNano"] = number
        span["attributes"] = [
            entry | {"value": {"intValue": number}} if "intValue" in entry["value"] else entry for entry in span["attributes"]
        ]
    usual, found = only(read_value(CONTAINERS["otlp"])), only(read_value({"resourceSpans": [{"scopeSpans": [{"spans": given}]}]}))
    assert [message.content for message in found.messages] == [message.content for message in usual.messages]


def test_a_collector_writes_one_batch_per_line() -> None:
    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": [item]}]}]} for item in otlp(GIVEN)]
    is_the_run(only(read_lines(lines)))


def test_nested_attributes_are_read_as_flat_ones() -> None:
    def phoenix(prompt: Any, answer: Any, sent: int, given: int) -> dict[str, Any]:
        def message(item: Any) -> dict[str, Any]:
            calls = [
                {"tool_call": {"id": CALL, "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}}
                for _ in item.get("tool_calls", ())
            ]
            said = {"role": item["role"], "content": item["content"], "tool_calls": calls, "tool_call_id": item.get("tool_call_id")}
            return {"message": {key: value for key, value in said.items() if value}}

        llm = {"input_messages": [message(item) for item in prompt], "output_messages": [message(answer)]}
        return {"llm": llm | {"token_count": {"prompt": sent, "completion": given}}, "openinference": {"span": {"kind": "LLM"}}}

    is_the_run(only(read_value(spans(phoenix))))


def test_messages_in_events_are_read_in_the_old_and_the_new_form() -> None:
    for old in (True, False):
        given = spans(lambda *_: {"gen_ai.operation.name": "chat"})
        for item, (prompt, answer, *_) in zip(given[1:], CALLS, strict=True):
            if old:
                names = [f"gen_ai.{message['role']}.message" for message in prompt]
                events = [{"name": name, "attributes": flattened(message)} for name, message in zip(names, prompt, strict=True)]
                item["events"] = [*events, {"name": "gen_ai.choice", "attributes": {"index": 0, "message": json.dumps(answer)}}]
            else:
                facts = {key: value for key, value in conventions(prompt, answer, 0, 0).items() if "messages" in key}
                item["span_events"] = [{"event_name": "gen_ai.client.inference.operation.details", "attributes": facts}]
        is_the_run(only(read_value(given)), usage=False)


def flattened(message: dict[str, Any]) -> dict[str, Any]:
    return {
        key if key != "tool_call_id" else "id": json.dumps(value) if isinstance(value, list) else value
        for key, value in message.items()
        if value
    }


def test_events_that_are_log_records_join_their_spans() -> None:
    given = spans(lambda *_: {"gen_ai.operation.name": "chat"})
    records = []
    for item, (prompt, answer, *_) in zip(given[1:], CALLS, strict=True):
        body = {"input": {"messages": prompt}, "output": {"messages": [answer]}}
        records.append({"traceId": "t", "spanId": item["span_id"], "eventName": "adot", "timeUnixNano": item["start_time"], "body": body})
    is_the_run(only(read_value([*given, *records])), usage=False)


def run(own: str, parent: str | None, kind: str, at: int, sent: Any, got: Any) -> dict[str, Any]:
    facts = {"id": own, "parent_run_id": parent, "trace_id": "r", "run_type": kind, "name": TOOL if kind == "tool" else kind}
    return facts | {"start_time": f"2026-01-01T00:00:{at:02}Z", "inputs": sent, "outputs": got}


def constructor(message: dict[str, Any]) -> dict[str, Any]:
    kind = {"system": "SystemMessage", "user": "HumanMessage", "assistant": "AIMessage", "tool": "ToolMessage"}[message["role"]]
    calls = [{"id": CALL, "name": TOOL, "args": ARGUMENTS} for _ in message.get("tool_calls", ())]
    kwargs = {"content": message["content"] or "", "tool_calls": calls, "tool_call_id": message.get("tool_call_id")}
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {k: v for k, v in kwargs.items() if v is not None},
    }


def test_langsmith_runs_are_read_flat_and_nested() -> None:
    runs = [run("root", None, "chain", 0, {"input": ASK}, {"output": ANSWER})]
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        usage = {"token_usage": {"prompt_tokens": sent, "completion_tokens": given}}
        got = {"generations": [[{"text": answer["content"] or "", "message": constructor(answer)}]], "llm_output": usage}
        runs.append(run(f"l{number}", "root", "llm", number * 4 + 1, {"messages": [[constructor(item) for item in prompt]]}, got))
    runs.append(run("tool", "root", "tool", 3, {"input": json.dumps(ARGUMENTS)}, {"output": RESULT}))
    is_the_run(only(read_value(runs)))
    is_the_run(only(read_lines(runs)))
    is_the_run(only(read_value({**runs[0], "child_runs": runs[1:]})))


def test_usage_inside_langchains_generations_is_read() -> None:
    runs = []
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        message = constructor(answer)
        message["kwargs"]["usage_metadata"] = {"input_tokens": sent, "output_tokens": given}
        got = {"generations": [[{"text": answer["content"] or "", "message": message}]]}
        runs.append(run(f"l{number}", None, "llm", number * 4 + 1, {"messages": [[constructor(item) for item in prompt]]}, got))
    is_the_run(only(read_value(runs)))


def test_the_model_is_found_in_what_was_sent_and_in_the_call_around_a_step() -> None:
    sent = mlflow(*CALLS[1]) | {"mlflow.spanInputs": json.dumps({"model": "m1", "messages": SECOND})}
    assert only(read_value({"info": {}, "data": {"spans": [span("a", "", "chat", 1, sent)]}})).model == "m1"
    outer = {"id": "g", "traceId": "t", "type": "model_generation", "input": {"messages": FIRST}, "attributes": {"model": "m1"}}
    step = {"id": "s", "traceId": "t", "parentSpanId": "g", "type": "model_step", "output": {"text": ANSWER}, "attributes": {}}
    assert only(read_lines([outer, step])).model == "m1"


def test_langfuse_observations_are_read_as_a_bare_list() -> None:
    def observation(own: str, kind: str, at: int, sent: Any, got: Any, **more: Any) -> dict[str, Any]:
        facts = {"id": own, "traceId": "t", "type": kind, "name": TOOL if kind == "TOOL" else "chat", "parentObservationId": "root"}
        return facts | {"startTime": f"2026-01-01T00:00:{at:02}.000Z", "input": sent, "output": got} | more

    found = [observation("root", "SPAN", 0, None, None)]
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        found.append(observation(f"g{number}", "GENERATION", number * 4 + 1, prompt, answer, usageDetails={"input": sent, "output": given}))
    is_the_run(only(read_value(found)))


def test_langfuse_turns_that_asked_for_tools_together_keep_their_thinking_and_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}

    def observation(at: int, kind: str, sent: Any, *parts: dict[str, Any]) -> dict[str, Any]:
        said = {"role": "assistant", "content": list(parts)} if parts else None
        return {"type": kind, "name": TOOL, "startTime": f"2026-01-01T00:00:0{at}Z", "input": sent, "output": said}

    found = [observation(0, "SPAN", {"prompt": "both?"})]
    for number, own in enumerate("ab"):
        call = {"type": "tool_use", "id": own, "name": TOOL, "input": {}}
        found.append(observation(number + 1, "GENERATION", None, {"type": "thinking", "thinking": f"think {own}"}, image, call))
    trace = only(read_value({"trace": {"id": "t"}, "observations": found}))
    [turn] = [message for message in trace.messages if message.role == "assistant"]
    assert [call.id for call in turn.tool_calls] == ["a", "b"]
    assert (turn.thinking, [image.bytes for image in turn.images]) == ("think a\nthink b", [3, 3])


def test_the_span_of_a_tool_gives_the_result_that_no_prompt_holds() -> None:
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": TOOL,
        "gen_ai.tool.call.id": CALL,
        "gen_ai.tool.call.result": RESULT,
    }
    given = spans(lambda prompt, answer, sent, got: conventions(FIRST, answer, sent, got), tool)
    is_the_run(only(read_value(given)))


def test_scopes_of_atof_are_read_in_both_versions() -> None:
    lines, old = [], []
    for number, (prompt, answer, *_) in enumerate(CALLS):
        for half, data in (("start", {"messages": prompt}), ("end", {"choices": [{"message": answer}]})):
            facts = {
                "uuid": f"l{number}",
                "parent_uuid": "a",
                "name": "m",
                "timestamp": f"2026-01-01T00:00:{number * 4 + (half == 'end'):02}Z",
            }
            lines.append({**facts, "kind": "scope", "scope_category": half, "category": "llm", "data": data})
            old.append(
                {
                    **facts,
                    "kind": "ScopeStart" if half == "start" else "ScopeEnd",
                    "scope_type": "llm",
                    "input" if half == "start" else "output": data,
                }
            )
    is_the_run(only(read_lines(lines)), usage=False)
    is_the_run(only(read_lines(old)), usage=False)


def test_spans_of_the_openai_agents_sdk_are_read() -> None:
    found = [
        {
            "object": "trace.span",
            "id": "a",
            "trace_id": "t",
            "parent_id": None,
            "started_at": "2026-01-01T00:00:00Z",
            "span_data": {"type": "agent", "name": "w"},
        }
    ]
    for number, (prompt, answer, sent, given) in enumerate(CALLS):
        data = {
            "type": "generation",
            "input": prompt,
            "output": [answer],
            "model": "m",
            "usage": {"input_tokens": sent, "output_tokens": given},
        }
        facts = {
            "object": "trace.span",
            "id": f"g{number}",
            "trace_id": "t",
            "parent_id": "a",
            "started_at": f"2026-01-01T00:00:{number * 4 + 1:02}Z",
        }
        found.append(facts | {"span_data": data})
    is_the_run(only(read_lines(found)))


def test_an_agent_below_a_tool_is_a_trace_of_its_own_and_leaves_an_event() -> None:
    given = spans(conventions, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": TOOL, "gen_ai.tool.call.id": CALL})
    given.append(span("side", "tool", "invoke_agent side", 6, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "side"}))
    asked = [{"role": "system", "content": "You look things up."}, {"role": "user", "content": "Oslo"}]
    given.append(span("inner", "side", "chat", 7, conventions(asked, {"role": "assistant", "content": RESULT}, 5, 5)))
    main, side = read_value(given)
    is_the_run(main)
    assert [(event.kind, event.before_message, event.data["agent"]) for event in main.events] == [("subagent", 3, "side")]
    assert counts(side) == (1, 0, 0) and side.meta["agent"] == "side"


def test_two_spans_of_one_call_are_one_turn() -> None:
    given = spans(conventions)
    inner = [{**item, "span_id": item["span_id"] + "x", "parent_span_id": item["span_id"]} for item in given[1:]]
    is_the_run(only(read_value([*given, *inner])))
    for item in inner:
        item["attributes"] = {"gen_ai.operation.name": "chat"}
    is_the_run(only(read_value([*given, *inner])))


USES = [{"toolUse": {"toolUseId": CALL, "name": TOOL, "input": ARGUMENTS}}]
GIVES = [{"toolResult": {"toolUseId": CALL, "status": "success", "content": [{"text": RESULT}]}}]


def test_events_of_strands_hold_their_parts_as_text() -> None:
    given = spans(
        lambda prompt, answer, sent, got: {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": sent,
            "gen_ai.usage.output_tokens": got,
        }
    )
    opening = [("gen_ai.system.message", [{"text": SYSTEM}]), ("gen_ai.user.message", [{"text": ASK}])]
    later = [*opening, ("gen_ai.assistant.message", USES), ("gen_ai.tool.message", GIVES)]
    for item, said, answer in zip(given[1:], (opening, later), (USES, [{"text": ANSWER}]), strict=True):
        item["events"] = [{"name": name, "attributes": {"content": json.dumps(content)}} for name, content in said]
        item["events"].append({"name": "gen_ai.choice", "attributes": {"message": json.dumps(answer), "finish_reason": "x"}})
    is_the_run(only(read_value(given)))


def test_sessions_of_honeyhive_are_read() -> None:
    told = {"role": "tool", "content": json.dumps(GIVES[0])}
    asked = {"role": "assistant", "content": USES}
    events = [
        {
            "event_id": "r",
            "session_id": "s",
            "event_type": "chain",
            "event_name": "run",
            "inputs": {},
            "outputs": {},
            "start_time": 1790834064000,
        }
    ]
    for number, (prompt, answer) in enumerate(((FIRST, asked), ([*FIRST, asked, told], SAID))):
        facts = {
            "event_id": f"m{number}",
            "session_id": "s",
            "parent_id": "r",
            "event_type": "model",
            "event_name": "chat",
            "start_time": 1790834064001 + number,
        }
        usage = dict(zip(("input_tokens", "output_tokens"), CALLS[number][2:], strict=True))
        events.append(facts | {"inputs": {"chat_history": prompt}, "outputs": answer, "metadata": usage})
    is_the_run(only(read_value({"events": events[::-1]})))


def test_an_agent_that_records_its_run_and_not_its_calls_gives_its_turns() -> None:
    facts: dict[str, Any] = {"openinference.span.kind": "AGENT", "input.value": ASK}
    key = "llm.output_messages.{}.message."
    facts |= {key.format(0) + "role": "assistant", key.format(0) + "content.0": "One moment."}
    call = key.format(1) + "tool_calls.0.tool_call."
    facts |= {call + "id": CALL, call + "function.name": TOOL, call + "function.arguments": json.dumps(ARGUMENTS)}
    facts |= {key.format(2) + "role": "assistant", key.format(2) + "content.0": ANSWER}
    tool = {"openinference.span.kind": "TOOL", "tool.name": TOOL, "tool.id": CALL, "output.value": RESULT}
    trace = only(read_value([span("tool", "q", TOOL, 3, tool), span("q", "gone", "query", 0, facts)]))
    is_the_run(trace, system=False, usage=False)
    assert trace.messages[1].content == "One moment."


def test_an_asked_again_request_keeps_the_dropped_answer_as_a_note() -> None:
    again = [
        span("a", "r", "chat", 1, conventions(FIRST, {"role": "assistant", "content": "Hm."}, 1, 1)),
        span("b", "r", "chat", 2, conventions(FIRST, SAID, 1, 1)),
    ]
    trace = only(read_value(again))
    assert counts(trace) == (1, 0, 0)
    assert [(event.kind, event.text) for event in trace.events] == [("note", "Hm.")]


def test_spans_without_content_are_refused_with_what_to_do() -> None:
    from pamer_lab.trajectory import read_bytes

    given = spans(lambda *_: {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    reading = read_bytes(json.dumps(given).encode(), "spans.json")
    assert not reading.traces and "CAPTURE_MESSAGE_CONTENT" in reading.rejected[0].reason
