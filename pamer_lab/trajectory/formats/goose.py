"""Goose: its session database, sessions as lines or as an export, and recordings of provider calls.

A message's parts are texts, tool requests and tool responses. Messages that a summary replaced are marked as invisible to the agent: the
summary is a compaction. In a recording each call repeats the conversation: the longest call is read with its answer, and other calls (such
as the one that names the session) become `subagent` events.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import first_row, head, one_value, rows
from pamer_lab.trajectory.shared.steps import Mark, Turn, keep_none
from pamer_lab.trajectory.shared.usage import add_usage, read_usage
from pamer_lab.trajectory.shared.vocabulary import role_of

NAME = "goose-session"
PARTS = {"toolRequest", "toolResponse", "frontendToolRequest", "toolConfirmationRequest"}
NOT_SENT = ("systemNotification", "toolConfirmationRequest", "summarizationRequested", "contextLengthExceeded", "actionRequired")


def detect(document: Document) -> bool:
    if document.kind == "sqlite":
        return "content_json" in get.first(document.root, "messages")
    root = one_value(document)
    if isinstance(root, dict) and (_calls(root) or _is_message(get.first(root, "conversation"))):
        return True
    header = first_row(document) if document.kind == "jsonl" else {}
    return "working_dir" in header or (document.kind == "jsonl" and any(_has_own_parts(_unwrapped(row)) for row in head(document)))


def _unwrapped(row: dict[str, Any]) -> dict[str, Any]:
    """The message of a line of `goose run --output-format stream-json`, or the line itself."""
    return get.obj(row, "message") if row.get("type") == "message" else row


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and role_of(value.get("role")) != "" and isinstance(value.get("content"), list) and "created" in value


def _has_own_parts(value: dict[str, Any]) -> bool:
    return _is_message(value) and any(part.get("type") in PARTS for part in get.objects(value, "content"))


def _calls(root: dict[str, Any]) -> list[dict[str, Any]]:
    """The provider calls of a recording, in file order."""
    found = [item for item in root.values() if isinstance(item, dict) and isinstance(item.get("output"), dict)]
    return [item for item in found if get.objects(get.obj(item, "input"), "messages") and get.obj(item["output"], "message")]


def read(document: Document) -> Iterator[Draft]:
    root = one_value(document)
    if document.kind == "sqlite":
        yield from _read_database(document.root)
    elif isinstance(root, dict) and (calls := _calls(root)):
        yield _read_recording(calls)
    elif isinstance(root, dict):
        yield _read_session(Draft(NAME, orphans="as_user"), root, list(get.placed(get.items(root, "conversation"), "conversation")))
    else:
        found = [(where, _unwrapped(row)) for where, row in rows(document)]
        draft = Draft(NAME, orphans="as_user")
        said = [(where, row) for where, row in found if "role" in row]
        for where, row in found[1:]:
            if "role" not in row:
                draft.unread(get.text(row, "type") or "no role", where)
        yield _read_session(draft, {} if "role" in found[0][1] else found[0][1], said)


def _read_database(tables: dict[str, Any]) -> Iterator[Draft]:
    sessions = {get.text(row, "id"): row for row in get.objects(tables, "sessions")}
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for number, row in enumerate(get.objects(tables, "messages")):
        message = {**row, "content": get.parsed(row.get("content_json")), "metadata": get.parsed(row.get("metadata_json"))}
        groups.setdefault(get.text(row, "session_id"), []).append((f"messages[{number}]", message))
    for key, group in groups.items():
        yield _read_session(Draft(NAME, where=key if len(groups) > 1 else "", orphans="as_user"), sessions.get(key, {}), group)


def _read_session(draft: Draft, facts: dict[str, Any], found: list[tuple[str, Any]]) -> Draft:
    log = Log(draft)
    hidden = False
    for where, item in found:
        draft.expect(item, where, "a message")
        seen = get.obj(item, "metadata")
        if hidden and seen.get("agentVisible") is True and seen.get("userVisible") is False:
            log.close()
            log.steps.append(Mark("compaction", "", {}, keep_none))
            hidden = False
        hidden = hidden or seen.get("agentVisible") is False
        _message(log, item, where)
        log.stamp(item.get("created") or item.get("created_timestamp"))
    for step in log.steps:
        if isinstance(step, Turn):
            step.name = ""  # it was only needed to join pieces
    draft.meta |= {"session": facts.get("id"), "title": get.text(facts, "name", "description"), "cwd": facts.get("working_dir")}
    model = get.parsed(facts.get("model_config_json"))
    draft.model = draft.model or get.text(model, "model_name") or get.text(get.obj(facts, "model_config"), "model_name")
    totals = {"input_tokens": get.count(facts, "accumulated_input_tokens"), "output_tokens": get.count(facts, "accumulated_output_tokens")}
    draft.usage = draft.usage or read_usage({key: value for key, value in totals.items() if value})
    return log.finish()


def _message(log: Log, item: dict[str, Any], where: str) -> None:
    given = item.get("content")
    if isinstance(given, list):
        for part in get.objects(item, "content"):
            if part.get("type") in NOT_SENT:
                log.mark("note", get.text(part, "msg", "message"), part=part.get("type"))
        given = [part for part in given if not (isinstance(part, dict) and part.get("type") in NOT_SENT)]
        if not given and item["content"]:
            return
    if role_of(item.get("role")) == "assistant":
        own = get.text(item, "id")
        if not (own and log.turn is not None and log.turn.name == own):
            log.close()
        before = log.turn.texts if log.turn is not None else []
        said, turn = len(before), log.agent(given, where)
        if said and len(turn.texts) > said:  # a stream writes a text in pieces, all with the message's id
            turn.texts[said - 1 : said + 1] = ["".join(turn.texts[said - 1 : said + 1])]
        turn.name = own
    else:
        log.say("system" if role_of(item.get("role")) == "system" else "user", given, where)


def _read_recording(calls: list[dict[str, Any]]) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    log = Log(draft)
    longest = max(calls, key=lambda call: len(call["input"]["messages"]))
    request, start = longest["input"], longest["input"]["messages"][0]
    if system := get.text(request, "system"):
        log.say("system", system, "input.system")
    draft.tools = read_tools(request.get("tools"))
    own = [call for call in calls if call["input"]["messages"][0] == start and get.text(call["input"], "system") == system]
    used: dict[int, Any] = {len(call["input"]["messages"]): get.obj(call["output"], "usage") for call in own}
    for place, item in enumerate([*request["messages"], longest["output"]["message"]]):
        where = f"input.messages[{place}]" if place < len(request["messages"]) else "output.message"
        _message(log, draft.expect(item, where, "a message"), where)
        if log.turn is not None and place in used:
            log.turn.usage = read_usage(used[place].get("usage"))
            draft.model = draft.model or get.text(used[place], "model")
            draft.usage = add_usage(draft.usage, log.turn.usage)
    for call in calls:
        if call not in own:
            said = [*get.objects(call["input"], "messages"), call["output"]["message"]]
            heard = [content_of(draft, item.get("content"), "another call of the provider") for item in said]
            texts = [f"{get.text(item, 'role')}: {content.words}" for item, content in zip(said, heard, strict=True)]
            log.side(texts[0], get.text(call["input"], "system"), *texts, purpose="another call of the provider")
    return log.finish()
