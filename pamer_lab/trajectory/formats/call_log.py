"""Recorded model calls: HAR files, HTTP cassettes, proxies, batch outputs (OpenAI, Anthropic), and rows with a prompt and an answer.

Bodies may be objects, JSON text, base64 or streams. Requests that continue each other become one trace, with the usage of each; other
records are counted, not read. Headers, and any API keys in them, are never read.
"""

import base64
import binascii
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pamer_lab.errors import NotThisFormat
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.gemini_parts import declared_tools
from pamer_lab.trajectory.shared.growing import Conversation, ModelCall, conversations
from pamer_lab.trajectory.shared.rewards import reward_of
from pamer_lab.trajectory.shared.rows import attempt, episodes
from pamer_lab.trajectory.shared.span_values import answers_of, prompt_of
from pamer_lab.trajectory.shared.streams import answer_of, events_of, looks_streamed
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Tool, Usage

NAME = "model-call-log"
SUFFIXES = (".har",)
HOLDERS = "interactions llm_interactions http_interactions recordings entries flows calls requests exchanges logs data".split()
PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("requestBody", "responseBody"),
    ("reqPayload", "respPayload"),
    ("raw_request", "raw_response"),
    ("llm_request", "llm_response"),
    ("req", "res"),
    ("input_messages", "response"),
    ("body", "response"),
    ("inputs", "outputs"),
    ("inputs", "output"),
    ("input", "output"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("messages", "completion"),
    ("messages", "response"),
    ("messages", "output"),
    ("messages", "choices"),
)
"""Fields of a row that hold the request and the response."""
BODIES = ("body", "inputBodyJson", "outputBodyJson", "postData", "content", "json", "data", "payload", "text", "string")
SESSIONS = ("trial_id", "session_id", "sessionId", "conversation_id", "thread_id", "run_id", "trace_id", "prompt_cache_key")
ANSWERED = {"role", "tool_calls", "finish_reason", "stop_reason"}
"""Fields that mark an object with `content` as a message."""
ANSWERS = ("choices", "candidates", "output", "content", "message", "completion", "generations")


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    return any(read_call_row(value, where) is not None for where, value in islice(_rows(document), 40))


def read(document: Document) -> Iterator[Draft]:
    calls: list[ModelCall] = []
    others = 0
    first = ""
    for where, value in _rows(document):
        if made := read_call_row(value, where):
            calls += made
        else:
            others, first = others + 1, first or where
    found = conversations(calls)
    if not found:
        raise NotThisFormat("contains no request to a model with its answer")
    for number, conversation in enumerate(found):
        draft = attempt(NAME, conversation[0].where, _read_one, conversation)
        if number == 0 and others:
            draft.unread("record without a model call", first, others)
        yield draft


def _read_one(calls: list[ModelCall]) -> Draft:
    draft = Draft(NAME, where=f"{calls[0].where} to {calls[-1].where}" if len(calls) > 1 else calls[0].where, orphans="as_user")
    draft.task_id = calls[0].session
    draft.meta.update(calls[0].facts)
    draft.reward = next((call.reward for call in reversed(calls) if call.reward is not None), None)
    return Conversation(draft, calls).write()


def _rows(document: Document) -> Iterator[tuple[str, Any]]:
    """The records of a log, wherever its file keeps them."""
    for where, value in episodes(document):
        holder = get.obj(value, "log") or value
        key = next((key for key in HOLDERS if get.objects(holder, key)), "")
        if key and not any(isinstance(holder, dict) and first in holder and second in holder for first, second in PAIRS):
            for number, (place, row) in enumerate(get.placed(holder[key], f"{where} {key}".strip())):
                yield place, _of_run(row, number) if key == "llm_interactions" else row
        else:
            yield where, value


def _of_run(row: Any, number: int) -> Any:
    """A request of a Trae run, which has only the new messages and continues the request before it."""
    answer = get.obj(row, "response")
    request = {"messages": get.items(row, "input_messages"), "previous_response_id": f"request {number - 1}"}
    response = {"id": f"request {number}", "choices": [{"message": answer}], **get.facts(answer, "usage", "model")}
    return {"request": request, "response": response, "timestamp": get.text(row, "timestamp")}


def read_call_row(value: Any, where: str) -> list[ModelCall] | None:
    """The model calls of one record; None if it has none."""
    if not isinstance(value, dict):
        return None
    result = get.obj(value, "result")
    if "custom_id" in value and (isinstance(value.get("response"), dict) or result):
        return _batch(value, where)
    for sent, got in PAIRS:
        if value.get(sent) is None or got not in value:
            continue
        request = value if sent == "messages" else value[sent]
        response = value if got == "choices" else value[got]  # a stored completion is its own answer
        if (get.items(request, "ws_events") or get.items(response, "ws_events")) and (calls := _sockets(request, response, where)):
            return calls
        if call := _call(value, request, response, where):
            return [call]
    return None


def _call(row: dict[str, Any], request: Any, response: Any, where: str) -> ModelCall | None:
    body, answer = _body(request), _body(response)
    if isinstance(body, list):
        body = {"messages": body}
    if not isinstance(body, dict) or not _is_request(body):
        return None
    said = answers_of(answer) if _is_answer(answer) else []
    prompt = prompt_of(body)
    if not said and not any(get.text(item, "role") in ("assistant", "model") for item in prompt):
        return None
    usage = usage_of(answer) or read_usage(row.get("usage") or row, row.get("cost"))
    session = get.text(row, *SESSIONS)
    call = ModelCall(where, prompt, said, tools_of(body), get.text(answer, "model", "modelVersion") or get.text(body, "model"), usage)
    call.id, call.follows = get.text(answer, "id"), get.text(body, "previous_response_id")
    call.session = call.group = session
    call.facts = {"session": session or body.get("prompt_cache_key")}
    call.reward = reward_of(row)
    call.at = get.as_time(get.some(row, "timestamp", "created_at", "startedDateTime", "time", "ts"))
    return call


def _is_request(body: dict[str, Any]) -> bool:
    """Whether an object is a model request: messages, contents, or a model with its input."""
    for key in ("messages", "contents"):
        if isinstance(items := parsed(body.get(key)), list) and items and isinstance(items[0], dict | list):
            return True
    items = body.get("input")
    if isinstance(items, list) and items and all(isinstance(item, dict) and ("role" in item or "type" in item) for item in items):
        return True
    return isinstance(body.get("model"), str) and isinstance(get.some(body, "input", "prompt"), str)


def _is_answer(answer: Any) -> bool:
    if isinstance(answer, str):
        return bool(answer)
    if isinstance(answer, list):
        return bool(answer) and all(isinstance(item, dict) and ({"role", "type"} & item.keys()) for item in answer)
    return isinstance(answer, dict) and ("role" in answer or any(answer.get(key) for key in ANSWERS))


def _body(value: Any, depth: int = 0) -> Any:
    """The body of a request or response without its wrappers: JSON as a value, a stream as the complete answer."""
    if isinstance(value, str):
        if looks_streamed(value):
            return answer_of(events_of(value)) or value
        found = parsed(value)
        if isinstance(found, str) and "\n" in found.strip() and (events := events_of(found)):
            return answer_of(events) or found
        return _body(found, depth + 1) if isinstance(found, dict | list) and depth < 6 else found
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value) and (answer := answer_of(value)):
            return answer
        return value
    if not isinstance(value, dict) or depth > 6:
        return value
    if _is_request(value) or any(isinstance(value.get(key), list) for key in ("choices", "candidates", "output")):
        return value
    for key in ("sse_events", "events", "chunks"):
        if (events := get.objects(value, key)) and (answer := answer_of([_event(event) for event in events])):
            return answer
    for key in BODIES:
        inner = value.get(key)
        if key == "content" and (ANSWERED & value.keys() or value.get("type") == "message"):
            return value
        if key in ("text", "string", "content") and value.get("encoding") == "base64" and isinstance(inner, str):
            try:
                return _body(base64.b64decode(inner).decode("utf-8", "replace"), depth + 1)
            except (binascii.Error, ValueError):
                return value
        if isinstance(inner, dict | str | list) and inner:
            return _body(inner, depth + 1)
    return value


def _event(event: dict[str, Any]) -> dict[str, Any]:
    data = parsed(event.get("data"))
    return data if isinstance(data, dict) else event


def _batch(value: dict[str, Any], where: str) -> list[ModelCall] | None:
    """One line of a batch's output, whose request is in another file."""
    response = get.obj(value, "response")
    body = get.obj(response, "body") or get.obj(get.obj(value, "result"), "message") or response
    if not _is_answer(body):
        return None
    call = ModelCall(where, [], answers_of(body), [], get.text(body, "model"), usage_of(body), session=get.text(value, "custom_id"))
    return [call]


def _sockets(request: Any, response: Any, where: str) -> list[ModelCall]:
    """A WebSocket session of the Responses API: several requests, each answered by a run of events."""
    answers: dict[str, Any] = {}
    run: list[dict[str, Any]] = []
    for event in get.objects(response, "ws_events"):
        run.append(event)
        if event.get("type") in ("response.completed", "response.failed", "response.incomplete"):
            answer = answer_of(run) or {}
            answers[get.text(answer, "id")] = answer
            run = []
    calls: list[ModelCall] = []
    asked = [event for event in get.objects(request, "ws_events") if event.get("type") == "response.create"]
    for number, (body, (own, answer)) in enumerate(zip(asked, answers.items(), strict=False)):
        prompt = prompt_of({"input": body.get("input")})
        if calls or body.get("input"):
            instructions = [] if calls else [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
            call = ModelCall(f"{where} request {number + 1}", [*instructions, *prompt], answers_of(answer), tools_of(body))
            call.model, call.usage, call.id = get.text(answer, "model"), usage_of(answer), own
            call.follows = get.text(body, "previous_response_id") if calls else ""
            calls.append(call)
    return calls


def tools_of(body: dict[str, Any]) -> list[Tool]:
    """The tools of a request, in the format of OpenAI, Anthropic, Gemini or Bedrock."""
    specs = [get.obj(item, "toolSpec") for item in get.objects(get.obj(body, "toolConfig"), "tools")]
    bedrock = [spec | {"parameters": get.obj(spec, "inputSchema").get("json")} for spec in specs]
    return read_tools(bedrock or declared_tools(body.get("tools")) or body.get("tools") or body.get("functions"))


def usage_of(answer: Any) -> Usage | None:
    return next(
        (usage for key in ("usage", "usageMetadata", "usage_metadata") if (usage := read_usage(get.obj(answer, key) or None))), None
    )
