"""Spans as a tree -> the model calls of each agent, the tools that ran between them, and which agent started which.

Knows what spans record, through the dialects; knows no file. Invariant: a tool's span gives one result at most.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pamer_lab.counts import counted
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.growing import Conversation, ModelCall
from pamer_lab.trajectory.shared.parts import output_content
from pamer_lab.trajectory.shared.span_dialects import Exchanged, exchanged
from pamer_lab.trajectory.shared.span_facts import ToolUse, kind_of, model_of, tool_use, usage_of
from pamer_lab.trajectory.shared.spans import Span
from pamer_lab.trajectory.shared.steps import Result, Said, Turn
from pamer_lab.trajectory.shared.vocabulary import output_of
from pamer_lab.trajectory.values import ToolCall


class Tree:
    """Spans by id, with what each records."""

    def __init__(self, spans: list[Span]) -> None:
        order = sorted(range(len(spans)), key=lambda number: (spans[number].start, number))
        self.spans = [spans[number] for number in order] if all(span.start for span in spans) else spans
        self.by_id = {span.id: span for span in self.spans if span.id}
        self.kinds = {id(span): kind_of(span) for span in self.spans}
        self.of_call: dict[int, Span] = {}
        self.used: set[int] = set()
        self._tools_in: dict[tuple[str, str], list[Span]] = {}
        """Tool spans by trace and agent."""
        for span in self.spans:
            if self.kinds[id(span)] == "tool":
                own = self.agent(span)
                self._tools_in.setdefault((span.trace, own.id if own else ""), []).append(span)
        self.first_of: dict[str, Span] = {}
        """The span of each trace's first model call, whose agent is taken for the main one."""

    def above(self, span: Span) -> Iterator[Span]:
        """The spans around this one, the nearest first."""
        seen = {span.id}
        while (parent := self.by_id.get(span.parent)) is not None and parent.id not in seen:
            seen.add(parent.id)
            yield parent
            span = parent

    def agent(self, span: Span) -> Span | None:
        """The agent (or else the outermost span) in which this one ran."""
        last = None
        for parent in self.above(span):
            last = parent
            if self.kinds[id(parent)] == "agent" and (self._names_agent(parent) or parent.kind.lower() == "agent"):
                return parent
        return last

    def _names_agent(self, span: Span) -> bool:
        facts = span.attributes
        words = [facts.get("gen_ai.operation.name"), facts.get("openinference.span.kind"), facts.get("traceloop.span.kind"), span.kind]
        named = {get.as_text(word).lower() for word in words}
        return (
            bool({"invoke_agent", "agent", "agent_run"} & named)
            or "ai.operationId" in facts
            or '"AGENT"' in get.text(facts, "mlflow.spanType")
        )

    def agent_name(self, span: Span) -> str:
        agent = self.agent(span)
        own = get.text(span.attributes, "gen_ai.agent.name", "agent.name")
        return own or (get.text(agent.attributes, "gen_ai.agent.name", "agent.name") or agent.name if agent else "")

    def session(self, span: Span) -> str:
        keys = ("gen_ai.conversation.id", "session.id", "gcp.vertex.agent.session_id", "conversationId", "mlflow.traceSession", "sessionId")
        return next((found for one in (span, *self.above(span)) if (found := get.text(one.attributes, *keys))), "")

    def calls(self) -> list[ModelCall]:
        """The model calls with content; of spans that record the same call, the innermost."""
        content = {id(span): exchanged(span) for span in self.spans if self.kinds[id(span)] == "llm"}
        for span in self.spans:
            if content.get(id(span)) is None:
                continue
            for parent in self.above(span):
                if self.kinds[id(parent)] in ("tool", "agent") and "ai.operationId" not in parent.attributes:
                    break
                if content.get(id(parent)) is not None:
                    self._lend(span, content[id(span)], content[id(parent)])
                    content[id(parent)] = None
        chosen = [span for span in self.spans if content.get(id(span)) is not None]
        if not chosen:
            agents = [span for span in self.spans if self.kinds[id(span)] == "agent"]
            content = {id(span): exchanged(span) for span in agents}
            inner = {id(parent) for span in agents if content[id(span)] for parent in self.above(span)}
            chosen = [span for span in agents if (found := content[id(span)]) and id(span) not in inner and _said_something(found)]
        for span in chosen:
            self.first_of.setdefault(span.trace, span)
        return [self._call(span, found) for span in chosen if (found := content[id(span)]) is not None]

    def _lend(self, span: Span, own: Exchanged | None, outer: Exchanged | None) -> None:
        """Give a step that records only its answer the prompt and the tools of the span around it."""
        if own is not None and outer is not None:
            own.prompt.extend([] if own.prompt else outer.prompt)
            own.tools.extend([] if own.tools else outer.tools)

    def _call(self, span: Span, found: Exchanged) -> ModelCall:
        agent = self.agent(span)
        prompt = [item for item in found.prompt if not _is_stand_in(item)]
        call = ModelCall(
            span.name or span.where,
            prompt,
            found.answers,
            found.tools,
            model_of(span) or next(filter(None, (model_of(one) for one in self.above(span) if self.kinds[id(one)] == "llm")), ""),
            usage_of(span),
            group=(agent.id if agent else "") or span.trace,
            id=get.text(span.output, "id"),
            start=span.start,
            several=self.kinds[id(span)] == "agent",
        )
        self.of_call[id(call)] = span
        return call

    def started_by(self, call: ModelCall, calls: list[ModelCall]) -> int | None:
        """Index of the newest of these calls when another agent's call began inside the same agent; None if it did not."""
        inner = self.of_call[id(call)]
        around = {parent.id for parent in self.above(inner)}
        outer = {agent.id for one in calls if (agent := self.agent(self.of_call[id(one)])) is not None}
        own = self.agent(inner)
        first = self.of_call[id(calls[0])]
        beside = inner.trace == first.trace and first is self.first_of.get(first.trace) and own is not None and not around & outer
        if own is None or own.id in outer or not (around & outer or beside):
            return None
        return max((number for number, one in enumerate(calls) if one.start <= call.start), default=0)

    def add_tools(self, conversation: Conversation) -> None:
        """Add results that only a tool's own span holds, and calls that the model made in code."""
        steps = conversation.steps
        for number, (call, turn) in enumerate(conversation.turns):
            start = next((place for place, step in enumerate(steps) if step is turn), len(steps))
            end = next((place for place in range(start + 1, len(steps)) if isinstance(steps[place], Turn)), len(steps))
            answered = {step.call_id for step in steps[start + 1 : end] if isinstance(step, Result)}
            later = {step.call_id for step in steps[end:] if isinstance(step, Result)}
            unnamed = sum(isinstance(step, Result) and not step.call_id for step in steps[start + 1 : end])
            after = conversation.turns[number + 1][0] if number + 1 < len(conversation.turns) else None
            until = after.start if after is not None and after is not call else None
            ran = [span for span in self._tools(call, until) if id(span) not in self.used]
            if turn.calls:
                waiting = [one for one in turn.calls if one.id not in answered | later or not one.id][unnamed:]
                spans = {one.id: self._match(one, ran) for one in turn.calls}  # also those whose result the next prompt holds
                results = [(one, spans[one.id]) for one in waiting]
                steps[start + 1 : start + 1] = [
                    _result(conversation.draft, one.id, tool_use(span), span) for one, span in results if span is not None
                ]
            elif call.several and ran and not any(one.calls for _, one in conversation.turns):
                steps[start:start] = self._calls_before(conversation.draft, ran)
            elif not call.several:
                self._calls_in_code(conversation.draft, turn, steps, start, end, ran)

    def _match(self, call: ToolCall, ran: list[Span]) -> Span | None:
        uses = [(tool_use(span), span) for span in ran if id(span) not in self.used]
        by_id = [span for use, span in uses if use.id and use.id == call.id]
        by_name = [span for use, span in uses if (not use.id or not call.id) and use.name == call.name]
        found = next(iter(by_id or by_name), None)
        if found is not None:
            self.used.add(id(found))
        return found

    def _calls_before(self, draft: Draft, ran: list[Span]) -> list[Any]:
        """The calls of an agent whose model calls were not recorded, from its tools' spans: a turn for each, before its answer."""
        draft.warn(
            ran[0].where, f"its model calls were not recorded; {counted(len(ran), 'call comes', 'calls come')} from the tools' spans"
        )
        steps: list[Any] = []
        for span in ran:
            call, result = self._ran(draft, span)
            steps += [Turn(span.where, calls=[call]), result]
        return steps

    def _ran(self, draft: Draft, span: Span) -> tuple[ToolCall, Result]:
        """The call and the result that a tool's span records."""
        self.used.add(id(span))
        use = tool_use(span)
        own = use.id or span.id
        return ToolCall(own, use.name, json_text(_arguments(use.arguments))), _result(draft, own, use, span)

    def _calls_in_code(self, draft: Draft, turn: Turn, steps: list[Any], start: int, end: int, ran: list[Span]) -> None:
        """Add tools that ran between two turns although the model called none: it wrote code, and saw only its observation."""
        outermost = [span for span in ran if not any(parent in ran for parent in self.above(span))]
        seen = [place for place in range(start + 1, end) if isinstance(steps[place], Result) and not steps[place].call_id]
        results: list[Result] = []
        for span in outermost:
            call, result = self._ran(draft, span)
            turn.calls.append(call)
            results.append(result)
        if len(seen) == 1 and len(results) == 1:
            observed = steps[seen[0]]
            results = [Result(results[0].call_id, observed.text, observed.where, observed.images, results[0].error, results[0].name)]
            del steps[seen[0]]
        elif results:
            for place in seen:
                steps[place] = Said("user", steps[place].text, steps[place].images, "observation")
        steps[start + 1 : start + 1] = results

    def _tools(self, call: ModelCall, until: int | None) -> list[Span]:
        """Tool spans of the same agent that began after a call and not after the next one; some clocks have only whole seconds."""
        span = self.of_call[id(call)]
        agent = span if call.several else self.agent(span)
        ran = self._tools_in.get((span.trace, agent.id if agent else ""), [])
        return [tool for tool in ran if not call.start or (tool.start >= call.start and (until is None or tool.start <= until))]

    def report(self, draft: Draft) -> None:
        """Report spans that are in no trace: those with content as unread, plumbing as a count."""
        plumbing: Counter[str] = Counter()
        for span in self.spans:
            kind = self.kinds[id(span)]
            if kind == "other" or (kind == "tool" and id(span) not in self.used):
                draft.unread(f"{span.name or 'span'} span", span.where)
            elif not kind:
                plumbing[span.name] += 1
        draft.meta["other_spans"] = dict(plumbing.most_common(20))


def _said_something(found: Exchanged) -> bool:
    return bool(found.answers) or any(get.text(item, "role").lower() in ("assistant", "ai", "model") for item in found.prompt)


def _is_stand_in(item: dict[str, Any]) -> bool:
    """Mastra writes `[tool-result: name]` where its steps had a result; the tool's own span holds it."""
    content = item.get("content")
    return item.get("role") == "tool" and isinstance(content, str) and content.startswith("[tool-result:") and content.endswith("]")


def _arguments(value: Any) -> Any:
    """The arguments of a tool's span, without the wrapper of a Python call."""
    if isinstance(value, dict) and {"args", "kwargs"} <= value.keys():
        return value["kwargs"] if not value["args"] else {"args": value["args"], **get.obj(value, "kwargs")}
    return value


def _result(draft: Draft, call_id: str, use: ToolUse, span: Span) -> Result:
    value = use.output
    if (
        isinstance(value, dict)
        and (inner := get.obj(value, "kwargs") or get.obj(get.obj(value, "output"), "kwargs"))
        and "content" in inner
    ):
        value = inner["content"]  # LangChain's tool message
    elif isinstance(value, dict) and "content" in value and (value.get("type") == "tool" or "tool_call_id" in value):
        value = value["content"]
    elif isinstance(value, dict) and value.keys() == {"output"}:
        value = parsed(value["output"])
    value, failed = output_of(value)
    error = next((get.text(facts, "exception.message") for name, facts in span.events if name == "exception"), "")
    error = error or get.text(span.attributes, "error.type", "error.message")
    if value is None:
        value = error if span.failed else ""
    content = output_content(draft, value, span.where)
    return Result(call_id, content.text, span.name or span.where, content.images, failed or span.failed, use.name)
