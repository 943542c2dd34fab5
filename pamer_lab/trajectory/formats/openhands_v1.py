"""OpenHands SDK V1 events: a folder of `event-NNNNN-*.json` files, one JSON array, or one event per line.

Actions that share an `llm_response_id` are one turn with parallel calls. Rejections and agent errors answer their call. A
condensation is a compaction event; state updates give model, tools and usage where they hold them.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.episodes import attempt
from pamer_lab.trajectory.fields import read_openai_calls, read_thinking, read_tools, read_usage
from pamer_lab.trajectory.formats.openai_chat import text_of
from pamer_lab.trajectory.formats.steps import ranges
from pamer_lab.trajectory.parts import Content, read_content
from pamer_lab.trajectory.values import ToolCall

NAME = "openhands-v1-events"
KINDS = {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "ConversationStateUpdateEvent", "AgentErrorEvent"}


def detect(document: Document) -> bool:
    if document.kind == "zip":
        return False
    head = (value for _, value in islice(_events(document), 20))
    return any(isinstance(value, dict) and _kind(value) in KINDS and ("source" in value or "event" in value) for value in head)


def _kind(event: dict[str, Any]) -> str:
    """An event's kind; some writers of `events.jsonl` call the field `event` and flatten the message into it."""
    return text_of(event, "kind") or text_of(event, "event")


def read(document: Document) -> Iterator[Draft]:
    yield attempt(NAME, "", lambda: _read_events(document))


def _events(document: Document) -> Iterator[tuple[str, Any]]:
    if document.kind == "json":
        root = document.root
        if isinstance(root, dict) and isinstance(root.get("events"), list):
            root = root["events"]
        for number, value in enumerate(root if isinstance(root, list) else [root]):
            yield f"[{number}]", value
    else:
        for record in document.records:
            yield record.where, record.value


def _read_events(document: Document) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    reader = _Reader(draft)
    for where, event in _events(document):
        if not isinstance(event, dict):
            raise FormatError(f"is {type(event).__name__}, not an event", where=where)
        reader.add(event, where)
    reader.flush()
    return draft


class _Reader:
    """Gathers the actions of one model response before it writes the turn."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.response = ""
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.calls: list[ToolCall] = []
        self.where = ""
        self.told: set[str] = set()
        self.gathered: list[str] = []
        """Ids of the actions in the turn that is being gathered."""
        self.messages_of: dict[str, range] = {}
        """Event id -> the messages it became, for condensations that name what they forgot."""
        self.forgotten: set[int] = set()

    def add(self, event: dict[str, Any], where: str) -> None:
        kind = _kind(event)
        if kind == "ActionEvent":
            self._action(event, where)
            self.gathered.append(text_of(event, "id"))
            return
        self.flush()
        before = len(self.draft.messages)
        self._add(event, kind, where)
        self.messages_of[text_of(event, "id")] = range(before, len(self.draft.messages))

    def _add(self, event: dict[str, Any], kind: str, where: str) -> None:
        match kind:
            case "SystemPromptEvent":
                self.draft.system("\n\n".join(filter(None, [_text(event, "system_prompt"), _text(event, "dynamic_context")])))
                self.draft.tools = _tools(event.get("tools"))
            case "MessageEvent":
                self._message(event, where)
            case "ObservationEvent":
                self._result(event, _part(event, "observation"), where)
            case "UserRejectObservation" | "AgentErrorEvent":
                text = text_of(event, "rejection_reason", "error")
                self._answer(event, Content([text]), where, error=True)
            case "Condensation":
                forgotten = event.get("forgotten_event_ids")
                for key in forgotten if isinstance(forgotten, list) else []:
                    self.forgotten.update(self.messages_of.get(str(key), ()))
                self.draft.event("compaction", text_of(event, "summary"), forgotten=forgotten, replaced=ranges(sorted(self.forgotten)))
            case "CondensationSummaryEvent":
                self.draft.event("compaction", text_of(event, "summary"))
            case "ConversationStateUpdateEvent":
                self._state(event)
            case _:
                rest = {key: value for key, value in event.items() if key not in ("id", "timestamp", "source", "kind", "event")}
                self.draft.event("note", "" if not rest else json_text(rest), what=kind or None)

    def flush(self) -> None:
        """Write the turn that was being gathered."""
        if self.calls or self.texts or self.thinking:
            self.messages_of |= dict.fromkeys(self.gathered, range(len(self.draft.messages), len(self.draft.messages) + 1))
            self.draft.assistant("\n".join(self.texts), self.calls, thinking="\n".join(self.thinking), where=self.where)
        self.response, self.texts, self.thinking, self.calls, self.gathered = "", [], [], [], []

    def _action(self, event: dict[str, Any], where: str) -> None:
        response = text_of(event, "llm_response_id")
        if not response or response != self.response:
            self.flush()
            if response and response in self.told:
                self.draft.warn(where, f"a call of response {response!r} stands after other events; it became a turn of its own")
        self.response, self.where = response, where
        self.told.add(response)
        thought = read_content(event.get("thought"), where=where)
        self.texts += [text for text in thought.texts if text]
        reasoning = read_thinking(event)
        self.thinking += [text for text in (*thought.thinking, reasoning) if text]
        self.calls += self._call(event)

    def _call(self, event: dict[str, Any]) -> list[ToolCall]:
        given = event.get("tool_call")
        if isinstance(given, dict):
            return read_openai_calls([given])
        action = event.get("action")
        arguments = {key: value for key, value in action.items() if key != "kind"} if isinstance(action, dict) else {}
        return [ToolCall(text_of(event, "tool_call_id"), text_of(event, "tool_name"), json_text(arguments))]

    def _message(self, event: dict[str, Any], where: str) -> None:
        message = event.get("llm_message", event if "role" in event else None)
        if not isinstance(message, dict):
            raise FormatError("is a MessageEvent without `llm_message`", where=where)
        content = read_content(message.get("content"), where=where)
        extended = read_content(event.get("extended_content"), where=where)
        text = "\n".join([*content.texts, *extended.texts])
        match message.get("role"):
            case "assistant":
                calls = content.calls + read_openai_calls(message.get("tool_calls"))
                self.draft.assistant(text, calls, thinking=content.thought or read_thinking(message), images=content.images, where=where)
            case "system":
                self.draft.system(text)
            case "tool":
                self._answer(message, content, where, error=False)
            case _:
                self.draft.user(text, images=content.images + extended.images)

    def _result(self, event: dict[str, Any], observation: dict[str, Any], where: str) -> None:
        given = next((observation[key] for key in ("content", "output", "result", "message", "error") if observation.get(key)), None)
        if given is None:
            rest = {
                key: value for key, value in observation.items() if key not in ("kind", "content", "is_error") and value not in (None, "")
            }
            given = json_text(rest) if rest and "content" not in observation else ""
        content = read_content(given, where=where)
        metadata = observation.get("metadata")
        if isinstance(metadata, dict):
            content.texts = [f"{text_of(metadata, 'prefix')}{content.text}{text_of(metadata, 'suffix')}"]
        self._answer(event, content, where, error=observation.get("is_error") is True)

    def _answer(self, event: dict[str, Any], content: Content, where: str, *, error: bool) -> None:
        self.draft.tool(
            text_of(event, "tool_call_id"), content.text, name=text_of(event, "tool_name"), images=content.images, error=error, where=where
        )

    def _state(self, event: dict[str, Any]) -> None:
        value = event.get("value")
        state = value if isinstance(value, dict) else {}
        if event.get("key") == "stats":
            state = {"stats": state}
        agent, stats = _part(state, "agent"), _part(state, "stats")
        self.draft.model = self.draft.model or text_of(_part(agent, "llm"), "model")
        metrics = _part(_part(stats, "usage_to_metrics"), "agent") or _part(_part(stats, "service_to_metrics"), "agent")
        usage = read_usage(metrics.get("accumulated_token_usage"), metrics.get("accumulated_cost"))
        self.draft.usage = usage or self.draft.usage
        if event.get("key") == "execution_status":
            self.draft.meta["execution_status"] = value


def _part(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(event: dict[str, Any], key: str) -> str:
    return read_content(event.get(key), where=key).text


def _tools(value: Any) -> list[Any]:
    """Descriptions in OpenAI's shape, or the SDK's own with `title` or `name`."""
    items = value if isinstance(value, list) else []
    named = [
        item | {"name": item["title"]} if isinstance(item, dict) and "title" in item and "name" not in item else item for item in items
    ]
    return list(read_tools(named))
