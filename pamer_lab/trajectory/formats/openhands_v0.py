"""OpenHands V0: the `history` of an evaluation's `output.jsonl`, or a bare list of events.

An action of the agent is a turn; actions that came from one model response (parallel calls) are one turn, with the calls as
the model wrote them. An observation answers its action by tool call id, or by `cause` where there is none. Actions without
a recorded call (2024 files, which also nest events as [action, observation] pairs) become calls named after the action,
with its arguments. State changes and empty observations carry no text and are left out; condensations are events.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.episodes import attempt, first_episode, first_episodes, read_each
from pamer_lab.trajectory.fields import read_openai_calls, read_thinking, read_tools, read_usage
from pamer_lab.trajectory.formats.openai_chat import text_of
from pamer_lab.trajectory.formats.steps import ranges
from pamer_lab.trajectory.parts import measure_image, read_content
from pamer_lab.trajectory.values import Image, Message, ToolCall

NAME = "openhands-v0-events"
SILENT = ("agent_state_changed", "change_agent_state", "null", "server_ready", "status", "pause", "resume", "start", "init")
"""Events about the program's own state; kept only where they carry text."""


def detect(document: Document) -> bool:
    if _are_episodes(document):
        return True
    first = first_episode(document)
    if document.kind == "jsonl":
        return _is_event(first) and not isinstance(first.get("kind"), str)
    return isinstance(document.root, list) and (_is_event(first) or _is_pair(first))


def _are_episodes(document: Document) -> bool:
    """Records with a `history` of events; a failed run's may be empty."""
    histories = [
        value["history"] for value in first_episodes(document) if isinstance(value, dict) and isinstance(value.get("history"), list)
    ]
    return any(_is_event(item) or _is_pair(item) for history in histories for item in history[:3])


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
        yield attempt(NAME, "", lambda: _read_events(Draft(NAME, orphans="as_user"), events, "events"))


def _read_episode(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("history"), list):
        raise FormatError("is not an episode with a `history` list", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    draft.task_id = text_of(value, "instance_id")
    metadata, metrics, result = (value.get(key) for key in ("metadata", "metrics", "test_result"))
    if isinstance(metadata, dict):
        config = metadata.get("llm_config")
        draft.model = text_of(config, "model") if isinstance(config, dict) else text_of(metadata, "model_name")
        draft.meta["agent"] = metadata.get("agent_class")
    if isinstance(metrics, dict):
        draft.usage = read_usage(metrics.get("accumulated_token_usage"), metrics.get("accumulated_cost"))
    if isinstance(result, dict):
        resolved = result.get("resolved", result.get("result"))
        draft.reward = float(resolved) if isinstance(resolved, bool) else None
        draft.meta["git_patch"] = result.get("git_patch")
    draft.meta |= {"error": value.get("error"), "success": value.get("success")}
    _read_events(draft, value["history"], "history")
    if isinstance(value.get("instruction"), str):
        _add_instruction(draft, value["instruction"])
    return draft


def _add_instruction(draft: Draft, instruction: str) -> None:
    """Old files hold the task only beside the events; it was the first thing the agent read."""
    if instruction and not any(message.role == "user" and instruction in message.content for message in draft.messages):
        turn = next((index for index, message in enumerate(draft.messages) if message.role == "assistant"), len(draft.messages))
        if any(message.role == "user" for message in draft.messages[:turn]):
            draft.meta["instruction"] = instruction
            return
        draft.insert(turn, Message("user", instruction))


def _read_events(draft: Draft, events: list[Any], place: str) -> Draft:
    reader = _Reader(draft)
    for number, item in enumerate(events):
        pair = item if isinstance(item, list) else [item]
        for event in pair:
            if not isinstance(event, dict):
                raise FormatError(f"is {type(event).__name__}, not an event", where=f"{draft.where} {place}[{number}]".strip())
            reader.add(event, f"{place}[{number}]")
    return draft


class _Reader:
    """Turns events into messages; remembers which responses were told and which action an id names."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.told: set[str] = set()
        """Responses whose calls were added, by response id and call ids."""
        self.call_of: dict[str, str] = {}
        """Action id -> call id, for observations that only name their cause."""
        self.last = ""
        """Call of the newest action that had no recorded call id."""
        self.messages_of: dict[str, range] = {}
        """Event id -> the messages it became, for condensations that name what they forgot."""
        self.forgotten: set[int] = set()

    def add(self, event: dict[str, Any], where: str) -> None:
        before = len(self.draft.messages)
        self._add(event, where)
        self.messages_of[str(event.get("id"))] = range(before, len(self.draft.messages))

    def _add(self, event: dict[str, Any], where: str) -> None:
        if isinstance(event.get("action"), str):
            self._action(event, event["action"], where)
        elif isinstance(event.get("observation"), str):
            self._observation(event, event["observation"], where)
        elif text_of(event, "content", "message"):
            self.draft.warn(where, "is neither an action nor an observation; kept as an event")
            self.draft.event("note", text_of(event, "content", "message"))

    def _action(self, event: dict[str, Any], action: str, where: str) -> None:
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        match action:
            case "system":
                self.draft.system(text_of(args, "content"))
                self.draft.tools = self.draft.tools or read_tools(args.get("tools"))
            case "message" if event.get("source") != "agent" and not (event.get("source") is None and args.get("wait_for_response")):
                self.draft.user(text_of(args, "content"), images=_images(args))
            case "condensation":
                summary = text_of(args, "summary")
                facts = {"forgotten": args.get("forgotten_event_ids"), "kept_from": args.get("summary_offset")}
                self.forgotten.update(index for key in _forgotten(args, self.messages_of) for index in self.messages_of.get(key, ()))
                self.draft.event("compaction", summary, **facts, replaced=ranges(sorted(self.forgotten)))
            case "condensation_request" | "recall":
                self.draft.event("note", text_of(args, "query"), what=action)
            case _ if action in SILENT:
                return
            case _ if event.get("source") in ("user", "environment"):
                self.draft.event("note", json_text(args), what=f"{event['source']} {action}")
            case _:
                self._turn(event, action, args, where)

    def _turn(self, event: dict[str, Any], action: str, args: dict[str, Any], where: str) -> None:
        call_id, response = _call_metadata(event)
        choice = _message_of(response)
        if choice is not None:
            calls = read_openai_calls(choice.get("tool_calls"))
            key = f"{response.get('id')}/{'/'.join(call.id for call in calls)}"
            self.call_of[str(event.get("id"))] = call_id
            if key in self.told and any(call.id == call_id for call in calls):
                return
            self.told.add(key)
            content = read_content(choice.get("content"), where=where)
            thinking = content.thought or read_thinking(choice)
            usage = read_usage(response.get("usage"))
            self.draft.assistant(content.text, calls or self._own_call(event, action, args), thinking=thinking, usage=usage, where=where)
            self.draft.model = self.draft.model or text_of(response, "model")
        elif action == "message":
            self.draft.assistant(text_of(args, "content"), images=_images(args), where=where)
        else:
            thought = text_of(args, "thought") or (text_of(event, "message") if action == "finish" else "")
            self.draft.assistant(thought, self._own_call(event, action, args), where=where)

    def _own_call(self, event: dict[str, Any], action: str, args: dict[str, Any]) -> list[ToolCall]:
        call_id, _ = _call_metadata(event)
        name = _function_name(event) or action
        self.last = call_id or f"action_{event.get('id', len(self.draft.messages))}"
        self.call_of[str(event.get("id"))] = self.last
        if action == "message":
            return []
        return [ToolCall(self.last, name, json_text({key: value for key, value in args.items() if key != "thought"}))]

    def _observation(self, event: dict[str, Any], kind: str, where: str) -> None:
        text = _observed_text(event)
        if kind in SILENT:
            if text.strip():
                self.draft.event("note", text, what=kind)
            return
        extras = event.get("extras")
        extras = extras if isinstance(extras, dict) else {}
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
        self.draft.tool(call_id, text, name=_function_name(event), images=images, error=failed, where=where)


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
    metadata = event.get("tool_call_metadata")
    if not isinstance(metadata, dict):
        return "", {}
    response = metadata.get("model_response")
    return text_of(metadata, "tool_call_id"), response if isinstance(response, dict) else {}


def _function_name(event: dict[str, Any]) -> str:
    metadata = event.get("tool_call_metadata")
    return text_of(metadata, "function_name") if isinstance(metadata, dict) else ""


def _message_of(response: dict[str, Any]) -> dict[str, Any] | None:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _observed_text(event: dict[str, Any]) -> str:
    """The content with the head and foot that the agent saw around it, where the event recorded them."""
    extras = event.get("extras")
    metadata = extras.get("metadata") if isinstance(extras, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    text = read_content(event.get("content"), where="content").text
    return f"{text_of(metadata, 'prefix')}{text}{text_of(metadata, 'suffix')}"


def _images(args: dict[str, Any]) -> list[Image]:
    given = args.get("image_urls")
    urls = list(given) if isinstance(given, list) else []
    urls += [args[key] for key in ("screenshot", "set_of_marks") if isinstance(args.get(key), str) and args[key]]
    return [measure_image({"image_url": url}) for url in urls]
