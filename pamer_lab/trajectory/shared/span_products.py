"""Spans in product-specific shapes -> the shape that `spans` reads: HoneyHive, Datadog, PostHog, Sentry, Langfuse's tables.

One function per product; each returns None for an object of any other product. Invariant: nothing here raises.
"""

from collections.abc import Callable
from typing import Any

from pamer_lab.trajectory.shared import get

Fields = dict[str, Any]
OBSERVATION = {"parent_observation_id": "parentObservationId", "usage_details": "usageDetails", "cost_details": "costDetails"}
OBSERVATION |= {"provided_model_name": "model", "trace_id": "traceId", "start_time": "startTime"}


def unified(value: Fields) -> Fields:
    """A product's span in our names; any other object as it is."""
    return next((found for product in PRODUCTS if (found := product(value)) is not None), value)


def _honeyhive(value: Fields) -> Fields | None:
    if not isinstance(value.get("event_type"), str) or "event_id" not in value:
        return None
    facts = {key: item for key, item in get.obj(value, "metadata").items() if item != "unknown"}
    found = {"attributes": facts, **value, "metadata": facts, "run_type": value["event_type"], "id": value["event_id"]}
    return found | {"name": value.get("event_name"), "trace_id": value.get("session_id")}


def _datadog(value: Fields) -> Fields | None:
    """LLM Observability: the SDK's spans keep their words under `meta`, the API's under `attributes`."""
    facts = get.obj(value, "attributes")
    if not (isinstance(facts.get("span_kind"), str) and "span_id" in facts):
        meta = get.obj(value, "meta")
        kind = get.text(meta, "span.kind", "span_kind", "kind") or get.text(get.obj(meta, "span"), "kind")
        if not kind or "span_id" not in value:
            return None
        facts = {**value, **meta, "span_kind": kind}
    sent, got = (_said(get.obj(facts, key)) for key in ("input", "output"))
    found = {key: item for key, item in facts.items() if key not in ("span_kind", "meta")}
    found |= {"run_type": facts["span_kind"], "input": sent, "output": got, "model": get.text(facts, "model_name")}
    return found | {"start_time": get.some(facts, "start_ns", "start_ms", "start")}


def _said(value: Fields) -> Any:
    """The messages of a span's input or output, or its one value."""
    return value.get("messages") or value.get("value") or value or None


def _posthog(value: Fields) -> Fields | None:
    facts = get.obj(value, "properties")
    event = get.text(value, "event")
    if not event.startswith("$ai_") or "$ai_trace_id" not in facts:
        return None
    found = {key.removeprefix("$ai_"): item for key, item in facts.items() if key.startswith("$ai_")}
    kind = {"$ai_generation": "llm", "$ai_embedding": "embedding", "$ai_trace": "chain"}.get(event, get.text(found, "span_type") or "other")
    sent, got = get.some(found, "input", "input_state"), get.some(found, "output_choices", "output", "output_state")
    found |= {"run_type": kind, "id": get.text(found, "span_id", "generation_id") or get.text(value, "uuid"), "input": sent, "output": got}
    found["attributes"] = {key: item for key, item in found.items() if key in ("input_tokens", "output_tokens", "model", "session_id")}
    if cached := found.get("cache_read_input_tokens"):
        found["attributes"]["gen_ai.usage.cache_read_input_tokens"] = cached
    return found | {"name": get.text(found, "span_name") or event, "start_time": value.get("timestamp")}


def _sentry(value: Fields) -> Fields | None:
    operation = value.get("op")
    if not isinstance(operation, str) or not operation.startswith("gen_ai.") or not isinstance(value.get("data"), dict):
        return None
    facts = {"gen_ai.operation.name": operation.removeprefix("gen_ai."), **value["data"]}
    found = {key: item for key, item in value.items() if key != "data"}
    return found | {"attributes": facts, "name": get.text(value, "description"), "start_time": value.get("start_timestamp")}


def _langfuse_rows(value: Fields) -> Fields | None:
    """Observations as Langfuse's database exports them."""
    if "parent_observation_id" not in value or "trace_id" not in value:
        return None
    return {OBSERVATION.get(key, key): item for key, item in value.items()}


PRODUCTS: tuple[Callable[[Fields], Fields | None], ...] = (_honeyhive, _datadog, _posthog, _sentry, _langfuse_rows)
