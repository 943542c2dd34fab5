"""Augment (Auggie CLI) sessions: a list of exchanges, with both the request and the response stored as nodes.

A node is identified by its fields, not by its type number. A request that holds tool results continues the answer before it.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "augment-session"
SENT = ("request_nodes", "structured_request_nodes", "nodes")
GOT = ("response_nodes", "structured_output_nodes")
STATE = {"ide_state_node", "edit_events_node", "checkpoint_ref_node", "change_personality_node"}
"""Nodes about the editor, which the agent's service adds to a request."""
FACTS = {"id", "type", "content", "timestamp_ms", "metadata", "billing_metadata"}


def detect(document: Document) -> bool:
    exchange = get.obj(get.first(one_value(document), "chatHistory"), "exchange")
    return "request_message" in exchange or bool(get.objects(exchange, *GOT))


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    log = Log(draft)
    for where, item in draft.each(root["chatHistory"], "chatHistory", "an exchange"):
        exchange = get.obj(item, "exchange")
        _request(log, exchange, where)
        _response(log, exchange, where)
        log.stamp(item.get("finishedAt"))
    draft.model = get.text(get.obj(root, "agentState"), "modelId", "model")
    draft.meta = {"session": root.get("sessionId"), "title": root.get("customTitle")}
    yield log.finish()


def _request(log: Log, exchange: dict[str, Any], where: str) -> None:
    said = [get.text(exchange, "request_message")]
    parts: list[Any] = []
    for place, node in _nodes(exchange, SENT, where):
        if result := get.obj(node, "tool_result_node"):
            held = [get.text(inner, "text_content") for inner in get.objects(result, "content_nodes")]
            output = get.text(result, "content") or "\n".join(filter(None, held))
            log.answer(get.text(result, "tool_use_id"), output, place, failed=result.get("is_error") is True)
        elif text := get.text(get.obj(node, "text_node"), "content"):
            said += [text] if text not in said else []
        elif image := get.obj(node, "image_node"):
            parts.append({"type": "image", "data": image.get("image_data")})
        elif summary := get.obj(node, "history_summary_node"):
            log.mark("compaction", get.text(summary, "summary_text", "summary"))
        elif not STATE & node.keys():
            log.draft.unread(f"request node of type {node.get('type')}", place)
    words: list[Any] = [{"type": "text", "text": text} for text in said if text]
    if words or parts:
        log.say("user", words + parts, where)


def _response(log: Log, exchange: dict[str, Any], where: str) -> None:
    log.close()
    turn = log.agent(get.text(exchange, "response_text") or None, where)
    for place, node in _nodes(exchange, GOT, where):
        if call := get.obj(node, "tool_use"):
            made = read_call(call, id="tool_use_id", name="tool_name", arguments="input_json")
            if made.id not in log.asked:
                log.call(made, place)
        elif thought := get.obj(node, "thinking"):
            turn.thinking.append(get.text(thought, "content", "summary", "text"))
        elif spent := get.obj(node, "token_usage"):
            sent = "input_tokens cache_read_input_tokens cache_creation_input_tokens"
            turn.usage = usage_in(spent, sent=sent, given="output_tokens", cached="cache_read_input_tokens")
        elif get.text(node, "content") and get.text(node, "content") not in "\n".join(turn.texts):
            turn.texts.append(get.text(node, "content"))
        elif unknown := {key for key, value in node.items() if value} - FACTS:
            log.draft.unread(f"response node with {min(unknown)}", place)


def _nodes(exchange: dict[str, Any], keys: tuple[str, ...], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in keys:
        yield from get.placed(get.objects(exchange, key), f"{where}.{key}")
