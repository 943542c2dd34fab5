"""OpenHands V0: the `history` of an evaluation's `output.jsonl`, or a bare list of events.

Actions from one model response (parallel calls) are one turn, with the calls as the model wrote them. Actions without a recorded call (2024
files, which also nest events as [action, observation] pairs) become calls named after the action. An observation answers its action by tool
call id, or else by `cause`. State changes and empty observations carry no text and are left out; condensations are events.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_thinking, read_tools
from pamer_lab.trajectory.shared.parts import content_of, measure_image
from pamer_lab.trajectory.shared.rows import attempt, first_episode, first_episodes, read_each
from pamer_lab.trajectory.shared.steps import ranges
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Image, Message, ToolCall

NAME = "openhands-v0-events"
SILENT = ("agent_state_changed", "change_agent_state", "null", "server_ready", "status", "pause", "resume", "start", "init")
"""Events about the program's own state; of these, only observations with text are kept."""


def detect(document: Document) -> bool:
    if _are_episodes(document):
        return True
    first = first_episode(document)
    if document.kind == "jsonl":
        return _is_event(first) and not isinstance(first.get("kind"), str)
    return isinstance(document.root, list) and (_is_event(first) or _is_pair(first))


def _are_episodes(document: Document) -> bool:
    """Records with a `history` of events; a failed run's may be empty."""
    return any(_is_event(item) or _is_pair(item) for value in first_episodes(document) for item in get.items(value, "history")[:3])


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    acts = isinstance(value.get("action"), str) and isinstance(value.get("args"), dict)
    return acts or (isinstance(value.get("observation"), str) and "content" in value and ("extras" in value or "cause" in value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_event(value[0])


def read(document: Document) -> Iterator[Draft]:
    if _are_episodes(document):
        yield from read_each(document, NAME, _read_episode)
    else:
        events = document.root if isinstance(document.root, list) else [record.value for record in document.records]
        yield attempt(NAME, "", _read_events, Draft(NAME, orphans="as_user"), events, "events")


def _read_episode(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("history"), list):
        raise FormatError("is not an episode with a `history` list", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    draft.task_id = get.text(value, "instance_id")
    metadata, metrics, result = (get.obj(value, key) for key in ("metadata", "metrics", "test_result"))
    draft.model = get.text(get.obj(metadata, "llm_config"), "model") or get.text(metadata, "model_name")
    draft.usage = read_usage(metrics.get("accumulated_token_usage"), metrics.get("accumulated_cost"))
    resolved = result.get("resolved", result.get("result"))
    draft.reward = float(resolved) if isinstance(resolved, bool) else None
    draft.meta = {"agent": metadata.get("agent_class"), "git_patch": result.get("git_patch")} | get.facts(value, "error", "success")
    _read_events(draft, value["history"], "history")
    if isinstance(value.get("instruction"), str):
        _add_instruction(draft, value["instruction"])
    return draft


def _add_instruction(draft: Draft, instruction: str) -> None:
    """Insert a task stored outside the events (old files) before the first turn, or keep it in `meta` if a user message is there."""
    if instruction and not any(message.role == "user" and instruction in message.content for message in draft.messages):
        turn = next((index for index, message in enumerate(draft.messages) if message.role == "assistant"), len(draft.messages))
        if any(message.role == "user" for message in draft.messages[:turn]):
            draft.meta["instruction"] = instruction
            return
        draft.insert(turn, Message("user", instruction))


def _read_events(draft: Draft, events: list[Any], place: str) -> Draft:
    reader = _Reader(draft)
    for where, item in get.placed(events, place):
        for event in get.as_list(item):
            reader.add(draft.expect(event, where, "an event"), where)
    return draft


class _Reader:
    """Turns events into messages; remembers which responses were added and which action an id names."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.added: set[str] = set()
        """Responses whose calls were added, by response id and call ids."""
        self.call_of: dict[str, str] = {}
        """Action id -> call id, for observations that only name their cause."""
        self.last = ""
        """Call id of the newest action whose call was built from its fields."""
        self.messages_of: dict[str, range] = {}
        """Event id -> the messages it became, for condensations that name what they forgot."""
        self.forgotten: set[int] = set()

    def add(self, event: dict[str, Any], where: str) -> None:
        before = len(self.draft.messages)
        self._add(event, where)
        self.draft.stamp(before, get.as_time(event.get("timestamp")))
        self.messages_of[str(event.get("id"))] = range(before, len(self.draft.messages))

    def _add(self, event: dict[str, Any], where: str) -> None:
        if isinstance(event.get("action"), str):
            self._action(event, event["action"], where)
        elif isinstance(event.get("observation"), str):
            self._observation(event, event["observation"], where)
        elif get.text(event, "content", "message"):
            self.draft.warn(where, "is neither an action nor an observation; kept as an event")
            self.draft.event("note", get.text(event, "content", "message"))
        else:
            self.draft.unread(get.text(event, "type", "kind") or "event that is neither an action nor an observation", where)

    def _action(self, event: dict[str, Any], action: str, where: str) -> None:
        args = get.obj(event, "args")
        match action:
            case "system":
                self.draft.system(get.text(args, "content"))
                self.draft.tools = self.draft.tools or read_tools(args.get("tools"))
            case "message" if event.get("source") != "agent" and not (event.get("source") is None and args.get("wait_for_response")):
                self.draft.user(get.text(args, "content"), images=_images(args))
            case "condensation":
                summary = get.text(args, "summary")
                facts = {"forgotten": args.get("forgotten_event_ids"), "kept_from": args.get("summary_offset")}
                self.forgotten.update(index for key in _forgotten(args, self.messages_of) for index in self.messages_of.get(key, ()))
                self.draft.event("compaction", summary, **facts, replaced=ranges(sorted(self.forgotten)))
            case "condensation_request" | "recall":
                self.draft.event("note", get.text(args, "query"), what=action)
            case _ if action in SILENT:
                return
            case _ if event.get("source") in ("user", "environment"):
                self.draft.event("note", json_text(args), what=f"{event['source']} {action}")
            case _:
                self._turn(event, action, args, where)

    def _turn(self, event: dict[str, Any], action: str, args: dict[str, Any], where: str) -> None:
        call_id, response = _call_metadata(event)
        choice = get.obj(get.first(response, "choices"), "message")
        if choice:
            calls = read_calls(choice.get("tool_calls"))
            key = f"{response.get('id')}/{'/'.join(call.id for call in calls)}"
            self.call_of[str(event.get("id"))] = call_id
            if key in self.added and any(call.id == call_id for call in calls):
                return
            self.added.add(key)
            content = content_of(self.draft, choice.get("content"), where)
            thinking = content.thought or read_thinking(choice)
            usage = read_usage(response.get("usage"))
            self.draft.assistant(content.text, calls or self._own_call(event, action, args), thinking=thinking, usage=usage, where=where)
            self.draft.model = self.draft.model or get.text(response, "model")
        elif action == "message":
            self.draft.assistant(get.text(args, "content"), images=_images(args), where=where)
        else:
            thought = get.text(args, "thought") or (get.text(event, "message") if action == "finish" else "")
            self.draft.assistant(thought, self._own_call(event, action, args), where=where)

    def _own_call(self, event: dict[str, Any], action: str, args: dict[str, Any]) -> list[ToolCall]:
        call_id, _ = _call_metadata(event)
        name = get.text(get.obj(event, "tool_call_metadata"), "function_name") or action
        self.last = call_id or f"action_{event.get('id', len(self.draft.messages))}"
        self.call_of[str(event.get("id"))] = self.last
        if action == "message":
            return []
        return [ToolCall(self.last, name, json_text({key: value for key, value in args.items() if key != "thought"}))]

    def _observed_text(self, event: dict[str, Any], where: str) -> str:
        """The content with the prefix and suffix that the agent saw, if the event recorded them."""
        metadata = get.obj(get.obj(event, "extras"), "metadata")
        text = content_of(self.draft, event.get("content"), f"{where} content").text
        return f"{get.text(metadata, 'prefix')}{text}{get.text(metadata, 'suffix')}"

    def _observation(self, event: dict[str, Any], kind: str, where: str) -> None:
        text = self._observed_text(event, where)
        if kind in SILENT:
            if text.strip():
                self.draft.event("note", text, what=kind)
            return
        extras = get.obj(event, "extras")
        if kind in ("recall", "condense", "condensation", "agent_condensation"):
            data = {key: value for key, value in extras.items() if value not in (None, "", [], {})}
            self.draft.event("memory_read" if kind == "recall" else "compaction", text, what=kind, **({"data": data} if data else {}))
            return
        call_id = _call_metadata(event)[0] or self.call_of.get(str(event.get("cause")), "") or (self.last if "cause" not in event else "")
        images = _images(extras)
        if not call_id:
            self.draft.user(text, images=images, name=f"observation-{kind}")
            self.draft.warn(where, f"observation {kind!r} names no action; kept as a user message")
            return
        if call_id == self.last:
            self.last = ""
        failed = kind == "error" or event.get("success") is False
        name = get.text(get.obj(event, "tool_call_metadata"), "function_name")
        self.draft.tool(call_id, text, name=name, images=images, error=failed, where=where)


def _forgotten(args: dict[str, Any], known: Iterable[str]) -> list[str]:
    """Ids of the known events that a condensation drops: a list, or all from the first to the last."""
    listed = args.get("forgotten_event_ids")
    if isinstance(listed, list):
        return [str(key) for key in listed]
    first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
    if not isinstance(first, int) or not isinstance(last, int):
        return []
    return [key for key in known if key.isdecimal() and first <= int(key) <= last]


def _call_metadata(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(call id, model response) that an event recorded."""
    metadata = get.obj(event, "tool_call_metadata")
    return get.text(metadata, "tool_call_id"), get.obj(metadata, "model_response")


def _images(args: dict[str, Any]) -> list[Image]:
    urls = get.items(args, "image_urls") + [
        args[key] for key in ("screenshot", "set_of_marks") if isinstance(args.get(key), str) and args[key]
    ]
    return [measure_image({"image_url": url}) for url in urls]
