"""Chat replays of Copilot Chat (`*.chatreplay.json`): for each prompt, a log of the requests to the model and the tools that ran.

Every request repeats the conversation so far, so a message is added only where a request holds it more often than the trace; roles
are stored as numbers. Call ids are read without VS Code's suffix (`__vscode…`).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import call_of, role_of

NAME = "copilot-chatreplay"
ROLES = ("system", "user", "assistant", "tool")
"""A role's number is its place here."""
Seen = Counter[tuple[str, str]]
"""(role, text or call id) of messages -> how often."""
TEXT = 1
"""The number of a text part; the others are cache marks, images and opaque values."""


def detect(document: Document) -> bool:
    root = one_value(document)
    first = get.first(root, "prompts") if isinstance(root, dict) else {}
    return isinstance(first.get("logs"), list) or (isinstance(root, dict) and isinstance(root.get("logs"), list) and "prompt" in root)


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    prompts = get.objects(root, "prompts") or [root]
    draft = Draft(NAME, orphans="as_user")
    log = Log(draft)
    seen: Seen = Counter()
    """The messages so far, to find what a request adds."""
    for place, prompt in get.placed(prompts, "prompts"):
        for where, item in get.placed(get.items(prompt, "logs"), f"{place}.logs"):
            if isinstance(item, dict):
                _entry(log, seen, item, where)
    draft.meta |= get.facts(root, "exportedAt", "totalPrompts")
    yield log.finish()


def _entry(log: Log, seen: Seen, item: dict[str, Any], where: str) -> None:
    if item.get("kind") == "request":
        held: Seen = Counter()
        messages = get.objects(get.obj(item, "requestMessages"), "messages") or get.objects(item, "messages")
        for place, message in get.placed(messages, f"{where}.messages"):
            _message(log, seen, held, message, place)
        _answer(log, seen, item, where)
    elif item.get("kind") == "toolCall":
        own = get.text(item, "id").partition("__vscode")[0]
        call = call_of({**item, "id": own})
        if call.id not in log.asked:
            log.call(call, where)
        output = item.get("response")
        if not seen["tool", own]:
            seen["tool", own] += 1
            log.answer(own, "\n".join(map(get.as_text, output)) if isinstance(output, list) else output, where, name=call.name, rest=item)
    elif item.get("kind") not in ("element", "log"):
        log.draft.unread(f"log/{item.get('kind')}", where)


def _message(log: Log, seen: Seen, held: Seen, message: dict[str, Any], where: str) -> None:
    """A message of a request; `held` counts those before it in the same request."""
    number = message.get("role")
    role = ROLES[number] if type(number) is int and 0 <= number < len(ROLES) else role_of(number) or "user"
    text = _text(log, message.get("content"), where)
    own = get.text(message, "toolCallId").partition("__vscode")[0]
    key = (role, own if role == "tool" else text)
    held[key] += 1
    is_new = held[key] > seen[key]
    seen[key] += is_new
    calls = [call_of(item) for item in get.objects(message, "toolCalls")]
    if role == "assistant":
        if is_new:
            log.close()
            log.agent(text or None, where)
        for call in calls:
            if call.id not in log.asked:
                log.call(call, where)
    elif is_new:
        if role == "tool":
            log.answer(own, text, where)
        elif role == "system" and any(other == "system" and said != text for other, said in seen):
            log.mark("note", text, event="the system prompt changed")
        else:
            log.say("system" if role == "system" else "user", text, where)


def _text(log: Log, parts: Any, where: str) -> str:
    if isinstance(parts, str):
        return parts
    texts: list[str] = []
    for part in get.objects({"parts": parts}, "parts"):
        if part.get("type") == TEXT or isinstance(part.get("text"), str):
            texts.append(get.text(part, "text"))
        elif part.get("type") == 0:
            texts.append("[image]")
        elif part.get("type") != 3:
            log.draft.unread(f"part of type {part.get('type')}", where)
    return "".join(texts)


def _answer(log: Log, seen: Seen, item: dict[str, Any], where: str) -> None:
    facts, response = get.obj(item, "metadata"), get.obj(item, "response")
    log.draft.model = log.draft.model or get.text(facts, "model")
    log.draft.tools = log.draft.tools or read_tools(facts.get("tools"))
    given = response.get("message", response.get("value"))
    text = "".join(map(get.as_text, given)) if isinstance(given, list) else content_of(log.draft, given, where).text
    if response.get("type") not in (None, "success"):
        log.mark("note", get.text(response, "reason") or text, event=get.text(response, "type"))
        return
    seen["assistant", text] += 1
    log.close()
    turn = log.agent(text or None, where)
    turn.usage = read_usage(facts.get("usage"))
