"""Telemetry spans of model calls, tools and agents: OTLP JSON, Tempo, Jaeger, Zipkin, lists and tables; OpenTelemetry GenAI (old and new),
OpenInference and Phoenix, OpenLLMetry, Vercel AI SDK, ADK, Logfire, LangSmith, MLflow, Langfuse, Mastra, OpenAI Agents, HoneyHive, ATOF.

Model calls that continue each other are one trace, with the usage of each; a tool's span supplies its result if no later prompt does.
An agent started by another gets a separate trace, and the one that started it a `subagent` event.
"""

from collections.abc import Iterator
from itertools import chain, islice

from pamer_lab.errors import FormatError, NotThisFormat
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.growing import Conversation, ModelCall, conversations
from pamer_lab.trajectory.shared.rows import attempt, episodes
from pamer_lab.trajectory.shared.span_dialects import exchanged
from pamer_lab.trajectory.shared.span_facts import kind_of
from pamer_lab.trajectory.shared.span_tree import Tree
from pamer_lab.trajectory.shared.spans import collect
from pamer_lab.trajectory.shared.steps import Mark

NAME = "telemetry-spans"
ROOTS = ("resourceSpans", "resource_spans", "batches", "scopeSpans", "scope_spans")


def detect(document: Document) -> bool:
    """Whether the document is an OpenTelemetry container, or has spans of a kind that we read."""
    if document.kind not in ("json", "jsonl"):
        return False
    head = [value for _, value in islice(episodes(document), 60)]
    if any(isinstance(value, dict) and (set(ROOTS) & value.keys() or set(ROOTS) & get.obj(value, "trace").keys()) for value in head):
        return True
    if not any(isinstance(value, dict | list) for value in head):
        return False
    spans = collect(chain(("", value) for value in head))
    return any(kind_of(span) in ("llm", "tool") or (kind_of(span) == "agent" and exchanged(span)) for span in spans)


def read(document: Document) -> Iterator[Draft]:
    others: list[str] = []
    spans = collect(episodes(document), others)
    tree = Tree(spans)
    calls = tree.calls()
    if not calls:
        if any(kind_of(span) == "llm" for span in spans):
            reason = (
                "its spans hold no prompts or answers; record them with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true or the like"
            )
            raise FormatError(reason)
        raise NotThisFormat(f"none of its {len(spans)} spans is a model call")
    found = conversations(calls)
    of_trace: dict[str, list[list[ModelCall]]] = {}
    for conversation in found:
        of_trace.setdefault(tree.of_call[id(conversation[0])].trace, []).append(conversation)
    drafts = []
    for conversation in found:
        beside = of_trace[tree.of_call[id(conversation[0])].trace]
        drafts.append(attempt(NAME, conversation[0].where, _read_one, tree, conversation, beside))
    for number, draft in enumerate(drafts if len(drafts) > 1 else ()):
        draft.meta["conversation"] = f"{number + 1} of {len(drafts)}"
    tree.report(drafts[0])
    if others:
        drafts[0].unread("record without a span", others[0], len(others))
    yield from drafts


def _read_one(tree: Tree, calls: list[ModelCall], others: list[list[ModelCall]]) -> Draft:
    draft = Draft(NAME, where=calls[0].where, orphans="as_user")
    spans = [tree.of_call[id(call)] for call in calls]
    draft.meta = {"trace": spans[0].trace, "agent": tree.agent_name(spans[0]), "session": tree.session(spans[0])}
    draft.task_id = get.as_text(draft.meta["session"]) or spans[0].trace
    conversation = Conversation(draft, calls)
    tree.add_tools(conversation)
    for other in others:
        if other is not calls and (place := tree.started_by(other[0], calls)) is not None:
            child = tree.of_call[id(other[0])]
            facts = {"agent": tree.agent_name(child), "trace": child.trace, "span": child.id, "calls": len(other)}
            turn = conversation.turns[place][1] if place < len(conversation.turns) else None
            index = next((number + 1 for number, step in enumerate(conversation.steps) if step is turn), len(conversation.steps))
            conversation.steps.insert(index, Mark("subagent", "", facts))
    return conversation.write()
