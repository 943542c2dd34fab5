"""The `Chat` Protocol between prompts and answers, its values, and the one place that chooses an implementation.

Invariant: an answer requested with a schema is JSON of that shape, or an error; `usage` says where its numbers come from.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pamer_lab.errors import InputError
from pamer_lab.models.attempts import BadAnswer
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.profiles import Profile
from pamer_lab.models.usage import ChatUsage, UsageKind
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

__all__ = ["Chat", "ChatAnswer", "ChatMessages", "ChatUsage", "UsageKind", "load_chat", "parsed_answer", "schema_fault", "without_thinking"]

ChatMessages = Sequence[Mapping[str, str]]
"""`{"role": ..., "content": ...}`, in order."""

_THINKING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


@dataclass(frozen=True)
class ChatAnswer:
    """One answer."""

    text: str
    usage: ChatUsage
    """Of every attempt it took, the failed ones included."""
    raw: str = ""
    """As the model wrote it, thinking included."""
    truncated: bool = False
    """The model ran into its token limit. Never so with a schema: JSON that was cut is a `DoesNotFit` error."""

    def data(self) -> Any:
        """The answer as JSON; only for answers that were asked for with a schema."""
        return json.loads(self.text)


class Chat(Protocol):
    """A model that answers."""

    name: str

    def complete(self, messages: ChatMessages, *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> ChatAnswer:
        """The answer; with a JSON schema its text is JSON of that shape."""
        ...


def load_chat(profile: Profile, model: FrozenModel | None = None) -> Chat | None:
    """The chat model a profile names; None where it names none."""
    if profile.chat.kind != "none":
        refuse_in_reviewer_mode("Asking a model")
    match profile.chat.kind:
        case "none":
            return None
        case "openai":
            from pamer_lab.models.chat_client import ChatClient

            return ChatClient(profile.chat)
        case "local":
            from pamer_lab.models.local_chat import LocalChat

            if model is None:
                raise InputError("a local chat needs the loaded frozen model")
            return LocalChat(model)


def without_thinking(text: str) -> str:
    """What a model answered after its thinking, without space around it."""
    return _THINKING.sub("", text).strip()


def parsed_answer(text: str, schema: Mapping[str, Any] | None) -> str:
    """The answer's text without an empty thinking part; with a schema, checked JSON."""
    text = without_thinking(text)
    if schema is None:
        if not text:
            raise BadAnswer("the answer is empty")
        return text
    fenced = _FENCED.match(text)
    text = fenced.group(1).strip() if fenced else text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the answer is not JSON ({error})") from error
    fault = schema_fault(value, schema)
    if fault:
        raise BadAnswer(f"the answer's JSON does not fit: {fault}")
    return text


def schema_fault(value: Any, schema: Mapping[str, Any], place: str = "answer") -> str:
    """What is wrong with a value, or nothing; knows types, required and extra keys, items and enumerations."""
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else list(wanted or [])
    if kinds and not any(isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds):
        return f"{place} is {type(value).__name__}, not {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} is {value!r}, not one of {schema['enum']}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                return f"{place}.{key} is missing"
        for key, item in value.items():
            if key not in known and schema.get("additionalProperties") is False:
                return f"{place}.{key} is not known"
            if key in known and (fault := schema_fault(item, known[key], f"{place}.{key}")):
                return fault
    if isinstance(value, list) and "items" in schema:
        faults = (schema_fault(item, schema["items"], f"{place}[{number}]") for number, item in enumerate(value))
        return next((fault for fault in faults if fault), "")
    return ""
