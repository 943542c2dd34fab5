"""Items of OpenAI's Responses API -> steps.

A tool that ran on the provider's side (`code_interpreter_call` and its like) has call and outcome in one item: it becomes a call and its
result, or a call alone where only a status is recorded (`web_search_call`); a generated image joins the turn. A message of another agent
is a user message with that agent's name. Invariant: what the model gave between two results is one turn, and no item's text is lost.
"""

from typing import Any

from pamer_lab.counts import whole_number
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.steps import Result, Said, Step, Turn
from pamer_lab.trajectory.values import Image, ToolCall

CALL_FACTS = {"type", "id", "call_id", "status", "name", "namespace"}
NAMED_CALLS = ("function_call", "custom_tool_call", "tool_call")
OUTCOMES = ("output", "outputs", "results", "result", "error", "status")


class Items:
    """Collects items; `steps` has the result."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.turn: Turn | None = None
        """The turn that the next item of the model joins."""
        self.last: Turn | None = None
        self.due: set[str] = set()
        """Ids of calls whose output is a separate item that has not come yet."""

    def add(self, item: dict[str, Any], where: str) -> None:
        """One item of the API; its kind decides whether it joins the open turn or closes it."""
        kind = item.get("type") or ("message" if "role" in item else "")
        if not isinstance(kind, str):
            raise self.draft.fault(where, f"has the type {kind!r}, not text")
        if kind == "message":
            self._message(item, where)
        elif kind == "reasoning":
            self._reasoning(item, where)
        elif kind.endswith("_output"):
            self.close()
            self._result(item, where)
        elif kind.endswith("_call"):
            self._call(kind, item, where)
        elif kind == "agent_message":
            content = content_of(self.draft, _readable(item.get("content")), where)
            self.say(Said("user", content.text, content.images, get.text(item, "author")))
        else:
            self.say(Said("user", self.draft.kept_as_json(where, f"item of type {kind!r}", item)))

    def say(self, step: Step) -> None:
        """A step that is not the model's: it closes the open turn."""
        self.close()
        self.steps.append(step)

    def close(self) -> None:
        self.turn = None

    def _open(self, where: str) -> Turn:
        if self.turn is None:
            self.turn = self.last = Turn(where)
            self.steps.append(self.turn)
        return self.turn

    def _message(self, item: dict[str, Any], where: str) -> None:
        content = content_of(self.draft, item.get("content"), where)
        match item.get("role"):
            case "assistant":
                self._open(where).add(content)
            case "system" | "developer":
                self.say(Said("system", content.text))
            case "tool":
                self.say(Result(get.text(item, "tool_call_id", "call_id"), content.text, where, content.images))
            case _:
                self.say(Said("user", content.text, content.images))

    def _reasoning(self, item: dict[str, Any], where: str) -> None:
        turn = self._open(where)
        for key in ("summary", "content"):
            # `content_of` takes some reasoning parts for text; here all of it is thought.
            content = content_of(self.draft, item.get(key), where)
            turn.thinking += content.thinking + content.texts

    def _call(self, kind: str, item: dict[str, Any], where: str) -> None:
        turn = self._open(where)
        call_id = get.text(item, "call_id")
        name = get.text(item, "name") or kind.removesuffix("_call")
        rest = {key: value for key, value in item.items() if key not in CALL_FACTS and key not in OUTCOMES}
        rest_or_none = None if kind in NAMED_CALLS else rest  # a call of a named tool should have arguments, if only `{}`
        arguments = json_text(next((item[key] for key in ("arguments", "input", "action") if key in item), rest_or_none))
        if call_id and not any(item.get(key) for key in OUTCOMES[:-1]):
            turn.calls.append(ToolCall(call_id, name, arguments))
            self.due.add(call_id)
            return
        own = call_id or get.text(item, "id") or f"{kind}_{len(self.steps)}_{len(turn.calls)}"
        turn.calls.append(ToolCall(own, name, arguments))
        if kind == "image_generation_call" and isinstance(item.get("result"), str):
            image = Image("image/png", len(item["result"]) * 3 // 4)
            turn.add(Content([f"[image: {image.media_type}, {image.bytes:,} bytes]"], images=[image]))
        elif any(item.get(key) is not None for key in OUTCOMES[:-1]) or item.get("status") == "failed":
            self.steps.append(self._outcome(own, item, where))

    def _outcome(self, call_id: str, item: dict[str, Any], where: str) -> Result:
        """What a provider-side call recorded of its own outcome."""
        found = {key: item[key] for key in OUTCOMES if item.get(key) is not None}
        text = found["output"] if isinstance(found.get("output"), str) else json_text(found)
        return Result(call_id, text, where, error=bool(item.get("error")) or item.get("status") == "failed")

    def _result(self, item: dict[str, Any], where: str) -> None:
        output = item.get("output", json_text(item["tools"]) if "tools" in item else None)
        failed = False
        if isinstance(output, dict) and ("content" in output or "body" in output):
            failed = output.get("success") is False
            output = output.get("content", output.get("body"))
        if isinstance(output, dict | int | float) and not _is_part(output):
            output = json_text(output)
        content = content_of(self.draft, output, where)
        failed = failed or item.get("status") == "failed" or _exit_code(content.text) not in (None, 0)
        answered = get.text(item, "call_id", "id")
        self.due.discard(answered)
        self.steps.append(Result(answered, content.text, where, content.images, failed))


def _readable(parts: Any) -> Any:
    """What another agent sent, without the parts that only the provider can read."""
    return [part for part in parts if get.text(part, "type") != "encrypted_content"] if isinstance(parts, list) else parts


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _exit_code(text: str) -> int | None:
    """Codex's shell wraps output as JSON text with the exit code at its end; the text itself is kept as it was sent."""
    if not text.startswith('{"output":') or '"exit_code":' not in text[-120:]:
        return None
    digits = text[-120:].rpartition('"exit_code":')[2].partition(",")[0].partition("}")[0].strip()
    return whole_number(digits)
