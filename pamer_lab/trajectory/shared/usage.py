"""Recorded token usage under the names of many sources -> `Usage`; a source that recorded none has None."""

from typing import Any

from msgspec import structs

from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.values import Usage

SENT = "prompt_tokens input_tokens prompt_token_count tokens_sent inputTokens promptTokens promptTokenCount input".split()
SENT += ["inputTokenCount", "request_tokens"]
GIVEN = "completion_tokens output_tokens candidates_token_count tokens_received outputTokens completionTokens".split()
GIVEN += ["candidatesTokenCount", "output", "outputTokenCount", "response_tokens"]
CACHED = "cached_tokens cache_read_tokens prompt_cache_hit_tokens cachedInputTokens cacheReadTokens cachedContentTokenCount".split()
DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details", "promptTokensDetails")

BESIDE = "usage usage_metadata usageMetadata metrics token_usage tokenUsage tokens model_usage modelUsage models_usage stats".split()
"""Fields of a message that hold its usage."""


def read_usage(value: Any, cost: Any = None) -> Usage | None:
    """Usage in the names of OpenAI, Anthropic, LangChain and OpenHands.

    Anthropic's `input_tokens` leaves cached tokens out, so they are added; everyone else's number includes them.
    """
    price = _price(cost) or None
    if not isinstance(value, dict):
        return Usage(cost_usd=price) if price is not None else None
    written = _number(value, "cache_creation_input_tokens", "cacheCreationInputTokens", "cacheWriteInputTokens")
    read = _number(value, "cache_read_input_tokens", "cacheReadInputTokens")
    beside = written + read if "prompt_tokens" not in value else 0
    usage = Usage(
        input_tokens=_number(value, *SENT) + beside,
        output_tokens=_number(value, *GIVEN),
        cached_tokens=read or _number(get.obj(value, *DETAILS), "cached_tokens", "cache_read", "cachedTokens") or _number(value, *CACHED),
        cost_usd=price,
    )
    return usage if usage != Usage() else None


def usage_beside(message: dict[str, Any]) -> Usage | None:
    """The usage that a message or an event carries, under whichever of the usual names."""
    for key in BESIDE:
        if isinstance(message.get(key), dict) and (found := read_usage(message[key])):
            return found
    for key in ("response_metadata", "metadata", "meta", "additional_kwargs"):
        if isinstance(inner := message.get(key), dict) and (found := read_usage(get.obj(inner, *BESIDE) or None)):
            return found
    return None


def usage_in(value: Any, *, sent: str, given: str, cached: str = "", cost: Any = None) -> Usage | None:
    """Usage in a source's own names: each argument lists the fields whose numbers are added up, `a|b` being two spellings of one."""
    tokens = [sum(_number(value, *name.split("|")) for name in names.split()) for names in (sent, given, cached)]
    usage = Usage(tokens[0], tokens[1], tokens[2], _price(cost))
    return usage if usage != Usage() else None


def priced(usage: Usage | None, cost: Any) -> Usage | None:
    """The usage with the cost that a source recorded with it; unchanged if there is none."""
    price = _price(cost)
    return usage if price is None else structs.replace(usage or Usage(), cost_usd=price)


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """The sum of two recorded usages, either of which may be missing."""
    if first is None or second is None:
        return first or second
    prices = [price for price in (first.cost_usd, second.cost_usd) if price is not None]
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        sum(prices) if prices else None,
    )


def _number(value: Any, *names: str) -> int:
    return get.count(value, *names) or 0


def _price(cost: Any) -> float | None:
    price = get.as_amount(cost)
    return price if price is not None and price >= 0 else None
