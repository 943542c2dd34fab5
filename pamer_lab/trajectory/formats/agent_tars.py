"""Agent TARS (UI-TARS): an event stream of user, assistant and tool messages.

Each call appears in its assistant message and again as a `tool_call` event, which also describes the tool. Streamed pieces are
read only where the complete event that repeats them never came, as in a cut stream.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_tools
from pamer_lab.trajectory.shared.parts import content_of, output_content
from pamer_lab.trajectory.shared.rows import Row, attempt, first_episode, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import call_of, output_of

NAME = "agent-tars"
OWN = {"agent_run_start", "agent_run_end", "user_message", "assistant_message", "tool_call", "tool_result"}
PIECES = {
    "assistant_streaming_message": "assistant_message",
    "assistant_streaming_thinking_message": "assistant_thinking_message",
    "assistant_streaming_tool_call": "assistant_message",
    "final_answer_streaming": "final_answer",
}
"""Streamed pieces -> the complete event that repeats them."""


def detect(document: Document) -> bool:
    kinds = {row.get("type") for _, row in _events(document)[:50]}
    return bool({"assistant_message", *PIECES} & kinds) and len(OWN & kinds) >= 2


def _events(document: Document) -> list[Row]:
    value = first_episode(document)
    held = get.objects(value, "events")
    return list(get.placed(held, "events")) if held else rows(document)


def read(document: Document) -> Iterator[Draft]:
    yield attempt(NAME, "", _read_one, document)


def _read_one(document: Document) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    steps: list[Step] = []
    tools: dict[str, Any] = {}
    found = _events(document)
    for where, event in _without_pieces(draft, found):
        _add(draft, steps, tools, event, where)
    if len(found) == len(rows(document)):
        warn_strays(draft, document)
    draft.tools = read_tools(list(tools.values()))
    add_steps(draft, steps)
    return draft


def _without_pieces(draft: Draft, found: list[Row]) -> list[Row]:
    """The events without pieces; those whose complete event never came are joined to one. A prompt ends the wait for it."""
    kept: dict[int, list[Row]] = {}
    """Number of an event -> the event, or the pieces that began there."""
    begun: dict[str, dict[str, int]] = {}
    """Awaited type -> message id -> number of the first piece."""
    for number, (where, event) in enumerate(found):
        kind, own = get.text(event, "type"), get.text(event, "messageId")
        if kind in PIECES:
            first = begun.setdefault(PIECES[kind], {}).setdefault(own, number)
            kept.setdefault(first, []).append((where, event))
            continue
        came = begun.get(kind, {})
        for key in (own, "") if own else list(came):
            kept.pop(came.pop(key, -1), None)
        if kind == "user_message":
            begun = {}
        kept[number] = [(where, event)]
    return [_joined(draft, rows) if get.text(rows[0][1], "type") in PIECES else rows[0] for rows in kept.values()]


def _joined(draft: Draft, pieces: list[Row]) -> Row:
    """The complete event that these pieces would have made."""
    where, first = pieces[0]
    draft.warn(where, "a message was recorded in pieces; they were joined")
    found: dict[str, list[dict[str, Any]]] = {}
    for _, piece in pieces:
        found.setdefault(get.text(piece, "toolCallId"), []).append(piece)
    content = "".join(get.text(piece, "content") for piece in found.pop("", ()))
    calls = [
        {"id": own, "name": get.text(parts[0], "toolName"), "arguments": "".join(get.text(part, "arguments") for part in parts)}
        for own, parts in found.items()
    ]
    return where, {"type": PIECES[get.text(first, "type")], "content": content, "toolCalls": calls}


def _add(draft: Draft, steps: list[Step], tools: dict[str, Any], event: dict[str, Any], where: str) -> None:
    match event.get("type"):
        case "agent_run_start":
            draft.model = draft.model or get.text(event, "model")
            draft.meta |= {"session": event.get("sessionId"), "provider": event.get("provider"), "agent": event.get("agentName")}
        case "user_message" | "environment_input":
            content = content_of(draft, event.get("content"), where)
            name = "" if event["type"] == "user_message" else "environment"
            steps.append(Said("user", content.text, content.images, name))
        case "assistant_thinking_message":
            content = content_of(draft, event.get("content"), where)
            steps.append(Turn(where, thinking=content.texts))
        case "assistant_message" | "final_answer":
            _add_turn(draft, steps, event, where)
        case "tool_call":
            _add_call(steps, tools, event, where)
        case "tool_result":
            output, failed = output_of(event.get("content"))
            content = output_content(draft, output, where)
            failed = failed or bool(event.get("error"))
            text = content.text or get.text(event, "error")
            steps.append(Result(get.text(event, "toolCallId"), text, where, content.images, failed, get.text(event, "name")))
        case "system":
            steps.append(Mark("note", get.text(event, "message"), {"level": event.get("level")}))
        case "agent_run_end":
            pass
        case "plan_start" | "plan_update" | "plan_finish":
            steps.append(Mark("note", get.text(event, "summary"), {"plan": event.get("steps"), "type": event["type"]}))
        case kind:
            draft.unread(str(kind), where)


def _add_turn(draft: Draft, steps: list[Step], event: dict[str, Any], where: str) -> None:
    content = content_of(draft, event.get("content"), where)
    calls = read_calls(event.get("toolCalls"))
    last = steps[-1] if steps else None
    if event["type"] == "final_answer" and any(isinstance(step, Turn) and step.texts == content.texts for step in steps[-3:]):
        return
    turn = last if isinstance(last, Turn) and last.thinking and not last.texts and not last.calls else Turn(where)
    if turn is not last:
        steps.append(turn)
    turn.add(content)
    turn.calls += content.calls + calls
    turn.usage = read_usage(event.get("usage"))
    if isinstance(thought := event.get("reasoningContent"), str) and thought:
        turn.thinking.append(thought)


def _add_call(steps: list[Step], tools: dict[str, Any], event: dict[str, Any], where: str) -> None:
    """Take the tool's description from a call event, and the call itself if no assistant message has it."""
    tool = get.obj(event, "tool")
    tools.setdefault(get.text(event, "name"), tool | {"name": event.get("name"), "parameters": tool.get("schema")})
    call = call_of({**event, "id": event.get("toolCallId")})
    turns = [step for step in steps if isinstance(step, Turn)]
    for turn in turns[-3:]:
        turn.calls = [call if known.id == call.id and not known.arguments else known for known in turn.calls]
    if not any(known.id == call.id for turn in turns[-3:] for known in turn.calls):
        if not turns or isinstance(steps[-1], Result):
            turns.append(Turn(where))
            steps.append(turns[-1])
        turns[-1].calls.append(call)
