"""Logs of single model calls, one record per request or per request with its response (LiteLLM style, proxies).

Records are `{type: request, request_params: {...}}` followed by `{type: response, response: {...}}`, or hold both. A trace is
the longest request of a conversation and its response; requests that do not continue each other become separate traces. Keys
of the log that hold secrets or sampling settings are not read.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.exchanges import Conversation, Exchange, group, read_answer, write
from pamer_lab.trajectory.shared.rewards import reward_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episodes
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "llm-request-response-log"
REQUEST_KEYS = ("request_params", "request", "request_body", "params", "body", "payload", "kwargs", "input")
SESSION_KEYS = ("trial_id", "session_id", "conversation_id", "run_id", "trace_id")


def detect(document: Document) -> bool:
    if document.kind == "json" and not isinstance(document.root, list):
        return False
    head = first_episodes(document, 10)
    return any(_request(value) is not None and _answers(head, value) for value in head)


def _answers(head: list[Any], request: Any) -> bool:
    """Whether a request is a model call: its `type` says so, or a response comes with it or in another record."""
    if request.get("type") in ("request", "llm_request") or "response" in request:
        return True
    return any(isinstance(value, dict) and isinstance(value.get("response"), dict) for value in head)


def _request(value: Any) -> dict[str, Any] | None:
    """The request body of a record: the first object in it that has `messages`."""
    if not isinstance(value, dict):
        return None
    for key in REQUEST_KEYS:
        if isinstance(get.obj(value, key).get("messages"), list):
            return get.obj(value, key)
    has_both = isinstance(value.get("messages"), list) and isinstance(value.get("response"), dict)
    return value if has_both else None


def read(document: Document) -> Iterator[Draft]:
    exchanges, stray = _exchanges(document)
    conversations = group(exchanges)
    for number, conversation in enumerate(conversations):
        where = f"{conversation.exchanges[0].where} to {conversation.exchanges[-1].where}"
        draft = attempt(NAME, where, _read_one, conversation)
        if len(conversations) > 1:
            draft.warn(where, f"the log contains {len(conversations)} conversations; this is number {number + 1}")
        for place in stray if number == 0 else []:
            draft.warn(place, "is neither a request nor a response; left out")
        yield draft


def _read_one(conversation: Conversation) -> Draft:
    draft = write(Draft(NAME, orphans="as_user"), conversation)
    draft.meta["calls"] = len(conversation.exchanges)
    draft.task_id = conversation.longest.session
    draft.reward = next((one.reward for one in reversed(conversation.exchanges) if one.reward is not None), None)
    return draft


def _exchanges(document: Document) -> tuple[list[Exchange], list[str]]:
    """Requests in log order with their answers, and the places of records that are neither."""
    found: list[Exchange] = []
    by_id: dict[str, Exchange] = {}
    stray: list[str] = []
    for where, value in episodes(document):
        body = _request(value)
        response = value.get("response") if isinstance(value, dict) else None
        identity = get.text(value, "request_id", "call_id")
        if body is not None:
            session = get.text(value, *SESSION_KEYS)
            found.append(Exchange(where, body["messages"], body.get("system"), body.get("tools"), get.text(body, "model"), session))
            found[-1].reward = reward_of(value)
            by_id[identity] = found[-1]
        if isinstance(response, dict):
            unanswered = next((one for one in found if one.answer is None), None)
            target = found[-1] if body is not None else by_id.get(identity) or unanswered
            if target is not None:
                _answer(target, value, response)
                continue
        if body is None:
            stray.append(where)
    return found, stray


def _answer(exchange: Exchange, value: dict[str, Any], response: dict[str, Any]) -> None:
    exchange.answer, usage, model = read_answer(response)
    exchange.usage = read_usage(response.get("usage") or value.get("usage"), value.get("cost")) or usage
    exchange.model = model or exchange.model
