"""Parses a request body of one of the three APIs into our messages, each with the bytes it came from.

A unit is the smallest piece of a history that is kept or left out: one chat message or, in the Responses API, the items of one model turn.
Only reads; `live.view` builds the bodies that go upstream.
Invariant: the preamble's messages followed by the units' are the history; each block of it starts with a unit.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson
from msgspec import structs

from pamer_lab.bounded import Bounded
from pamer_lab.controller.request import read_message
from pamer_lab.errors import FormatError
from pamer_lab.live.json_spans import Span, elements, members, without_halves
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.parts import read_content
from pamer_lab.trajectory.shared.responses_items import Items
from pamer_lab.trajectory.shared.steps import Result, Said
from pamer_lab.trajectory.shared.steps import Turn as ModelTurn
from pamer_lab.trajectory.values import Message, Tool

Api = Literal["chat", "messages", "responses"]
"""`chat`: OpenAI chat completions. `messages`: Anthropic messages. `responses`: OpenAI responses."""

_ENDS: dict[str, Api] = {"/chat/completions": "chat", "/messages": "messages", "/responses": "responses"}
PATHS: dict[str, Api] = {f"{base}{path}": api for base in ("/v1", "") for path, api in _ENDS.items()}
"""Paths that ask a model; everything else is passed through."""
ARRAYS: dict[Api, str] = {"chat": "messages", "messages": "messages", "responses": "input"}
MARK = "cache_control"
MODEL_ITEMS = ("reasoning", "compaction")
"""Items of the model other than its messages and calls."""


class UnreadableError(FormatError):
    """Raised when a body cannot be read safely; it is then forwarded unchanged."""


@dataclass(frozen=True)
class Unit:
    """A span of a body's bytes, and the messages in it."""

    span: Span
    messages: tuple[Message, ...]
    digest: str
    """Hash of its content without cache marks."""
    marked: bool = False
    """Whether it has a cache mark."""
    parts: tuple[Span, ...] = ()
    """Elements of the array that it consists of."""

    @property
    def opens(self) -> bool:
        """Whether a block begins here."""
        return self.messages[0].role == "assistant"


@dataclass(frozen=True)
class Wire:
    """A parsed request body."""

    api: Api
    body: bytes
    preamble: tuple[Message, ...]
    """System texts outside the array or at its beginning."""
    heads: tuple[Unit, ...]
    """Units of the array that belong to the preamble."""
    units: tuple[Unit, ...]
    tools: tuple[Tool, ...]
    model: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Members of the body that may identify a session."""
    earlier: int = 0
    """Number of units at the start that are not in the body because the provider keeps them."""

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.preamble, *(message for unit in self.units for message in unit.messages))

    @property
    def digests(self) -> list[str]:
        return [unit.digest for unit in self.units]

    @property
    def kept_elsewhere(self) -> bool:
        """Whether the provider keeps the history, and the body has only what is new."""
        return any(name in self.fields for name in ("previous_response_id", "conversation"))

    def after(self, digests: Sequence[str], units: Sequence[tuple[Message, ...]]) -> "Wire":
        """The request, preceded by the history that the provider keeps."""
        known = tuple(Unit((0, 0), messages, digest) for digest, messages in zip(digests, units, strict=True))
        return replace(self, units=(*known, *self.units), earlier=len(known))


Known = Bounded[bytes, Unit]
"""Units by a hash of their bytes, so that a history that only grows is read once."""


def read_wire(api: Api, body: bytes, known: Known | None = None) -> Wire:
    """The body's messages with their positions; `UnreadableError` if anything in it is ambiguous."""
    try:
        return _read(api, body, known)
    except UnreadableError:
        repaired = without_halves(body)  # same length, so positions stay valid
        if repaired == body:
            raise
        return replace(_read(api, repaired, known), body=body)


def _read(api: Api, body: bytes, known: Known | None) -> Wire:
    try:
        top = members(body)
        value = {key: orjson.loads(body[slice(*span)]) for key, span in top.items() if key != ARRAYS[api]}
        place = top.get(ARRAYS[api])
        if place is None:
            raise UnreadableError(f"has no {ARRAYS[api]!r}")
        units = _READERS[api](body, place, known if known is not None else Bounded(1))
    except UnreadableError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FormatError) as error:
        raise UnreadableError(f"cannot be read ({type(error).__name__}: {str(error)[:200]})") from error
    heads = 0
    while heads < len(units) and all(message.role == "system" for message in units[heads].messages):
        heads += 1
    outside = value.get("system", value.get("instructions")) if api != "chat" else None
    first = [Message("system", read_content(outside).text)] if outside else []
    preamble = (*first, *(message for unit in units[:heads] for message in unit.messages))
    named = ("prompt_cache_key", "metadata", "previous_response_id", "conversation")
    return Wire(
        api,
        body,
        preamble,
        tuple(units[:heads]),
        tuple(units[heads:]),
        tuple(read_tools(value.get("tools"))),
        str(value.get("model") or ""),
        {key: value[key] for key in named if value.get(key) is not None},
    )


def _each(body: bytes, spans: Sequence[Span], known: Known, read: Callable[[list[Any]], tuple[Message, ...]]) -> Unit:
    """One unit made of these elements, cached by its bytes."""
    start, end = spans[0][0], spans[-1][1]
    raw = body[start:end]
    key = hashlib.blake2b(raw, digest_size=16).digest()
    unit = known.get(key)
    if unit is None:
        values = [orjson.loads(body[slice(*span)]) for span in spans]
        messages = read(values)
        if not messages:
            raise UnreadableError("has an element without a message")
        digest = hashlib.sha256(orjson.dumps([_plain(value) for value in values], option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        known[key] = unit = Unit((0, 0), messages, digest, MARK.encode() in raw and any(_has_mark(value) for value in values))
    return replace(unit, span=(start, end), parts=tuple(spans))


def _plain(value: Any) -> Any:
    """An element in the form that is compared: without cache marks, and a plain text as a list of one."""
    if not isinstance(value, dict):
        return value
    kept = {key: inner for key, inner in value.items() if key != MARK}
    content = kept.get("content")
    if isinstance(content, str) and "role" in kept:
        kept["content"] = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        kept["content"] = [_plain(part) for part in content]
    return kept


def _has_mark(value: Any) -> bool:
    if isinstance(value, dict):
        return MARK in value or _has_mark(value.get("content"))
    return any(_has_mark(part) for part in value) if isinstance(value, list) else False


def _read_chat(body: bytes, place: Span, known: Known) -> list[Unit]:
    return [_each(body, [span], known, lambda values: (_chat_message(values[0]),)) for span in elements(body, place)]


def _chat_message(item: Any) -> Message:
    message = read_message(item, "a message")
    thought = item.get("reasoning_content") or item.get("reasoning")
    return structs.replace(message, thinking=thought) if isinstance(thought, str) else message


def _read_messages(body: bytes, place: Span, known: Known) -> list[Unit]:
    return [_each(body, [span], known, lambda values: _anthropic(values[0])) for span in elements(body, place)]


def _anthropic(item: Any) -> tuple[Message, ...]:
    role = item.get("role")
    content = read_content(item.get("content"))
    if role == "assistant":
        said = Message("assistant", content.text, tuple(content.calls), thinking=content.thought, images=tuple(content.images))
        ran = [Message("tool", result.text, tool_call_id=own, error=failed) for own, result, failed in content.results]
        return (said, *ran)
    if role not in ("user", "system"):
        raise UnreadableError(f"has the role {role!r}")
    results = [
        Message("tool", result.text, tool_call_id=own, images=tuple(result.images), error=failed) for own, result, failed in content.results
    ]
    said_too = content.texts or content.images or not results
    return (*results, *([Message(role, content.text, images=tuple(content.images))] if said_too else []))


def _read_responses(body: bytes, place: Span, known: Known) -> list[Unit]:
    if body[place[0] : place[0] + 1] == b'"':
        return [_each(body, [place], known, lambda values: (Message("user", values[0]),))]
    groups: list[list[Span]] = []
    joins = False
    for span in elements(body, place):
        item = orjson.loads(body[slice(*span)])
        own = _of_the_model(item)
        if own and joins:
            groups[-1].append(span)
        else:
            groups.append([span])
        joins = own
    return [_each(body, group, known, _items) for group in groups]


def _of_the_model(item: Any) -> bool:
    kind = item.get("type") or "message"
    if kind == "message":
        return bool(item.get("role") == "assistant")
    return kind in MODEL_ITEMS or kind.endswith("_call")


def _items(values: list[Any]) -> tuple[Message, ...]:
    read = Items(Draft("live"))
    for value in values:
        read.add(value, "input")
    found: list[Message] = []
    answered = {step.call_id for step in read.steps if isinstance(step, Result)} | read.due
    for step in read.steps:
        match step:
            case ModelTurn():
                text, thought = "\n".join(step.texts), "\n".join(step.thinking)
                found.append(Message("assistant", text, tuple(step.calls), thinking=thought, images=tuple(step.images)))
                # A tool that ran at the provider may leave no result, and none will follow: an empty one completes the step.
                found += [Message("tool", "", tool_call_id=call.id) for call in step.calls if call.id not in answered]
            case Result():
                found.append(Message("tool", step.text, tool_call_id=step.call_id, images=tuple(step.images), error=step.error))
            case Said():
                found.append(Message(step.role, step.text, images=tuple(step.images)))
    return tuple(found)


_READERS: dict[Api, Callable[[bytes, Span, Known], list[Unit]]] = {
    "chat": _read_chat,
    "messages": _read_messages,
    "responses": _read_responses,
}


def read_answer_message(api: Api, value: Mapping[str, Any]) -> Message | None:
    """The assistant message of a complete answer; None if it has none."""
    if api == "chat":
        choices = value.get("choices") or []
        return _chat_message({"role": "assistant", **choices[0]["message"]}) if choices and choices[0].get("message") else None
    if api == "messages":
        return _anthropic({"role": "assistant", "content": value["content"]})[0] if value.get("content") else None
    found = [message for message in _items(list(value.get("output") or [])) if message.role == "assistant"]
    return found[0] if found else None
