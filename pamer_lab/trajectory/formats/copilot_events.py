"""GitHub Copilot sessions as events: the CLI's `events.jsonl` and the event stream of VS Code's agent.

One event per line, `{type, data, id, parentId}`. Calls come from `toolRequests`, because results do not repeat them, or from the start line
for a tool that the user ran. Events of a side agent name the call that started it (`parentToolCallId`): if that call is in the file, they
become one `subagent` event, otherwise ordinary turns. Truncations and compactions are events.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.messages import add_messages
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import Row, head, one_value, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, Turn, keep_none
from pamer_lab.trajectory.shared.usage import add_usage, read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of
from pamer_lab.trajectory.values import Usage

NAME = "copilot-events"
SPEAKS = ("user.message", "assistant.message")
SILENT = frozenset("assistant.turn_start assistant.turn_end assistant.intent session.idle tool.execution_progress hook.end".split())
"""Events that only say that something began, continues or ended."""
BOOKKEEPING = frozenset(
    "assistant.idle assistant.message_start assistant.tool_call_delta assistant.streaming_delta assistant.server_tool_progress result "
    "tool.shell_output tool.execution_partial_result tool_search.activated capabilities.changed pending_messages.modified "
    "session.background_tasks_changed session.tools_updated session.skills_loaded session.custom_agents_updated session.usage_info "
    "session.usage_checkpoint session.title_changed session.workspace_file_changed session.context_changed session.permissions_changed "
    "session.mode_changed session.quota_observation session.todos_changed session.plan_changed session.compaction_start".split()
)
"""Events that repeat others piece by piece or are about the program; they are counted in `meta`."""
FAMILIES = ("hook.", "permission.", "mcp.", "model.call_", "session.mcp_", "session.extensions", "session.canvas.", "commands.", "command.")
"""Name prefixes of further bookkeeping events."""
REWOUND = ("session.snapshot_rewind", "session.context_cleared")
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
        self.complete = {get.text(get.obj(row, "data"), "messageId") for _, row in found if row.get("type") == "assistant.message"}
        """Ids of messages with a complete line; other messages are recorded only in pieces (`message_delta`)."""
        self.pieces: dict[str, Turn] = {}
        self.used: dict[str, Usage | None] = {}
        """Usage by the id of its model call; it may be recorded before its message or after it."""
        self.by_call: dict[str, Turn] = {}
        self.thought_pieces: list[str] = []
        said = (get.objects(get.obj(row, "data"), "toolRequests") for _, row in found if row.get("type") == "assistant.message")
        self.requested = {call_of(item).id for items in said for item in items}

    def add(self, where: str, kind: str, data: dict[str, Any]) -> None:
        parent = get.text(data, "parentToolCallId")
        if parent in self.log.asked and parent != get.text(data, "toolCallId"):
            self._side(parent, data, where)
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
            case "assistant.message_delta" | "assistant.reasoning_delta":
                self._piece(kind, data, where)
            case "assistant.usage" | "session.usage_record":
                self._usage(get.obj(data, "usage") or data)
            case "tool.execution_start" | "tool.user_requested":
                if get.text(data, "toolCallId") not in self.requested | self.log.asked:
                    self.log.call(call_of(data), where)
            case "tool.execution_complete":
                self._result(data, where)
            case _:
                self._session(where, kind, data)

    def _usage(self, data: dict[str, Any]) -> None:
        """Tokens of one model call, matched to its turn by call id; without an id, they go to the newest turn."""
        used = usage_in(data, sent="inputTokens", given="outputTokens", cached="cacheReadTokens", cost=data.get("cost"))
        call = get.text(data, "apiCallId")
        turn = self.by_call.get(call) if self.by_call and call else self.log.last
        self.used[call] = used
        if turn:
            turn.usage = used

    def _piece(self, kind: str, data: dict[str, Any], where: str) -> None:
        """A piece of a message that may never have been completed."""
        own, text = get.text(data, "messageId"), get.text(data, "deltaContent", "delta", "content")
        if kind == "assistant.reasoning_delta":
            self.thought_pieces.append(text)
            self.draft.passed(kind, where, (kind,))
        elif own in self.complete:
            self.draft.passed(kind, where, (kind,))
        else:
            if own not in self.pieces:
                self.log.close()
                self.pieces[own] = self.log.agent("", where, thinking="".join([] if self.thoughts else self.thought_pieces))
                self.draft.warn(where, "a message was recorded in pieces; they were joined")
                self.thought_pieces = []
            self.pieces[own].texts[-1] += text

    def _user(self, data: dict[str, Any], where: str) -> None:
        """Add the prompt as it was sent to the model, which may hold reminders around the user's own words."""
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
        self.thoughts, self.thought_pieces = [], []
        for call in read_calls(data.get("toolRequests")):
            self.log.call(call, where)
        turn.usage = usage_in(data, sent="inputTokens", given="outputTokens") or turn.usage
        if call_id := get.text(data, "apiCallId"):
            self.by_call[call_id] = turn
            turn.usage = turn.usage or self.used.get(call_id)
        self.draft.model = self.draft.model or get.text(data, "model")

    def _result(self, data: dict[str, Any], where: str) -> None:
        result, fault = data.get("result"), data.get("error")
        output = get.some(result, "content", "textResultForLlm", "contents", "detailedContent") if isinstance(result, dict) else result
        if output is None and fault is not None:
            output = get.some(fault, "message") if isinstance(fault, dict) else fault
        rest = {key: value for key, value in data.items() if key not in BESIDE and value is not None}
        failed = data.get("success") is False
        self.log.answer(get.text(data, "toolCallId"), output, where, failed=failed, name=get.text(data, "toolName"), rest=rest)

    def _side(self, parent: str, data: dict[str, Any], where: str) -> None:
        given = get.some(data, "content") or get.some(data.get("result"), "content", "detailedContent")
        asked = [f"{call.name} {call.arguments}" for call in read_calls(data.get("toolRequests"))]
        self.log.side(parent, get.text(data, "reasoningText"), content_of(self.draft, given, where).text, *asked, call=parent)

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
                self.draft.model = self.draft.model or get.text(data, "currentModel")
                for item in get.obj(data, "modelMetrics").values() if self.draft.usage is None else ():
                    self.draft.usage = add_usage(self.draft.usage, read_usage(get.obj(item, "usage")))
            case "subagent.started" | "subagent.selected" | "subagent.completed" | "subagent.failed":
                self.log.mark("subagent", text, event=kind, **get.facts(data, "agentName", "toolCallId", "error"))
            case "skill.invoked":
                self.log.mark("note", text, event=kind, skill=data.get("name"))
            case kind if kind in REWOUND:
                self.log.mark("context_edit", text, event=kind, **get.facts(data, "upToEventId", "eventsRemoved"))
            case kind if kind in BOOKKEEPING or kind.startswith(FAMILIES):
                self.draft.passed(kind, where, (kind,))
            case _ if text:
                self.log.mark("note", text, event=kind)
            case _ if kind not in SILENT:
                self.draft.unread(kind or "no type", where)

    def finish(self) -> Draft:
        if self.thoughts and self.log.last:
            self.log.last.thinking += self.thoughts
        return self.log.finish()
