"""Codex runs as thread items: `codex exec --json`, the notifications of its app server, and its history in SQLite.

An item is logged when it starts, while it grows and when it is complete; the last version counts. A command, a tool or an edit
is a call and its result in one item. Totals come with `turn.completed`.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.usage import add_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import plain_word
from pamer_lab.trajectory.values import ToolCall

NAME = "codex-exec-json"
HISTORY = "thread_items"
"""Table of Codex's store that keeps one thread item per row."""
STAGES = ("started", "updated", "completed")
ARGUMENTS = (
    "command",
    "arguments",
    "query",
    "changes",
    "action",
    "path",
    "prompt",
    "items",
    "revised_prompt",
    "input",
    "tool",
    "receivers",
)
FACTS = frozenset("id type status server tool cwd process_id processId".split())


def detect(document: Document) -> bool:
    if document.kind == "sqlite":
        return any("item_json" in row for row in get.objects(document.root, HISTORY)[:1])
    return any(_stage(row) and "type" in _item(row) for row in head(document))


def _stage(row: dict[str, Any]) -> str:
    """`started`, `updated` or `completed` if the line is about an item, otherwise empty."""
    kind = get.text(row, "type") or get.text(row, "method")
    first, _, last = kind.replace("/", ".").partition(".")
    return last if first == "item" and last in STAGES else ""


def _item(row: dict[str, Any]) -> dict[str, Any]:
    return get.obj(row, "item") or get.obj(get.obj(row, "params"), "item")


def read(document: Document) -> Iterator[Draft]:
    if document.kind == "sqlite":
        yield from _read_history(document.root)
        return
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    newest: dict[str, tuple[str, dict[str, Any]]] = {}
    for where, row in rows(document):
        if not _stage(row):
            _add_items(log, newest)
            _line(log, row, where)
        elif own := get.text(_item(row), "id"):
            newest[own] = (newest[own][0] if own in newest else where, _item(row))
        else:
            newest[where] = (where, _item(row))
    _add_items(log, newest)
    yield log.finish()


def _read_history(tables: dict[str, list[dict[str, Any]]]) -> Iterator[Draft]:
    """A trace per thread; rows are in the order of the thread's own log."""
    threads: dict[str, list[tuple[int, str, Any]]] = {}
    for where, row in get.placed(tables[HISTORY], HISTORY):
        order = get.count(row, "rollout_ordinal") or 0
        threads.setdefault(get.text(row, "thread_id"), []).append((order, where, get.parsed(row.get("item_json"))))
    for own, items in threads.items():
        draft = Draft(NAME, where=own if len(threads) > 1 else "", orphans="as_user")
        draft.meta["session"] = own
        log = Log(draft)
        for _, where, item in sorted(items, key=lambda entry: entry[0]):
            add_item(log, item if isinstance(item, dict) else {}, where)
        yield log.finish()


def _add_items(log: Log, newest: dict[str, tuple[str, dict[str, Any]]]) -> None:
    for where, item in newest.values():
        add_item(log, item, where)
    newest.clear()


def add_item(log: Log, item: dict[str, Any], where: str) -> None:
    """One thread item, in any of its spellings (`agent_message`, `agentMessage`, `AgentMessage`)."""
    match plain_word(item.get("type")):
        case "agentmessage" | "assistantmessage":
            log.agent(item.get("text") if isinstance(item.get("text"), str) else _parts(item), where)
        case "reasoning":
            thoughts = [get.text(item, "text"), *map(get.as_text, get.items(item, "summary", "summary_text"))]
            log.open(where).thinking += [text for text in thoughts if text]
        case "usermessage":
            log.say("user", item.get("text") if isinstance(item.get("text"), str) else _parts(item), where)
        case "error" | "warning":
            log.mark("note", get.text(item, "message", "text"), item=item.get("type"))
        case "todolist" | "plan":
            log.mark("note", get.text(item, "text") or json_text(item.get("items")), item=item.get("type"))
        case "contextcompaction":
            log.mark("compaction", get.text(item, "summary", "text"))
        case "":
            log.draft.unread("item without a type", where)
        case _:
            _tool(log, item, where)


def _parts(item: dict[str, Any]) -> Any:
    """Parts with their types in lower case, as the vocabulary has them."""
    return [{**part, "type": get.text(part, "type").lower()} for part in get.objects(item, "content")]


def _tool(log: Log, item: dict[str, Any], where: str) -> None:
    kind = get.text(item, "type")
    name = ".".join(filter(None, (get.text(item, "server"), get.text(item, "tool")))) or kind
    given = {key: item[key] for key in ARGUMENTS if item.get(key) is not None and not (key == "tool" and isinstance(item[key], str))}
    arguments = given.get("arguments", given)
    own = get.text(item, "id") or where
    log.call(ToolCall(own, name, json_text(arguments)), where)
    rest = {key: value for key, value in item.items() if key not in FACTS and key not in ARGUMENTS and value is not None}
    output = next((item[key] for key in ("aggregated_output", "aggregatedOutput", "output") if isinstance(item.get(key), str)), None)
    result, fault = item.get("result"), item.get("error")
    if output is None and result is not None:
        output = result.get("Ok", result.get("Err", result)) if isinstance(result, dict) else result
    if not output and fault is not None:
        output = get.text(fault, "message") or json_text(fault)
    code = get.count(item, "exit_code", "exitCode")
    done = plain_word(item.get("status")) not in ("inprogress", "pending", "")
    if output or done or code is not None or rest:
        failed = plain_word(item.get("status")) in ("failed", "declined", "error") or code not in (None, 0) or bool(fault)
        log.answer(own, output, where, failed=failed, name=name, rest=rest or {"status": item.get("status")})


def _line(log: Log, row: dict[str, Any], where: str) -> None:
    kind = (get.text(row, "type") or get.text(row, "method")).replace("/", ".")
    body = get.obj(row, "params") or row
    match kind:
        case "thread.started":
            log.draft.meta["session"] = get.text(body, "thread_id", "threadId")
        case "turn.started" | "turn.completed":
            log.close()
            used = usage_in(body.get("usage"), sent="input_tokens", given="output_tokens", cached="cached_input_tokens")
            log.draft.usage = add_usage(log.draft.usage, used)
        case "turn.failed" | "error":
            fault = body.get("error")
            log.mark("note", get.text(fault, "message") or get.text(body, "message") or json_text(fault), event=kind)
        case "message" | "user_message" if text := get.text(row, "text", "message", "prompt"):
            log.say("user", text, where)
        case _:
            log.draft.unread(kind or "no type", where)
