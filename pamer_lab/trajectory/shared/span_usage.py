"""What a span says of its model and its tokens, under the names of every dialect."""

from typing import Any

from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.span_dialects import OUTPUTS
from pamer_lab.trajectory.shared.spans import Span
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Usage

SENT = "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt llm.usage.prompt_tokens".split()
SENT += ["ai.usage.inputTokens", "ai.usage.promptTokens", "input_tokens", "prompt_tokens"]
GIVEN = "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.token_count.completion llm.usage.completion_tokens".split()
GIVEN += ["ai.usage.outputTokens", "ai.usage.completionTokens", "output_tokens", "completion_tokens"]
CACHED = "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens llm.token_count.prompt_details.cache_read".split()
CACHED += ["ai.usage.cachedInputTokens", "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.input_tokens.cached"]


def usage_of(span: Span) -> Usage | None:
    """The tokens that a span recorded, under whichever names; numbers may be text."""
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
    for value in (span.output, parsed(get.some(facts, *OUTPUTS)), parsed(facts.get("gcp.vertex.agent.llm_response"))):
        for holder in (value, get.obj(value, "llm_output"), get.obj(value, "response_metadata")) if isinstance(value, dict) else ():
            for key in ("usage", "usage_metadata", "usageMetadata", "token_usage"):
                found = found or read_usage(holder.get(key))
    return found or _of_generation(span.output)


def _of_generation(output: Any) -> Usage | None:
    """Of LangChain's `generations`, which are lists of lists of messages with their fields under `kwargs`."""
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
    for value in (span.output, span.input):
        found = found or get.text(value, "model", "model_version")
    return (
        found
        or get.text(facts, "responseModel", "atof.model_name", "mlflow.llm.model", "request.model")
        or get.text(parsed(get.some(facts, "mlflow.llm.model", "mlflow.spanInputs")), "model")
    )
