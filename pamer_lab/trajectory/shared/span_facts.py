"""What a span says in addition to its messages, under the names of every dialect: its kind, the tool it ran, its model and its tokens."""

from typing import Any, Literal, NamedTuple

from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.span_dialects import EVENTS, INPUTS, OUTPUTS
from pamer_lab.trajectory.shared.span_values import prompt_of
from pamer_lab.trajectory.shared.spans import Span
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Usage

Kind = Literal["llm", "tool", "agent", "other", ""]
"""`other`: content that is no turn, such as a retrieval, an embedding or a guardrail. Empty: plumbing, such as an HTTP request."""

KINDS: dict[str, Kind] = {
    **dict.fromkeys("llm chat chat_model text_completion generate_content completion generation response model_step".split(), "llm"),
    **dict.fromkeys("model llm_generation model_generation model_inference chat_completion responses generate".split(), "llm"),
    **dict.fromkeys("tool execute_tool function tool_call mcp_tool_call mcp_tools function_tool client_tool_call".split(), "tool"),
    **dict.fromkeys("agent invoke_agent agent_run create_agent workflow chain handoff task workflow_run".split(), "agent"),
    **dict.fromkeys("retriever embedding embeddings reranker guardrail evaluator retrieval rerank parser".split(), "other"),
}
SENT = "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt llm.usage.prompt_tokens".split()
SENT += ["ai.usage.inputTokens", "ai.usage.promptTokens", "input_tokens", "prompt_tokens"]
GIVEN = "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.token_count.completion llm.usage.completion_tokens".split()
GIVEN += ["ai.usage.outputTokens", "ai.usage.completionTokens", "output_tokens", "completion_tokens"]
CACHED = "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens llm.token_count.prompt_details.cache_read".split()
CACHED += ["ai.usage.cachedInputTokens", "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.input_tokens.cached"]


class ToolUse(NamedTuple):
    """A tool call that was recorded as a separate span."""

    id: str
    name: str
    arguments: Any
    output: Any
    """None where the span recorded none."""


def kind_of(span: Span) -> Kind:
    """What a span records."""
    facts = span.attributes
    operation = get.text(facts, "ai.operationId")
    if operation:
        if operation == "ai.toolCall":
            return "tool"
        if "mbed" in operation or "rerank" in operation:
            return "other"
        return "llm" if ".do" in operation else "agent"
    if get.text(parsed(facts.get("gcp.vertex.agent.llm_request")), "model"):
        return "llm"
    names = (
        "gen_ai.operation.name",
        "openinference.span.kind",
        "mlflow.spanType",
        "traceloop.span.kind",
        "langfuse.observation.type",
        "type",
    )
    for word in (*(get.as_text(parsed(facts.get(name))) for name in names), span.kind, get.text(facts, "llm.request.type", "lk.span.kind")):
        if kind := KINDS.get(word.lower().strip('"')):
            return kind
    if any(key.startswith(("gen_ai.prompt", "gen_ai.completion", "llm.input_messages", "gen_ai.input.messages")) for key in facts):
        return "llm"
    if "request_data" in facts and "response_data" in facts:
        return "llm"
    if any(name in EVENTS or name == "gen_ai.choice" for name, _ in span.events):
        return "llm"
    for _, more in span.events:
        if "output.messages" in more:
            return _kind_of_output(more["output.messages"])
    if "pydantic_ai.all_messages" in facts or "all_messages_events" in facts:
        return "agent"
    return "tool" if "gen_ai.tool.name" in facts or "tool_arguments" in facts else ""


def _kind_of_output(messages: Any) -> Kind:
    """What ADOT's record of some span is: a tool's message, a model's generations or message, or an agent's state."""
    last = get.as_list(messages)[-1] if messages else None
    said = parsed(last.get("content")) if isinstance(last, dict) else None
    said = parsed(said.get("message")) if isinstance(said, dict) and isinstance(said.get("message"), str) else said
    if not isinstance(said, dict):
        return "llm" if isinstance(said, list) else "agent"
    if get.text(said, "tool_call_id") or said.get("type") == "tool":
        return "tool"
    return "llm" if {"generations", "choices", "content", "tool_calls"} & said.keys() else "agent"


def tool_use(span: Span) -> ToolUse:
    """The tool call that a span records."""
    facts = span.attributes
    name = get.text(facts, "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name", "tool_name")
    if not name:
        name = span.name.removeprefix("execute_tool ").removesuffix(".tool").removeprefix("tool: ").strip("'") or "tool"
    given = get.some(
        facts, "gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args", "ai.toolCall.args", "gen_ai.tool.input", "tool_arguments"
    )
    output = get.some(
        facts, "gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "ai.toolCall.result", "gen_ai.tool.output", "tool_response"
    )
    for event, more in span.events:
        if event == "gen_ai.choice":
            output = output or more.get("message", more.get("content"))
        elif event == "gen_ai.tool.message":
            given = given or more.get("content")
    given = given if given is not None else span.input if span.input is not None else get.some(facts, *INPUTS)
    output = output if output is not None else span.output if span.output is not None else get.some(facts, *OUTPUTS)
    for _, more in span.events if output is None else ():
        said = [parsed(item.get("content")) for item in prompt_of(more.get("output.messages"))]
        output = said[-1] if said else None
        given = given if given is not None else next((item.get("content") for item in prompt_of(more.get("input.messages"))), None)
    told = parsed(output)
    keys = "gen_ai.tool.call.id tool_call.id tool.id ai.toolCall.id toolCallId atof.tool_call_id tool_call_id".split()
    id = get.text(facts, *keys)
    inner = get.obj(told, "output", "kwargs") or (told if isinstance(told, dict) else {})
    id = id or get.text(get.obj(inner, "kwargs") or inner, "tool_call_id") or get.text(parsed(given), "toolCallId", "tool_call_id")
    return ToolUse(id, name, parsed(given), told)


def usage_of(span: Span) -> Usage | None:
    """The tokens that a span recorded, under any of the known names; numbers may be text."""
    facts = span.attributes
    sent, given, cached = (next((number for key in keys if (number := _number(facts.get(key)))), 0) for keys in (SENT, GIVEN, CACHED))
    if sent or given or cached:
        return Usage(sent, given, cached, get.amount(facts, "gen_ai.usage.cost", "llm.cost.total", "operation.cost"))
    nested = {key[6:]: value for key, value in facts.items() if key.startswith("usage.")}
    if usage := read_usage(parsed(facts.get("usage")) or nested or facts.get("metrics")):
        return usage
    details = parsed(facts.get("mlflow.chat.tokenUsage")) or {
        key[13:]: value for key, value in facts.items() if key.startswith("usageDetails.")
    }
    details = details or get.obj(facts, "usageDetails")
    if isinstance(details, dict) and ({"input", "output"} & details.keys()):
        details = {
            "input_tokens": details.get("input"),
            "output_tokens": details.get("output"),
            "cached_tokens": details.get("input_cached_tokens"),
        }
    if usage := read_usage(details):
        return usage
    found: Usage | None = None
    for value in (parsed(span.output), parsed(get.some(facts, *OUTPUTS)), parsed(facts.get("gcp.vertex.agent.llm_response"))):
        for holder in (value, get.obj(value, "llm_output"), get.obj(value, "response_metadata")) if isinstance(value, dict) else ():
            for key in ("usage", "usage_metadata", "usageMetadata", "token_usage"):
                found = found or read_usage(holder.get(key))
    return found or _of_generation(parsed(span.output))


def _of_generation(output: Any) -> Usage | None:
    """Usage in LangChain's `generations`, which are lists of lists of messages with their fields under `kwargs`."""
    first = next(iter(get.items(output, "generations")), None)
    message = get.obj(next(iter(get.as_list(first)), first), "message")
    return read_usage(get.some(get.obj(message, "kwargs") or message, "usage_metadata"))


def _number(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 15:
        return int(value)
    return get.as_count(value) or 0


def model_of(span: Span) -> str:
    facts = span.attributes
    found = get.text(facts, "gen_ai.response.model", "llm.model_name", "ai.response.model", "gen_ai.request.model", "ai.model.id", "model")
    for value in (span.output, span.input, facts.get("config"), facts.get("metadata"), get.obj(parsed(facts.get("extra")), "metadata")):
        found = found or get.text(parsed(value), "model", "ls_model_name", "model_name", "model_version")
    return (
        found
        or get.text(facts, "responseModel", "atof.model_name", "mlflow.llm.model", "request.model")
        or get.text(parsed(get.some(facts, "mlflow.llm.model", "mlflow.spanInputs")), "model")
    )
