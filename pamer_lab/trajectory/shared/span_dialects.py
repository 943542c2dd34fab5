"""What a span's attributes mean: the model call that it records.

One function per dialect, tried in order; each gives the prompt and the answer as messages in whatever shape the library wrote, which
`growing` reads. Knows OpenTelemetry's GenAI conventions (attributes and events, old and new), OpenInference, OpenLLMetry, Vercel's AI SDK,
Google's ADK, Logfire, MLflow, LangSmith, Langfuse, Mastra, OpenAI Agents and ATOF.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.gemini_parts import declared_tools
from pamer_lab.trajectory.shared.span_values import answers_of, branch, parts_in, prompt_of
from pamer_lab.trajectory.shared.spans import Span
from pamer_lab.trajectory.values import Tool

Words = list[dict[str, Any]]


class Exchanged(NamedTuple):
    """What a model call sent and got."""

    prompt: Words
    answers: Words
    tools: list[Tool]


def exchanged(span: Span) -> Exchanged | None:
    """What the call sent and got, by the first dialect that finds something; None where no content was recorded."""
    for dialect in DIALECTS:
        found = dialect(span)
        if found is not None and (found.prompt or found.answers):
            return found if found.tools else found._replace(tools=_declared(span.attributes))
    return None


def _conventions(span: Span) -> Exchanged | None:
    """OpenTelemetry's newer conventions: messages with parts, as attributes or in one event."""
    facts = dict(span.attributes)
    for name, more in span.events:
        if "gen_ai.input.messages" in more or "gen_ai.output.messages" in more or name.endswith("operation.details"):
            facts |= more
    sent, got = facts.get("gen_ai.input.messages"), facts.get("gen_ai.output.messages")
    history = facts.get("pydantic_ai.all_messages")
    if not sent and not got and history:
        words = _instructed(facts, prompt_of(history))
        last = -1 if words and words[-1].get("role") == "assistant" else len(words)
        return Exchanged(words[:last], words[last:], [])
    if not sent and not got:
        return None
    answers = [_with_calls(message) for message in answers_of(got)]
    return Exchanged(_instructed(facts, prompt_of(sent)), answers, read_tools(parsed(facts.get("gen_ai.tool.definitions"))))


PRINTED_CALL = re.compile(r"ResponseFunctionToolCall\(arguments='(.*)', call_id='([^']*)', name='([^']*)'", re.DOTALL)
"""A call as Python prints it, which OpenTelemetry's instrumentation of OpenAI's Agents SDK records as a text."""


def _with_calls(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its printed calls as real calls."""
    parts = []
    for part in get.objects(message, "parts"):
        found = PRINTED_CALL.match(get.text(part, "content"))
        parts.append({"type": "tool_call", "id": found[2], "name": found[3], "arguments": found[1]} if found else part)
    return {**message, "parts": parts} if parts else message


def _instructed(facts: dict[str, Any], words: Words) -> Words:
    parts = parsed(facts.get("gen_ai.system_instructions"))
    if not parts or (words and words[0].get("role") == "system"):
        return words
    return [{"role": "system", "parts" if isinstance(parts, list) else "content": parts}, *words]


def _adk(span: Span) -> Exchanged | None:
    """Google's ADK: Gemini's request and response as JSON text."""
    request, response = (parsed(span.attributes.get(f"gcp.vertex.agent.llm_{name}")) for name in ("request", "response"))
    config = get.obj(request, "config")
    prompt: Words = [{"role": "user", **item} for item in get.objects(request, "contents")]
    if system := config.get("system_instruction"):
        prompt.insert(0, {"role": "system", "content": system if isinstance(system, str) else json_text(system)})
    answer = get.obj(response, "content")
    return Exchanged(prompt, [{"role": "model", **answer}] if answer else [], read_tools(declared_tools(config.get("tools"))))


def _openinference(span: Span) -> Exchanged | None:
    facts = span.attributes
    prompt = [_message(item) for item in branch(facts, "llm.input_messages")]
    answers = [{"role": "assistant", **_message(item)} for item in branch(facts, "llm.output_messages")]
    tools = [parsed(get.obj(item, "tool").get("json_schema") or item.get("tool.json_schema")) for item in branch(facts, "llm.tools")]
    if prompt and not answers:
        answers = answers_of(facts.get("output.value"))
    elif answers and not prompt:
        prompt = prompt_of(facts.get("input.value"))
    return Exchanged(prompt, answers, read_tools(tools))


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """OpenInference's message in OpenAI's words."""
    body = get.obj(item, "message") or {key.removeprefix("message."): value for key, value in item.items()}
    calls = []
    for call in get.objects(body, "tool_calls"):
        call = get.obj(call, "tool_call") or {key.removeprefix("tool_call."): value for key, value in call.items()}
        function = get.obj(call, "function")
        name, given = (function.get(key, call.get(f"function.{key}")) for key in ("name", "arguments"))
        calls.append({"id": get.text(call, "id"), "name": name, "arguments": given})
    if not calls and (name := get.text(body, "function_call_name")):
        calls = [{"name": name, "arguments": body.get("function_call_arguments_json")}]
    parts = []
    for part in get.objects(body, "contents"):
        part = get.obj(part, "message_content") or {key.removeprefix("message_content."): value for key, value in part.items()}
        image = get.obj(get.obj(part, "image"), "image") or get.obj(part, "image")
        parts.append(part if not image else {"type": "image", "image_url": image.get("url")})
    content = body.get("content") if body.get("content") is not None or not parts else parts
    found = {
        "role": body.get("role"),
        "content": content,
        "tool_calls": calls,
        "tool_call_id": body.get("tool_call_id"),
        "name": body.get("name"),
    }
    return {key: value for key, value in found.items() if value is not None and value != []}


def _vercel(span: Span) -> Exchanged | None:
    facts = span.attributes
    prompt = prompt_of(facts.get("ai.prompt.messages")) or prompt_of(facts.get("ai.prompt"))
    said = {name: get.some(facts, f"ai.response.{name}", f"ai.result.{name}") for name in ("text", "object", "reasoning", "toolCalls")}
    if not any(said.values()) and not prompt:
        return None
    answer = {"role": "assistant", "content": said["text"] or said["object"], "reasoning": said["reasoning"]}
    calls = parsed(said["toolCalls"])
    answer |= {"tool_calls": calls} if isinstance(calls, list) and calls else {}
    tools = [parsed(tool) for tool in get.as_list(parsed(facts.get("ai.prompt.tools")) or [])]
    return Exchanged(prompt, [answer] if any(said.values()) else [], read_tools(tools))


def _openllmetry(span: Span) -> Exchanged | None:
    """OpenLLMetry's numbered prompts and completions, in both generations of names."""
    facts = span.attributes
    prompt = branch(facts, "gen_ai.prompt") or branch(facts, "llm.prompts")
    answers = branch(facts, "gen_ai.completion") or branch(facts, "llm.completions")
    if not prompt and not answers:
        return None
    functions = [item | {"parameters": parsed(item.get("parameters"))} for item in branch(facts, "llm.request.functions")]
    prompt = [{"role": "user", **item, "content": parts_in(item.get("content"))} for item in prompt]
    answers = [{"role": "assistant", **item, "content": parts_in(item.get("content"))} for item in answers]
    return Exchanged(prompt, answers, read_tools(functions))


def _sentry(span: Span) -> Exchanged | None:
    """Sentry's names: the messages of the request, and separate fields for the answer's text and calls."""
    facts = span.attributes
    text, calls = (parsed(facts.get(f"gen_ai.response.{name}")) for name in ("text", "tool_calls"))
    answer = {"role": "assistant", "content": "\n".join(map(json_text, text)) if isinstance(text, list) else text}
    answer |= {"tool_calls": calls} if isinstance(calls, list) and calls else {}
    return Exchanged(prompt_of(facts.get("gen_ai.request.messages")), [answer] if text or calls else [], [])


def _opened(item: dict[str, Any]) -> Words:
    """A message whose text is the JSON of an answer as that answer."""
    inner = parsed(item.get("content"))
    return answers_of(inner) if isinstance(inner, dict) and {"generations", "choices", "message"} & inner.keys() else [item]


EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _event_messages(span: Span) -> Exchanged | None:
    """OpenTelemetry's older conventions: one event per message; also Logfire's list of them as an attribute."""
    prompt: Words = []
    answers: Words = []
    for _, facts in span.events:
        if "input.messages" in facts or "output.messages" in facts:  # ADOT
            said = [inner for item in answers_of(facts.get("output.messages")) for inner in _opened(item)]
            return Exchanged(prompt_of(facts.get("input.messages")), said, [])
    listed = get.as_list(parsed(get.some(span.attributes, "events", "all_messages_events")) or [])
    events = [*span.events, *((get.text(item, "event.name", "name"), item) for item in listed if isinstance(item, dict))]
    for name, facts in events:
        body = parsed(facts.get("gen_ai.event.content"))
        body = body if isinstance(body, dict) else facts
        if role := EVENTS.get(name):
            more = {"tool_calls": parsed(body["tool_calls"])} if "tool_calls" in body else {}
            prompt.append({"role": role, **body, "content": parts_in(body.get("content")), **more})
        elif name == "gen_ai.choice":
            message = parsed(body.get("message"))
            message = message if isinstance(message, dict) else {"content": parts_in(body.get("message", body.get("content")))}
            calls = parsed(message.get("tool_calls") or body.get("tool_calls"))
            answers.append({"role": "assistant", **message} | ({"tool_calls": calls} if calls else {}))
        elif name == "gen_ai.content.prompt":
            prompt += prompt_of(facts.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            answers += answers_of(facts.get("gen_ai.completion"))
    return Exchanged(prompt, answers, [])


def _in_and_out(span: Span) -> Exchanged | None:
    """Spans with one input and one output, under the names of many libraries."""
    facts = span.attributes
    sent = span.input if span.input is not None else get.some(facts, *INPUTS)
    got = span.output if span.output is not None else get.some(facts, *OUTPUTS)
    sent, got = parsed(sent), parsed(got)
    prompt = prompt_of(sent)
    if system := (get.text(got, "instructions") if isinstance(got, dict) else ""):
        prompt = [{"role": "system", "content": system}, *prompt]
    return Exchanged(prompt, answers_of(got), read_tools(get.some(sent, "tools") or get.some(get.obj(facts, "extra"), "tools")))


INPUTS = "mlflow.chat.messages mlflow.spanInputs input.value traceloop.entity.input langfuse.observation.input request_data".split()
INPUTS += ["gen_ai.prompt", "input"]
OUTPUTS = (
    "mlflow.spanOutputs output.value traceloop.entity.output langfuse.observation.output response_data gen_ai.completion output".split()
)
DIALECTS: tuple[Callable[[Span], Exchanged | None], ...] = (
    _conventions,
    _adk,
    _openinference,
    _vercel,
    _openllmetry,
    _event_messages,
    _sentry,
    _in_and_out,
)


def _declared(facts: dict[str, Any]) -> list[Tool]:
    for key in (
        "gen_ai.tool.definitions",
        "mlflow.chat.tools",
        "gen_ai.request.tools",
        "gen_ai.request.available_tools",
        "tools",
        "model_request_parameters",
    ):
        found = parsed(facts.get(key))
        if tools := read_tools(get.items(found, "function_tools") if isinstance(found, dict) else found):
            return tools
    return []
