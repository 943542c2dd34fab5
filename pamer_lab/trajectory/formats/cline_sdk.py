"""Cline SDK sessions: `{version, agent, sessionId, messages, system_prompt}` with metrics for each answer; also `cline --json`.

A summary that replaced older messages is marked in its `metadata`: it becomes a compaction event and stays a user message. The stream
reports each piece of a text, a thought or a tool's output, then the complete one (`content_end`); only the complete one is read.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import Content, output_content
from pamer_lab.trajectory.shared.rows import head, one_value, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark
from pamer_lab.trajectory.shared.usage import priced, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of, result_of, role_of

NAME = "cline-sdk-session"
STREAM = "agent_event"
QUIET = frozenset("hook_event content_update iteration_start notice".split())
"""Events of the stream that say nothing, or repeat it piece by piece."""
USAGE = {"sent": "inputTokens", "given": "outputTokens", "cached": "cacheReadTokens"}


def detect(document: Document) -> bool:
    if any(row.get("type") == STREAM and "type" in get.obj(row, "event") for row in head(document)):
        return True
    root = one_value(document)
    if not isinstance(root, dict) or not {"sessionId", "agent", "messages"} <= root.keys():
        return False
    return "version" in root and any("content" in item for item in get.objects(root, "messages"))


def read(document: Document) -> Iterator[Draft]:
    if not isinstance(one_value(document), dict):
        yield _read_stream(document)
        return
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    log = Log(draft)
    if system := get.text(root, "system_prompt", "systemPrompt"):
        log.say("system", system, "system_prompt")
    for where, item in get.placed(root["messages"], "messages"):
        draft.expect(item, where, "a message")
        facts = get.obj(item, "metadata")
        if role_of(item.get("role")) == "assistant":
            log.close()
            turn = log.agent(item.get("content"), where)
            metrics = get.obj(item, "metrics")
            usage = usage_in(metrics, **USAGE)
            turn.usage = priced(usage, metrics.get("cost"))
            draft.model = draft.model or get.text(get.obj(item, "modelInfo"), "id")
            log.stamp(item.get("ts"))
            continue
        if facts.get("kind") == "compaction_summary":
            log.close()
            log.steps.append(Mark("compaction", "", {"tokens_before": get.count(facts, "tokensBefore"), "details": facts.get("details")}))
        log.say("system" if role_of(item.get("role")) == "system" else "user", item.get("content"), where)
        log.stamp(item.get("ts"))
    draft.meta |= {"session": root.get("sessionId"), "agent": root.get("agent"), "version": root.get("version")}
    yield log.finish()


def _read_stream(document: Document) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    for where, row in rows(document):
        if row.get("type") == "run_result":
            draft.usage = priced(usage_in(row.get("usage"), **USAGE), get.obj(row, "usage").get("totalCost"))
            draft.model = get.text(get.obj(row, "model"), "id")
            draft.meta |= get.facts(row, "finishReason", "iterations", "durationMs")
        elif row.get("type") == STREAM:
            _event(log, get.obj(row, "event"), where)
        else:
            draft.passed(get.text(row, "type"), where, QUIET)
        log.stamp(row.get("ts"))
    return log.finish()


def _event(log: Log, event: dict[str, Any], where: str) -> None:
    match event.get("type"), event.get("contentType"):
        case "content_end", "text":
            log.agent(get.text(event, "text"), where)
        case "content_end", "reasoning":
            log.open(where).thinking.append(get.text(event, "reasoning"))
        case "content_start", "tool":
            log.call(call_of(event), where)
        case "content_end", "tool":
            own, output, failed = result_of(event)
            log.results(Content(results=[(own, output_content(log.draft, output, where), failed)]), where)
        case "usage", _ if log.last:
            log.last.usage = usage_in(event, **USAGE)
        case (("iteration_end" | "done"), _):
            log.close()
        case "error", _:
            log.mark("note", get.text(event, "message") or json_text(event.get("error")), event="error")
        case "content_start", ("text" | "reasoning"):
            log.open(where)
        case kind, _:
            log.draft.passed(str(kind), where, QUIET)
