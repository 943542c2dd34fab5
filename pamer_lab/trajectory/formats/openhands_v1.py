"""OpenHands SDK V1 events: a folder of `event-NNNNN-*.json` files, one JSON array, or one event per line.

Actions that share an `llm_response_id` are one turn with parallel calls. Rejections and agent errors answer their call. A
condensation is a compaction event; model, usage and execution status come from state updates.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_thinking, read_tools
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.rows import attempt
from pamer_lab.trajectory.shared.steps import Turn, add_steps, ranges
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Tool, ToolCall

NAME = "openhands-v1-events"
KINDS = {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "ConversationStateUpdateEvent", "AgentErrorEvent"}

NOTES = KINDS | set("PauseEvent CondensationRequest ConversationErrorEvent LLMCompletionLogEvent TokenEvent HookExecutionEvent".split())
"""Kinds that are known; those without a rule are kept as notes."""


def detect(document: Document) -> bool:
    if document.kind == "zip":
        return False
    head = (value for _, value in islice(_events(document), 20))
    return any(isinstance(value, dict) and _kind(value) in KINDS and ("source" in value or "event" in value) for value in head)


def _kind(event: dict[str, Any]) -> str:
    """An event's kind; some writers of `events.jsonl` call the field `event` and flatten the message into it."""
    return get.text(event, "kind", "event")


def read(document: Document) -> Iterator[Draft]:
    yield attempt(NAME, "", _read_events, document)


def _events(document: Document) -> Iterator[tuple[str, Any]]:
    if document.kind == "json":
        for number, value in enumerate(get.items(document.root, "events") or get.as_list(document.root)):
            yield f"[{number}]", value
    else:
        for record in document.records:
            yield record.where, record.value


def _read_events(document: Document) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    reader = _Reader(draft)
    for where, event in _events(document):
        reader.add(draft.expect(event, where, "an event"), where)
    reader.flush()
    return draft


class _Reader:
    """Gathers the actions of one model response before it writes the turn."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.response = ""
        """Id of the response whose actions are being gathered."""
        self.turn = Turn()
        self.written: set[str] = set()
        self.gathered: list[str] = []
        """Ids of the actions in the turn that is being gathered."""
        self.messages_of: dict[str, range] = {}
        """Event id -> the messages it became, for condensations that name what they forgot."""
        self.forgotten: set[int] = set()

    def add(self, event: dict[str, Any], where: str) -> None:
        kind = _kind(event)
        if kind == "ActionEvent":
            self._action(event, where)
            self.gathered.append(get.text(event, "id"))
            return
        self.flush()
        before = len(self.draft.messages)
        self._add(event, kind, where)
        self.draft.stamp(before, get.as_time(event.get("timestamp")))
        self.messages_of[get.text(event, "id")] = range(before, len(self.draft.messages))

    def _add(self, event: dict[str, Any], kind: str, where: str) -> None:
        match kind:
            case "SystemPromptEvent":
                self.draft.system(
                    "\n\n".join(filter(None, [self._text(event, "system_prompt", where), self._text(event, "dynamic_context", where)]))
                )
                self.draft.tools = _tools(event)
            case "MessageEvent":
                self._message(event, where)
            case "ObservationEvent":
                self._result(event, get.obj(event, "observation"), where)
            case "UserRejectObservation" | "AgentErrorEvent":
                text = get.text(event, "rejection_reason", "error")
                self._answer(event, Content([text]), where, error=True)
            case "Condensation":
                for key in get.items(event, "forgotten_event_ids"):
                    self.forgotten.update(self.messages_of.get(str(key), ()))
                gone = ranges(sorted(self.forgotten))
                self.draft.event("compaction", get.text(event, "summary"), forgotten=event.get("forgotten_event_ids"), replaced=gone)
            case "CondensationSummaryEvent":
                self.draft.event("compaction", get.text(event, "summary"))
            case "ConversationStateUpdateEvent":
                self._state(event)
            case _:
                rest = {key: value for key, value in event.items() if key not in ("id", "timestamp", "source", "kind", "event")}
                self.draft.event("note", "" if not rest else json_text(rest), what=kind or None)
                if kind not in NOTES:
                    self.draft.unread(kind or get.text(event, "type") or "no kind", where)

    def flush(self) -> None:
        """Write the turn that was being gathered."""
        if self.turn != Turn(self.turn.where):
            self.messages_of |= dict.fromkeys(self.gathered, range(len(self.draft.messages), len(self.draft.messages) + 1))
            add_steps(self.draft, [self.turn])
        self.response, self.turn, self.gathered = "", Turn(), []

    def _action(self, event: dict[str, Any], where: str) -> None:
        response = get.text(event, "llm_response_id")
        if not response or response != self.response:
            self.flush()
            if response and response in self.written:
                self.draft.warn(where, f"a call of response {response!r} comes after other events; it became a separate turn")
        self.response, self.turn.where = response, where
        self.written.add(response)
        thought = content_of(self.draft, event.get("thought"), where)
        self.turn.texts += filter(None, thought.texts)
        self.turn.thinking += filter(None, (*thought.thinking, read_thinking(event)))
        if isinstance(event.get("tool_call"), dict):
            self.turn.calls += read_calls([event["tool_call"]])
        else:
            arguments = {key: value for key, value in get.obj(event, "action").items() if key != "kind"}
            self.turn.calls.append(ToolCall(get.text(event, "tool_call_id"), get.text(event, "tool_name"), json_text(arguments)))

    def _message(self, event: dict[str, Any], where: str) -> None:
        message = event.get("llm_message", event if "role" in event else None)
        if not isinstance(message, dict):
            raise FormatError("is a MessageEvent without `llm_message`", where=where)
        content = content_of(self.draft, message.get("content"), where)
        extended = content_of(self.draft, event.get("extended_content"), where)
        text = "\n".join([*content.texts, *extended.texts])
        match message.get("role"):
            case "assistant":
                calls = content.calls + read_calls(message.get("tool_calls"))
                self.draft.assistant(text, calls, thinking=content.thought or read_thinking(message), images=content.images, where=where)
            case "system":
                self.draft.system(text)
            case "tool":
                self._answer(message, content, where, error=False)
            case _:
                self.draft.user(text, images=content.images + extended.images)

    def _result(self, event: dict[str, Any], observation: dict[str, Any], where: str) -> None:
        given = get.some(observation, "content", "output", "result", "message", "error")
        if given is None and "content" not in observation:
            rest = {key: value for key, value in observation.items() if key not in ("kind", "is_error") and value not in (None, "")}
            given = json_text(rest) if rest else ""
        content = content_of(self.draft, given, where)
        metadata = observation.get("metadata")
        if isinstance(metadata, dict):
            content.texts = [f"{get.text(metadata, 'prefix')}{content.text}{get.text(metadata, 'suffix')}"]
        self._answer(event, content, where, error=observation.get("is_error") is True)

    def _answer(self, event: dict[str, Any], content: Content, where: str, *, error: bool) -> None:
        self.draft.tool(
            get.text(event, "tool_call_id"),
            content.text,
            name=get.text(event, "tool_name"),
            images=content.images,
            error=error,
            where=where,
        )

    def _text(self, event: dict[str, Any], key: str, where: str) -> str:
        return content_of(self.draft, event.get(key), f"{where} {key}").text

    def _state(self, event: dict[str, Any]) -> None:
        state = get.obj(event, "value")
        stats = state if event.get("key") == "stats" else get.obj(state, "stats")
        self.draft.model = self.draft.model or get.text(get.obj(get.obj(state, "agent"), "llm"), "model")
        metrics = get.obj(get.obj(stats, "usage_to_metrics"), "agent") or get.obj(get.obj(stats, "service_to_metrics"), "agent")
        usage = read_usage(metrics.get("accumulated_token_usage"), metrics.get("accumulated_cost"))
        self.draft.usage = usage or self.draft.usage
        if event.get("key") == "execution_status":
            self.draft.meta["execution_status"] = event.get("value")


def _tools(event: dict[str, Any]) -> list[Tool]:
    """Descriptions in OpenAI's shape, or the SDK's own with `title` or `name`."""
    return read_tools([{"name": item["title"], **item} if get.text(item, "title") else item for item in get.items(event, "tools")])
