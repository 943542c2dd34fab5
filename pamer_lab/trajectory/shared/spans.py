"""Telemetry in its many containers -> spans with flat attributes.

Knows OTLP JSON (collector files, Tempo), Jaeger, Zipkin, flat and nested lists, Phoenix tables, LangSmith runs, MLflow traces, Langfuse
observations, Mastra, OpenAI Agents and ATOF scopes; `span_dialects` knows what their attributes mean. Invariant: nothing here raises,
and a span is collected once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.span_attributes import attributes_of, first_id, flat, nanoseconds, plain_value
from pamer_lab.trajectory.shared.span_products import unified

MAX_DEPTH = 40
CHILDREN = ("child_spans", "children", "child_runs", "childSpans", "spans")
HOLDERS = tuple("data trace traces result runs observations otelSpans items post patch spans hits events".split())
"""Fields under which exports keep their spans or the objects that hold them."""
SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans", "ilSpans")
IDS = ("span_id", "spanId", "spanID", "span.id", "context.span_id", "uuid", "id")
PARENTS = ("parent_span_id", "parentSpanId", "parentSpanID", "parent_id", "parentId", "parent_run_id", "parentObservationId", "parent_uuid")
TRACES = ("trace_id", "traceId", "traceID", "context.trace_id", "root_span_id", "request_id")
STARTS = "start_time startTime startTimeUnixNano start_time_unix_nano start_time_ns timestamp started_at startedAt start".split()
STARTS += ["createdAt", "created"]
LANGFUSE = {"GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EMBEDDING", "GUARDRAIL", "EVALUATOR"}

FACTS = "model usage metrics usageDetails modelParameters extra tool_call_id costDetails totalCost config metadata".split()
"""Fields next to the attributes that describe a span."""
OPIK = {"llm", "tool", "general", "guardrail"}


@dataclass
class Span:
    """One span; `kind` is what its source calls it, which `span_facts` interprets."""

    where: str
    id: str
    parent: str
    trace: str
    name: str
    start: int
    """Nanoseconds since 1970; 0 where the source has no time."""
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failed: bool = False
    kind: str = ""
    input: Any = None
    output: Any = None


def collect(values: Iterator[tuple[str, Any]], others: list[str] | None = None) -> list[Span]:
    """Every span below these values, in file order; the halves of one (a start and an end) are merged.

    `others` receives the places of values, and of list items next to spans, that hold no span.
    """
    collector = _Collector()
    for where, value in values:
        before = collector.seen
        collector.walk(value, where, "", 0)
        if others is not None and collector.seen == before:
            others.append(where)
    if others is not None:
        others += collector.others
    return collector.found()


class _Collector:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.by_id: dict[tuple[str, str], Span] = {}
        self.logs: list[dict[str, Any]] = []
        self.seen = 0
        """Spans, halves of spans and log records so far."""
        self.others: list[str] = []
        """Places of items that hold no span, in lists where others do."""

    def found(self) -> list[Span]:
        """The spans, with the log records that name them as their events; a record whose span is unknown becomes a span itself."""
        for record in self.logs:
            key = (first_id(record, *TRACES), first_id(record, *IDS[:3]))
            span = self.by_id.get(key)
            if span is None:
                time = next((time for name in ("timeUnixNano", "timestamp", "time") if (time := nanoseconds(record.get(name)))), 0)
                span = Span(get.text(record, "eventName", "event_name"), key[1], "", key[0], "", time, {})
                self._keep(span)
            span.events += _events({"events": [record]})
        return self.spans

    def walk(self, value: Any, where: str, parent: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        if isinstance(value, list):
            self._walk_list(value, where, parent, depth)
            return
        if not isinstance(value, dict):
            return
        if isinstance(value.get("span"), dict):  # Mastra's tree: the span next to its children
            value = value["span"] | {"children": value.get("children") or []}
        span = read_span(value, where, parent)
        if span is not None:
            self.seen += 1
            self._keep(span)
            parent = span.id
        for key in CHILDREN if span is not None else ():
            if isinstance(value.get(key), list):
                self.walk(value[key], f"{where} {key}".strip(), parent, depth + 1)
        if span is None:
            self._open(value, where, parent, depth)

    def _walk_list(self, value: list[Any], where: str, parent: str, depth: int) -> None:
        start = self.seen
        without: list[str] = []
        for place, item in get.placed(value, where):
            before = self.seen
            if isinstance(item, dict | list):
                self.walk(item, place, parent, depth + 1)
            if self.seen == before:
                without.append(place)
        self.others += without if self.seen > start else []

    def _open(self, value: dict[str, Any], where: str, parent: str, depth: int) -> None:
        for key in ("resourceSpans", "resource_spans", "batches", *SCOPES):
            if isinstance(value.get(key), list):
                self.walk(value[key], f"{where} {key}".strip(), parent, depth + 1)
        for key in HOLDERS:
            if isinstance(value.get(key), dict | list):
                self.walk(value[key], f"{where} {key}".strip(), parent, depth + 1)
        for record in _log_records(value):
            self.logs.append(record)
            self.seen += 1
        source = value.get("_source") or value.get("span_data_json")
        if isinstance(source, dict):
            self.walk(source, where, parent, depth + 1)

    def _keep(self, span: Span) -> None:
        known = self.by_id.get((span.trace, span.id)) if span.id else None
        if known is None:
            self.spans.append(span)
            if span.id:
                self.by_id[span.trace, span.id] = span
            return
        known.attributes |= {key: value for key, value in span.attributes.items() if value not in (None, "", {}, [])}
        known.events += [event for event in span.events if event not in known.events]
        known.input = known.input if span.input is None else span.input
        known.output = known.output if span.output is None else span.output
        known.failed = known.failed or span.failed
        known.kind = known.kind or span.kind
        known.start = known.start or span.start


def read_span(value: dict[str, Any], where: str, parent: str = "") -> Span | None:
    """An object as a span; None if it is not one."""
    if "uuid" in value and (value.get("kind") in ("scope", "mark", "ScopeStart", "ScopeEnd", "Mark")):
        return _scope(value, where, parent)
    value = unified(value)
    if isinstance(value.get("span_data"), dict):
        return _agents_sdk(value, where)
    if isinstance(value.get("body"), dict) and not ({"name", "startTimeUnixNano", "start_time"} & value.keys()):
        return None  # a log record
    attributes = attributes_of(value)
    ran = isinstance(value.get("run_type"), str) or "dotted_order" in value
    observed = isinstance(value.get("type"), str) and (
        (value["type"] in LANGFUSE and ("startTime" in value or "traceId" in value))
        or (value["type"] in OPIK and "trace_id" in value and "input" in value and "role" not in value)
    )
    own = _is_mastra(value)
    if attributes is None and not (ran or observed or own):
        return None
    context = get.obj(value, "context", "spanContext", "span_context")
    id = first_id(value, *IDS) or first_id(context, *IDS)
    if ran:
        id = id or get.text(value, "dotted_order").rpartition("Z")[2]
    elif attributes is not None and not (observed or own) and not _is_span(value, context, id):
        return None
    kind = get.text(value, "run_type", "spanType", "span_type") or (get.text(value, "type") if observed or own else "")
    status = get.obj(value, "status")
    code = get.text(status, "code", "status_code") or get.text(value, "status_code", "status", "level", "statusCode")
    found = Span(
        where,
        id,
        first_id(value, *PARENTS) or _reference(value) or _parent_context(value) or parent,
        first_id(value, *TRACES) or first_id(context, *TRACES),
        get.text(value, "name", "operationName", "span_name", "spanName") or get.text(attributes, "name"),
        next((time for key in STARTS if (time := nanoseconds(value.get(key)))), 0) or nanoseconds(get.obj(value, "metrics").get("start")),
        attributes or {},
        _events(value),
        code.upper() in ("ERROR", "STATUS_CODE_ERROR", "2") or bool(value.get("error")) or bool(value.get("errorInfo")),
        kind or get.text(value, "span_kind", "kind").upper().rpartition(".")[2],
    )
    if ran or observed or own or "input" in value or "inputs" in value:
        found.input, found.output = (value.get(key) if key in value else value.get(f"{key}s") for key in ("input", "output"))
        if ran and found.kind in ("", "CLIENT"):
            found.kind = ""
    for key in FACTS:
        if value.get(key) is not None and key not in found.attributes:
            found.attributes[key] = value[key]
    return found


def _is_span(value: dict[str, Any], context: dict[str, Any], id: str) -> bool:
    """Attributes and an id could be anything: a span also names its trace, its parent or a time."""
    if not id and not {"startTime", "start_time"} & value.keys():
        return False
    return bool(
        first_id(value, *TRACES) or first_id(context, *TRACES) or any(key in value for key in (*PARENTS[:4], *STARTS[:5], "references"))
    )


def _log_records(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Log records that belong to spans: OpenTelemetry's GenAI events where they are not on the span itself."""
    found = [record for scope in _scopes(value) for record in get.objects(scope, "logRecords", "log_records")]
    if not found and isinstance(value.get("body"), dict) and first_id(value, *IDS[:3]) and first_id(value, *TRACES):
        found = [value]
    return found


def _scopes(value: dict[str, Any]) -> list[dict[str, Any]]:
    resources = get.objects(value, "resourceLogs", "resource_logs")
    return [scope for resource in resources for scope in get.objects(resource, "scopeLogs", "scope_logs")]


MASTRA = "agent_run model_generation model_step model_inference model_chunk llm_generation llm_chunk tool_call mcp_tool_call".split()
MASTRA += "workflow_run workflow_step generic processor_run client_tool_call".split()


def _is_mastra(value: dict[str, Any]) -> bool:
    kind = value.get("spanType", value.get("type"))
    return isinstance(kind, str) and kind in MASTRA and ("traceId" in value or "spanId" in value)


def _scope(value: dict[str, Any], where: str, parent: str) -> Span:
    """One half of an ATOF scope: the start has the input, the end the output."""
    profile = get.obj(value, "category_profile") | get.facts(value, "tool_call_id", "model_name")
    span = Span(
        where,
        get.text(value, "uuid"),
        first_id(value, "parent_uuid") or parent,
        get.text(value, "trace_id"),
        get.text(value, "name"),
        nanoseconds(value.get("timestamp")),
        {f"atof.{key}": found for key, found in profile.items() if found},
        kind=get.text(value, "category", "scope_type") if str(value["kind"]).lower().startswith("scope") else "mark",
    )
    if value.get("scope_category") == "end" or value["kind"] == "ScopeEnd":
        span.output = value.get("data", value.get("output"))
        span.failed = bool(get.obj(value, "data").get("error")) or get.text(value, "status") == "error"
    else:
        span.input = value.get("data", value.get("input"))
    return span


def _agents_sdk(value: dict[str, Any], where: str) -> Span:
    """A span of OpenAI's Agents SDK: its facts are in `span_data`."""
    data = get.obj(value, "span_data")
    span = Span(
        where,
        first_id(value, "id", "span_id"),
        first_id(value, "parent_id"),
        first_id(value, "trace_id"),
        get.text(data, "name") or get.text(data, "type"),
        nanoseconds(value.get("started_at")),
        {key: found for key, found in data.items() if key not in ("input", "output", "type")},
        failed=bool(value.get("error")),
        kind=get.text(data, "type"),
        input=data.get("input"),
        output=data.get("output") if data.get("output") is not None else data.get("response"),
    )
    return span


def _events(value: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for event in [*get.objects(value, "events", "span_events", "Events"), *get.objects(value, "logs")]:
        if isinstance(event.get("fields"), list):  # Jaeger
            facts = {get.text(item, "key"): item.get("value") for item in get.objects(event, "fields")}
            name = get.as_text(facts.pop("event", None)) or get.as_text(facts.get("name"))
        else:
            facts, name = attributes_of(event) or {}, get.text(event, "name", "event_name", "eventName", "event.name")
            body = plain_value(event.get("body"))
            facts |= flat(body) | body if isinstance(body, dict) else {}
        found.append((name or get.as_text(facts.get("event.name")), facts))
    return found


def _reference(value: dict[str, Any]) -> str:
    """Jaeger's parent."""
    return next((get.text(item, "spanID") for item in get.objects(value, "references") if item.get("refType") == "CHILD_OF"), "")


def _parent_context(value: dict[str, Any]) -> str:
    if isinstance(parents := value.get("span_parents"), list) and parents:  # Braintrust
        return get.as_text(parents[0])
    return first_id(get.obj(value, "parentSpanContext", "parent"), *IDS)
