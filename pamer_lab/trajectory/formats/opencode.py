"""opencode and Kilo: the event stream that plugins see (one array per line), `opencode export` (`{info, messages}`), `opencode run
--format json` (one part per line), their database (sessions, messages, parts; SQLite or JSON), and the older folder of small files.

Parts are logged many times while they grow; the last version counts, and text that only arrived as deltas is kept. A model step (from
`step-start` to `step-finish`) is one turn. A session with a parent is a side agent, at any depth: one `subagent` event with all its text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import Content, add_image
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, keep_none
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import Tool, ToolCall, Usage

NAME = "opencode-events"


@dataclass
class _Session:
    info: dict[str, Any] = field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Message id -> its newest info, in the order of first appearance."""
    parts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Message id -> part id -> the part's newest version."""
    systems: dict[str, str] = field(default_factory=dict)
    """Model -> the system text it was given."""


def detect(document: Document) -> bool:
    if document.kind == "jsonl":
        first = [record.value for record in document.records[:50]]
        return any(_is_run_line(value) or (_name(value) == "event" and "event" in value[1]) for value in first)
    if _tables(document) or (document.kind == "folder" and any(record.where.startswith("part/") for record in document.records)):
        return True
    root = one_value(document)
    return isinstance(root, dict) and isinstance(root.get("info"), dict) and {"parts", "info"} <= get.first(root, "messages").keys()


def _is_run_line(value: Any) -> bool:
    """A line of `opencode run --format json`."""
    return isinstance(value, dict) and "sessionID" in value and isinstance(value.get("part"), dict) and "type" in value["part"]


def _tables(document: Document) -> dict[str, list[dict[str, Any]]]:
    """The rows of a database by table; empty if it is not one of these programs' databases."""
    root = document.root if document.kind == "sqlite" else one_value(document)
    found = {name: get.objects(root, name, f"{name}s") for name in ("session", "message", "part")}
    known = {"id", "session_id", "data"} <= get.first(found, "message").keys() and {"message_id", "data"} <= get.first(found, "part").keys()
    return found if known else {}


def _name(value: Any) -> str:
    return get.as_text(value[0]) if isinstance(value, list) and len(value) > 1 and isinstance(value[1], dict) else ""


def read(document: Document) -> Iterator[Draft]:
    sessions: dict[str, _Session] = {}
    tools: dict[str, Tool] = {}
    if document.kind == "jsonl":
        for record in document.records:
            if _is_run_line(record.value):
                _add_run_line(sessions, record.value)
            else:
                _add_line(sessions, tools, record.value)
    elif document.kind == "folder":
        _add_storage(sessions, document)
    elif tables := _tables(document):
        _add_tables(sessions, tables)
    else:
        _add_export(sessions, document.root)
    families = _families(sessions)
    drafts = {root: Draft(NAME, where=root if len(families) > 1 else "") for root in families}
    _warn_others(document, {key: drafts[root] for root, family in families.items() for key in family})
    for root, family in families.items():
        drafts[root].tools = list(tools.values())
        yield _read_session(drafts[root], family)


def _families(sessions: dict[str, _Session]) -> dict[str, dict[str, _Session]]:
    """Each session that no other started -> itself and its side agents, each before those that it started."""
    parents = {key: get.text(session.info, "parentID") for key, session in sessions.items()}
    started: dict[str, list[str]] = {}
    for key, parent in parents.items():
        if parent:
            started.setdefault(parent, []).append(key)
    families: dict[str, dict[str, _Session]] = {}
    placed: set[str] = set()
    for root in sorted(sessions, key=lambda key: bool(parents[key]) and parents[key] in sessions):  # a ring of parents comes last
        waiting = [root]
        while waiting:
            if (key := waiting.pop()) not in placed:
                placed.add(key)
                families.setdefault(root, {})[key] = sessions[key]
                waiting += reversed(started.get(key, []))
    return families


def _add_line(sessions: dict[str, _Session], tools: dict[str, Tool], value: Any) -> None:
    match _name(value):
        case "event" if isinstance(event := value[1].get("event"), dict) and isinstance(event.get("properties"), dict):
            _add_event(sessions, get.text(event, "type"), event["properties"])
        case "tool.definition" if len(value) > 2 and isinstance(value[2], dict):
            name, schema = get.text(value[1], "toolID"), get.obj(value[2], "parameters")
            tools[name] = Tool(name, get.text(value[2], "description"), schema)
        case "experimental.chat.system.transform" if len(value) > 2 and isinstance(value[2], dict):
            session = sessions.setdefault(get.text(value[1], "sessionID"), _Session())
            name = get.text(get.obj(value[1], "model"), "id")
            session.systems.setdefault(name, "\n".join(map(get.as_text, get.as_list(value[2].get("system")))))
        case "chat.message" if len(value) > 2 and isinstance(value[2], dict):
            _add_message(sessions, value[2].get("message"))
            for part in get.items(value[2], "parts"):
                _add_part(sessions, part)


def _add_event(sessions: dict[str, _Session], kind: str, facts: dict[str, Any]) -> None:
    if kind in ("session.created", "session.updated") and isinstance(facts.get("info"), dict):
        sessions.setdefault(get.text(facts["info"], "id"), _Session()).info.update(facts["info"])
    elif kind == "message.updated":
        _add_message(sessions, facts.get("info"))
    elif kind == "message.part.updated":
        _add_part(sessions, facts.get("part"))
    elif kind == "message.part.delta":
        parts = sessions.setdefault(get.text(facts, "sessionID"), _Session()).parts.get(get.text(facts, "messageID"), {})
        part = parts.get(get.text(facts, "partID"))
        name = get.text(facts, "field")
        if part is not None and isinstance(part.get(name, ""), str):
            part[name] = part.get(name, "") + get.text(facts, "delta")


def _add_message(sessions: dict[str, _Session], info: Any) -> None:
    if isinstance(info, dict):
        session = sessions.setdefault(get.text(info, "sessionID"), _Session())
        session.messages.setdefault(get.text(info, "id"), {}).update(info)


def _add_part(sessions: dict[str, _Session], part: Any) -> None:
    if isinstance(part, dict):
        session = sessions.setdefault(get.text(part, "sessionID"), _Session())
        session.parts.setdefault(get.text(part, "messageID"), {})[get.text(part, "id")] = dict(part)


def _add_run_line(sessions: dict[str, _Session], line: dict[str, Any]) -> None:
    """A part of the agent's message; the prompt is not in this stream."""
    session, message = get.text(line, "sessionID"), get.text(line["part"], "messageID") or "message"
    _add_message(sessions, {"sessionID": session, "id": message, "role": "assistant"})
    parts = sessions[session].parts.setdefault(message, {})
    parts[get.text(line["part"], "id") or str(len(parts))] = dict(line["part"])


def _warn_others(document: Document, drafts: dict[str, Draft]) -> None:
    """Keep errors among the lines without a part, and count the other lines and stored parts whose message is missing.

    `drafts`: the trace of each session; the first also takes what belongs to none.
    """
    first = next(iter(drafts.values()), Draft(NAME))
    if document.kind == "folder":
        names = [record.where.removesuffix(".json").split("/") for record in document.records]
        kept = {name[-1] for name in names if name[0] == "message"}
        for name, record in zip(names, document.records, strict=True):
            if name[0] == "part" and name[-2] not in kept:
                drafts.get(get.text(record.value, "sessionID"), first).unread("part of a missing message", "/".join(name))
    if document.kind != "jsonl":
        return
    is_run = any(_is_run_line(record.value) for record in document.records[:50])
    for record in document.records:
        if _is_run_line(record.value) if is_run else _name(record.value):
            continue
        draft = drafts.get(get.text(record.value, "sessionID"), first)
        kind = get.text(record.value, "type") or ("no type" if is_run else "line that is no event")
        draft.unread(kind, record.where)
        if is_run and kind == "error":
            draft.event("note", json_text(record.value.get("error")), event=kind)


def _add_tables(sessions: dict[str, _Session], tables: dict[str, list[dict[str, Any]]]) -> None:
    """Rows in the order of their creation; what a row is about is JSON in its column `data`."""
    for row in tables["session"]:
        info = {"id": row.get("id"), "parentID": row.get("parent_id"), **get.facts(row, "title", "directory", "version")}
        sessions[get.text(row, "id")] = _Session(info)
    for row in sorted(tables["message"], key=_created):
        _add_message(sessions, {**_data(row), "id": get.text(row, "id"), "sessionID": get.text(row, "session_id")})
    for row in sorted(tables["part"], key=_created):
        names = {"id": get.text(row, "id"), "messageID": get.text(row, "message_id")}
        _add_part(sessions, {**_data(row), **names, "sessionID": get.text(row, "session_id")})


def _add_storage(sessions: dict[str, _Session], document: Document) -> None:
    """Small files by the folders they are in: `message/SESSION/ID`, `part/…/MESSAGE/ID`, and one per session."""
    of_message: dict[str, str] = {}
    for record in document.records:
        *folders, name = record.where.removesuffix(".json").split("/")
        value = record.value if isinstance(record.value, dict) else {}
        if folders[0] in ("session", "info"):
            sessions[name] = _Session({"id": name, **value})
        elif folders[0] == "message":
            of_message[name] = folders[-1]
            _add_message(sessions, {**value, "id": name, "sessionID": folders[-1]})
        elif folders[-1] in of_message:
            _add_part(sessions, {**value, "id": name, "messageID": folders[-1], "sessionID": of_message[folders[-1]]})
    for key in [key for key, session in sessions.items() if not session.messages]:
        del sessions[key]  # a session of which only the title was kept


def _created(row: dict[str, Any]) -> tuple[int, str]:
    return (get.count(row, "time_created") or 0, get.text(row, "id"))


def _data(row: dict[str, Any]) -> dict[str, Any]:
    found = get.parsed(row.get("data"))
    return found if isinstance(found, dict) else {}


def _add_export(sessions: dict[str, _Session], root: dict[str, Any]) -> None:
    session = sessions.setdefault(get.text(root["info"], "id"), _Session(root["info"]))
    for number, item in enumerate(root["messages"]):
        if isinstance(item, dict) and isinstance(item.get("info"), dict):
            key = get.text(item["info"], "id") or str(number)
            session.messages[key] = item["info"]
            session.parts[key] = {str(place): part for place, part in enumerate(item.get("parts") or []) if isinstance(part, dict)}


def _read_session(draft: Draft, family: dict[str, _Session]) -> Draft:
    (root, session), *sides = family.items()
    models = [get.text(info, "modelID") for info in session.messages.values() if info.get("role") == "assistant"]
    draft.model = next(filter(None, models), "")
    steps: list[Step] = []
    if system := session.systems.get(draft.model) or next(iter(session.systems.values()), ""):
        steps.append(Said("system", system))
    steps += _steps(draft, session)
    for key, side in sides:
        said = "\n\n".join(_text(step) for step in _steps(draft, side))
        title, parent = side.info.get("title"), get.text(side.info, "parentID")
        steps.append(Mark("subagent", said, {"session": key, "title": title, "parent": parent if parent != root else None}))
    draft.meta = {name: session.info.get(name) for name in ("id", "title", "directory", "version")}
    add_steps(draft, steps)
    return draft


def _text(step: Step) -> str:
    if isinstance(step, Turn):
        return "\n".join([*step.thinking, *step.texts, *(f"{call.name} {call.arguments}" for call in step.calls)])
    return step.text


def _steps(draft: Draft, session: _Session) -> list[Step]:
    steps: list[Step] = []
    for key, info in session.messages.items():
        parts = list(session.parts.get(key, {}).values())
        if info.get("role") == "assistant":
            if info.get("summary") is True:
                steps.append(Mark("compaction", "", {"message": key}, keep_none, Turn))
            turns = _turns(draft, parts, key)
            last = next((step for step in reversed(turns) if isinstance(step, Turn)), None)
            if last is not None and not any(isinstance(step, Turn) and step.usage for step in turns):
                last.usage = _usage(info)
            steps += turns
        elif parts:
            content = Content()
            for part in parts:
                _add_said(draft, content, part, key)
            steps.append(Said("user", content.text, content.images))
    return steps


def _add_said(draft: Draft, content: Content, part: dict[str, Any], where: str) -> None:
    kind = part.get("type")
    if kind == "text":
        content.texts.append(get.text(part, "text"))
    elif kind == "file" and get.text(part, "mime").startswith("image/"):
        add_image(content, {"image_url": part.get("url"), "media_type": part.get("mime")})
    elif kind != "compaction":
        content.texts.append(draft.kept_as_json(where, f"part of type {kind!r}", part))


def _turns(draft: Draft, parts: list[dict[str, Any]], where: str) -> list[Step]:
    steps: list[Step] = []
    turn = Turn(where)
    used = False
    answers: list[Step] = []
    for part in parts:
        match part.get("type"):
            case "step-start":
                if used:
                    steps += [turn, *answers]
                    turn, answers, used = Turn(where), [], False
                continue
            case "text":
                turn.texts.append(get.text(part, "text"))
            case "reasoning":
                turn.thinking.append(get.text(part, "text"))
            case "tool":
                _add_tool(turn, answers, part, where)
            case "step-finish":
                turn.usage = _usage(part)
            case "patch" | "snapshot" | "agent" | "retry":
                continue
            case kind:
                turn.texts.append(draft.kept_as_json(where, f"part of type {kind!r}", part))
        used = True
    return [*steps, turn, *answers] if used else steps


def _usage(holder: dict[str, Any]) -> Usage | None:
    """The tokens of a step, or of a message whose steps were not recorded."""
    tokens = get.obj(holder, "tokens")
    tokens = {**tokens, **get.obj(tokens, "cache")}
    return usage_in(tokens, sent="input read write", given="output reasoning", cached="read", cost=holder.get("cost"))


def _add_tool(turn: Turn, answers: list[Step], part: dict[str, Any], where: str) -> None:
    state = get.obj(part, "state")
    call = ToolCall(get.text(part, "callID"), get.text(part, "tool"), json_text(state.get("input")))
    turn.calls.append(call)
    if state.get("status") in ("completed", "error"):
        failed = state["status"] == "error"
        answers.append(Result(call.id, json_text(state.get("error" if failed else "output") or ""), where, error=failed, name=call.name))
