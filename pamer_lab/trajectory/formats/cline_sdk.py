"""Cline SDK sessions: `{version, agent, sessionId, messages, system_prompt}` with metrics beside each answer.

A summary that replaced older messages is marked in its `metadata`: it is a compaction event and the user message it became.
"""

from collections.abc import Iterator

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Mark
from pamer_lab.trajectory.shared.usage import priced, usage_in
from pamer_lab.trajectory.shared.vocabulary import role_of

NAME = "cline-sdk-session"


def detect(document: Document) -> bool:
    root = one_value(document)
    if not isinstance(root, dict) or not {"sessionId", "agent", "messages"} <= root.keys():
        return False
    return "version" in root and any("content" in item for item in get.objects(root, "messages"))


def read(document: Document) -> Iterator[Draft]:
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
            usage = usage_in(metrics, sent="inputTokens", given="outputTokens", cached="cacheReadTokens")
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
