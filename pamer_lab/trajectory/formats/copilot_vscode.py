"""Chat sessions of VS Code (GitHub Copilot and other chat providers): a session with `requests`, as JSON or as a log of changes.

The log's first line is the session; later lines set, append or delete values in it. Answers are read from the rounds that the extension
stores (`toolCallRounds` with their results), or else from the parts shown to the user, where a result is only what the interface displayed.
The prompt is read as it was sent, if it was stored.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import first_row
from pamer_lab.trajectory.shared.steps import Turn
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import ToolCall

NAME = "copilot-vscode-session"
SHOWN_ONLY = frozenset(
    "undoStop codeblockUri prepareToolInvocation mcpServersStarting progressTaskSerialized progressMessage confirmation "
    "notebookEditGroup elicitation elicitationSerialized multiDiffData hook pullRequest extensions command warning".split()
)
"""Interface parts around an answer, which are not read."""
MOST_DEPTH = 40


def detect(document: Document) -> bool:
    return bool(get.items(_session(first_row(document)), "requests")) or _is_log(document)


def _session(row: dict[str, Any]) -> dict[str, Any]:
    found = row.get("v") if row.get("kind") == 0 else row
    if not isinstance(found, dict):
        return {}
    first = get.first(found, "requests")
    return found if {"message", "response"} <= first.keys() or not first else {}


def _is_log(document: Document) -> bool:
    row = first_row(document)
    return row.get("kind") == 0 and isinstance(get.obj(row, "v").get("requests"), list)


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    first = document.root
    if isinstance(first, dict) and first.get("kind") == 0:
        session: Any = first.get("v")
        for record in document.records[1:]:
            session = _changed(draft, session, record.value, record.where)
    else:
        session = first
    log = Log(draft)
    for where, request in get.placed(get.objects(session, "requests"), "requests"):
        _request(log, request, where)
    draft.meta |= {"session": session.get("sessionId"), "title": session.get("customTitle")}
    yield log.finish()


def _changed(draft: Draft, session: Any, change: Any, where: str) -> Any:
    """The session after one line: 0 replaces all of it, 1 sets a value, 2 appends to a list, 3 deletes."""
    kind, path = change.get("kind"), get.items(change, "k")
    if kind == 0:
        return change.get("v")
    target = session
    for key in path[:-1]:
        inner = target[key] if _has(target, key) else None
        if not isinstance(inner, dict | list):
            draft.unread(f"change of {'.'.join(map(str, path))[:60]}", where)
            return session
        target = inner
    last = path[-1] if path else None
    if kind == 2 and _has(target, last) and isinstance(target[last], list):
        start = get.count(change, "i")
        del target[last][len(target[last]) if start is None else start :]
        target[last].extend(get.items(change, "v"))
    elif kind == 2 and isinstance(target, dict):
        target[last] = list(get.items(change, "v"))
    elif kind == 1 and isinstance(target, dict):
        target[last] = change.get("v")
    elif kind == 1 and isinstance(target, list) and isinstance(last, int) and 0 <= last <= len(target):
        target[last : last + 1] = [change.get("v")]
    elif kind == 3 and _has(target, last):
        del target[last]
    else:
        draft.unread(f"change of kind {kind}", where)
    return session


def _has(target: Any, key: Any) -> bool:
    if isinstance(target, dict):
        return isinstance(key, str) and key in target
    return isinstance(target, list) and isinstance(key, int) and 0 <= key < len(target)


def _request(log: Log, request: dict[str, Any], where: str) -> None:
    result = get.obj(request, "result")
    metadata = get.obj(result, "metadata")
    message = request.get("message")
    said = message if isinstance(message, str) else get.text(message, "text")
    for key in ("renderedGlobalContext", "renderedUserMessage"):
        if sent := _rendered(metadata.get(key)):
            log.say("user", sent, f"{where}.{key}")
            said = "" if said in sent else said
    if said:
        log.say("user", said, where)
    if files := get.objects(get.obj(request, "variableData"), "variables"):
        log.mark("note", json_text(files), event="attached")
    log.draft.model = log.draft.model or get.text(request, "modelId")
    rounds = get.objects(metadata, "toolCallRounds")
    if any(get.text(item, "response") or get.items(item, "toolCalls") for item in rounds):
        _rounds(log, rounds, get.obj(metadata, "toolCallResults"), where)
        _thoughts(log, get.objects(request, "response"))
    else:
        _shown(log, get.items(request, "response"), where)
    if log.last:
        log.last.usage = usage_in({**metadata, **get.obj(result, "usage")}, sent="promptTokens", given="outputTokens|completionTokens")
    if fault := get.text(get.obj(result, "errorDetails"), "message"):
        log.mark("note", fault, event="error")
    log.close()


def _rendered(parts: Any) -> str:
    """The text of a prompt as it was sent; other parts are cache marks."""
    return "".join(get.text(part, "text") for part in parts if isinstance(part, dict)) if isinstance(parts, list) else get.as_text(parts)


def _rounds(log: Log, rounds: list[dict[str, Any]], results: dict[str, Any], where: str) -> None:
    for place, item in get.placed(rounds, f"{where}.toolCallRounds"):
        log.close()
        thought = item.get("thinking")
        thinking = json_text(get.some(thought, "text") or "") if isinstance(thought, dict) else get.as_text(thought)
        calls = read_calls(item.get("toolCalls"))
        if not (get.text(item, "response") or thinking or calls):
            continue
        log.agent(get.text(item, "response") or None, place, thinking=thinking)
        for call in calls:
            log.call(call, place)
        for call in calls:
            if call.id in results:
                log.answer(call.id, _texts(results[call.id]), place, name=call.name, rest=results[call.id])


def _thoughts(log: Log, shown: list[dict[str, Any]]) -> None:
    """Keep displayed thoughts that no round holds as notes."""
    kept = {thought for step in log.steps if isinstance(step, Turn) for thought in step.thinking}
    for text in (_texts(part.get("value", part.get("content"))) for part in shown if part.get("kind") == "thinking"):
        if text.strip() and not any(text in thought for thought in kept):
            log.mark("note", text, event="thinking")


def _texts(value: Any, depth: int = 0) -> str:
    """The text of a tool's result, which may be a tree of nodes that each hold a text or children."""
    if isinstance(value, str) or depth > MOST_DEPTH:
        return value if isinstance(value, str) else json_text(value)
    if isinstance(value, list):
        return "".join(_texts(item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("text"), str):
        return ("\n" if value.get("lineBreakBefore") is True else "") + str(value["text"])
    return "".join(_texts(value[key], depth + 1) for key in ("content", "value", "node", "children") if key in value)


def _shown(log: Log, parts: list[Any], where: str) -> None:
    """The answer as it was shown: text, thinking and tools in their order."""
    text: list[str] = []
    for place, part in get.placed(parts, f"{where}.response"):
        kind = get.text(part, "kind") if isinstance(part, dict) else ""
        value = part if isinstance(part, str) else part.get("value", part.get("content"))
        if kind in ("", "markdownContent", "markdown", "markdownVuln"):
            text.append(_texts(value))
        elif kind == "inlineReference":
            text.append(_reference(part))
        elif kind == "thinking":
            log.open(place).thinking.append(_texts(value))
        elif kind in ("toolInvocationSerialized", "toolInvocation"):
            _flush(log, text, place)
            _tool(log, part, place)
        elif kind in ("textEditGroup", "textEdit"):
            log.mark("note", json_text(part), event=kind)
        elif kind not in SHOWN_ONLY:
            log.draft.unread(kind, place)
    _flush(log, text, where)


def _flush(log: Log, text: list[str], where: str) -> None:
    """Join the pieces of one text; fences around edits come from the interface and are dropped."""
    joined = "".join(text)
    text.clear()
    if joined.strip().strip("`").strip():
        log.agent(joined, where)


def _reference(part: dict[str, Any]) -> str:
    given = part.get("inlineReference")
    place = get.obj(given, "uri", "location") or (given if isinstance(given, dict) else {})
    return get.text(part, "name") or get.text(given, "name") or get.text(place, "path", "fsPath")


def _tool(log: Log, part: dict[str, Any], where: str) -> None:
    details, data = part.get("resultDetails"), get.obj(part, "toolSpecificData")
    given = get.some(data, "rawInput", "commandLine", "input") or get.some(details, "input") or _texts(part.get("invocationMessage"))
    arguments = given if isinstance(given, dict | list) else {"shown": given} if get.parsed(given) is None else given
    call = ToolCall(get.text(part, "toolCallId"), get.text(part, "toolId", "toolName"), json_text(arguments))
    log.call(call, where)
    outcome = get.some(details, "output") if isinstance(details, dict) else details
    text = _texts(outcome) or get.text(get.obj(data, "terminalCommandOutput"), "text") or _texts(part.get("pastTenseMessage"))
    if text or part.get("isComplete") is True:
        rest = {"isComplete": part.get("isComplete"), "isConfirmed": part.get("isConfirmed")}
        failed = isinstance(details, dict) and details.get("isError") is True
        log.answer(call.id, text, where, failed=failed, name=call.name, rest=rest)
