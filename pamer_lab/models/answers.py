"""The text of a chat model's answer: thinking removed, broken characters replaced, JSON checked against its schema.

Knows no server and no model.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from pamer_lab.models.attempts import BadAnswer

_THINKING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair."""
_FENCED = re.compile(r"\A```(?:json)?[ \t\r]*\n(.*)\n```\Z", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def without_thinking(text: str) -> str:
    """What a model answered after its thinking, without space around it."""
    return _THINKING.sub("", text).strip()


def mended(text: str) -> str:
    """A server's text as valid UTF-8: half a surrogate pair, which no file or request can hold, becomes U+FFFD."""
    return _HALF.sub("\ufffd", text)


def parsed_answer(text: str, schema: Mapping[str, Any] | None) -> str:
    """The answer's text without a thinking part; with a schema, checked JSON."""
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
    return mended(json.dumps(value, ensure_ascii=False)) if "\\u" in text else text


def schema_fault(value: Any, schema: Mapping[str, Any], place: str = "answer") -> str:
    """What is wrong with a value, or nothing; checks types, required and extra keys, items and enumerations."""
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
