"""GitHub Copilot sessions as events: the CLI's `events.jsonl` and the event stream of VS Code's agent.

One event per line, `{type, data, id, parentId}`. A result repeats nothing of its call, so calls come from `toolRequests`; a
tool that the user started has its start line only. Events of a side agent name the call that started it (`parentToolCallId`): where that
call is in the file they become one `subagent` event, else they are turns like any other. Truncations and compactions are events.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.messages import add_messages
from pamer_lab.trajectory.shared.parts import read_content
from pamer_lab.trajectory.shared.rows import Row, head, one_value, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, Turn, keep_none
from pamer_lab.trajectory.shared.usage import add_usage, read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of

NAME = "copilot-events"
SPEAKS = ("user.message", "assistant.message")
SILENT = frozenset("assistant.turn_start assistant.turn_end assistant.intent session.idle tool.execution_progress hook.end".split())
"""Events that only say that something began, goes on or ended."""
BESIDE = ("toolCallId", "parentToolCallId", "interactionId", "turnId", "model", "toolTelemetry", "rte", "isUserRequested")


def detect(document: Document) -> bool:
    return any(row.get("type") in SPEAKS and isinstance(row.get("data"), dict) for row in head(document)) or bool(_old_session(document))


def _old_session(document: Document) -> list[Any]:
    """The messages of a session file of earlier versions; its `timeline` repeats them for the interface."""
    root = one_value(document)
    return get.items(root, "chatMessages") if isinstance(root, dict) and "timeline" in root else []


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    if found := _old_session(document):
        add_messages(draft, found, place="chatMessages")
        draft.meta["session"] = get.text(document.root, "sessionId")
        draft.model = get.text(document.root, "selectedModel", "model")
        yield draft
        return
    warn_strays(draft, document)
    found = rows(document)
    reader = _Reader(draft, found)
    for where, row in found:
        reader.add(where, get.text(row, "type"), get.obj(row, "data"))
        reader.log.stamp(row.get("timestamp"))
    yield reader.finish()


class _Reader:
    def __init__(self, draft: Draft, found: list[Row]) -> None:
        self.draft = draft
        self.log = Log(draft)
        self.thoughts: list[str] = []
        """Reasoning that came before its message."""
        self.chunks: dict[str, Turn] = {}
        said = (get.objects(get.obj(row, "data"), "toolRequests") for _, row in found if row.get("type") == "assistant.message")
        self.requested = {call_of(item).id for items in said for item in items}

    def add(self, where: str, kind: str, data: dict[str, Any]) -> None:
        parent = get.text(data, "parentToolCallId")
        if parent in self.log.asked and parent != get.text(data, "toolCallId"):
            self._side(parent, kind, data)
            return
        match kind:
            case "system.message":
                self.log.say("system", data.get("content"), where)
            case "user.message":
                self._user(data, where)
            case "assistant.message":
                self._assistant(data, where)
            case "assistant.reasoning":
                self.thoughts.append(get.text(data, "content"))
            case "assistant.usage":
                if self.log.last:
                    self.log.last.usage = usage_in(
                        data, sent="inputTokens", given="outputTokens", cached="cacheReadTokens", cost=data.get("cost")
                    )
            case "tool.execution_start" | "tool.user_requested":
                if get.text(data, "toolCallId") not in self.requested | self.log.asked:
                    self.log.call(call_of(data), where)
            case "tool.execution_complete":
                self._result(data, where)
            case _:
                self._session(where, kind, data)

    def _user(self, data: dict[str, Any], where: str) -> None:
        """What the model was sent, which may hold reminders around the user's own words."""
        said, sent = get.text(data, "content"), get.text(data, "transformedContent")
        self.log.say("user", sent if said in sent else said, where)
        if sent and said not in sent:
            self.log.mark("note", sent, event="transformed prompt")
        if attached := get.items(data, "attachments"):
            self.log.mark("note", json_text(attached), event="attachments")

    def _assistant(self, data: dict[str, Any], where: str) -> None:
        chunk = get.text(data, "messageId") if (get.count(data, "chunkCount") or 0) > 1 else ""
        if chunk and chunk in self.chunks:
            self.log.turn = self.chunks[chunk]
        else:
            self.log.close()
        turn = self.log.agent(data.get("content") or None, where, thinking=get.text(data, "reasoningText"))
        if chunk:
            self.chunks[chunk] = turn
        turn.thinking += [thought for thought in self.thoughts if thought and thought not in turn.thinking]
        self.thoughts = []
        for call in read_calls(data.get("toolRequests")):
            self.log.call(call, where)
        turn.usage = usage_in(data, sent="inputTokens", given="outputTokens") or turn.usage
        self.draft.model = self.draft.model or get.text(data, "model")

    def _result(self, data: dict[str, Any], where: str) -> None:
        result, fault = data.get("result"), data.get("error")
        output = get.some(result, "content", "textResultForLlm", "contents", "detailedContent") if isinstance(result, dict) else result
        if output is None and fault is not None:
            output = get.some(fault, "message") if isinstance(fault, dict) else fault
        rest = {key: value for key, value in data.items() if key not in BESIDE and value is not None}
        failed = data.get("success") is False
        self.log.answer(get.text(data, "toolCallId"), output, where, failed=failed, name=get.text(data, "toolName"), rest=rest)

    def _side(self, parent: str, kind: str, data: dict[str, Any]) -> None:
        result = get.obj(data, "result")
        given = data.get("content") if isinstance(data.get("content"), str) else get.text(result, "content", "detailedContent")
        asked = [f"{call.name} {call.arguments}" for call in read_calls(data.get("toolRequests"))]
        self.log.side(parent, get.text(data, "reasoningText"), read_content(given).text if given else "", *asked, call=parent)

    def _session(self, where: str, kind: str, data: dict[str, Any]) -> None:
        text = get.text(data, "message", "content", "reason", "summary", "warning")
        match kind:
            case "session.start" | "session.resume":
                self.draft.model = self.draft.model or get.text(data, "selectedModel")
                for key, name in (("sessionId", "session"), ("copilotVersion", "version"), ("producer", "producer")):
                    self.draft.meta[name] = self.draft.meta.get(name) or data.get(key)
                self.draft.meta.setdefault("cwd", get.text(get.obj(data, "context"), "cwd"))
            case "session.model_change":
                self.draft.model = get.text(data, "newModel") or self.draft.model
            case "session.truncation":
                before, after = (get.count(data, f"{name}TruncationTokensInMessages") for name in ("pre", "post"))
                removed = data.get("messagesRemovedDuringTruncation")
                self.log.mark("context_edit", "", tokens_before=before, tokens_after=after, messages_removed=removed)
            case "session.compaction_complete":
                before, after = (get.count(data, f"{name}CompactionTokens") for name in ("pre", "post"))
                summary = get.text(data, "summaryContent", "summary")
                self.log.close()
                facts = {"tokens_before": before, "tokens_after": after}
                self.log.steps.append(Mark("compaction", summary, facts, keep_none if summary else None, None))
            case "session.shutdown":
                counts = {name: get.count(item, "tokenCount") for name, item in get.obj(data, "tokenDetails").items()}
                self.draft.usage = usage_in(counts, sent="input", given="output", cached="cache_read")
                for item in get.obj(data, "modelMetrics").values() if self.draft.usage is None else ():
                    self.draft.usage = add_usage(self.draft.usage, read_usage(get.obj(item, "usage")))
            case "subagent.started" | "subagent.selected" | "subagent.completed" | "subagent.failed":
                self.log.mark("subagent", text, event=kind, **get.facts(data, "agentName", "toolCallId", "error"))
            case "skill.invoked":
                self.log.mark("note", text, event=kind, skill=data.get("name"))
            case _ if text:
                self.log.mark("note", text, event=kind)
            case _ if kind not in SILENT:
                self.draft.unread(kind or "no type", where)

    def finish(self) -> Draft:
        if self.thoughts and self.log.last:
            self.log.last.thinking += self.thoughts
        return self.log.finish()
