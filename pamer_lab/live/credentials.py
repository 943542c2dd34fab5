"""Removes a request's credentials from its record; what goes over the wire keeps them.

Clients and servers may repeat a key in a message or an error. Knows only the keys that came with the request itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote

from msgspec import structs

from pamer_lab.detection.echoes import may_repeat, without_values
from pamer_lab.live.wire import Wire
from pamer_lab.trajectory.values import Message, Tool, ToolCall

CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "openai-organization", "openai-project")
IN_ADDRESS = "?"
"""Prefix of URL parameters that are kept among the headers; no header name contains it."""
WORDS = ("key", "token", "secret", "auth", "password", "credential", "signature")
"""Words in the names of headers and parameters that hold a credential."""
REDACTED = "[redacted credential]"


def in_address(query: bytes) -> dict[str, str]:
    """The credentials in a URL's query (`?key=…`), to be added to the request's headers."""
    given = parse_qsl(query.decode("latin-1"))
    return {IN_ADDRESS + name: value for name, value in given if name == "sig" or any(word in name.lower() for word in WORDS)}


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """The credentials in a request's headers and address, in the forms in which a text may repeat them."""
    found: set[str] = set()
    for name, value in headers.items():
        if name.startswith(IN_ADDRESS):
            found |= {value, quote(value, safe="")}
        elif name in CREDENTIALS or any(word in name for word in WORDS):
            bare = value.partition(" ")[2].strip() if value.lower().startswith(("bearer ", "basic ", "token ")) else value
            found |= {bare, *(pair.partition("=")[2].strip() for pair in bare.split(";") if name == "cookie")}
    return sorted((value for value in found if len(value) >= 8), key=len, reverse=True)


def redacted(wire: Wire, headers: Mapping[str, str]) -> Wire:
    """The wire with the request's own credentials removed from its messages and tools; its bytes are unchanged."""
    secrets = secrets_of(headers)
    if not secrets or not may_repeat(wire.body.decode("latin-1"), secrets):
        return wire
    units = tuple(replace(unit, messages=tuple(cleaned(message, secrets) for message in unit.messages)) for unit in wire.units)
    tools = tuple(Tool(*(_inside(part, secrets) for part in structs.astuple(tool))) for tool in wire.tools)
    return replace(wire, units=units, preamble=tuple(cleaned(message, secrets) for message in wire.preamble), tools=tools)


CALL_TEXTS, MESSAGE_TEXTS = ("id", "name", "arguments"), ("content", "thinking", "name", "tool_call_id")


def cleaned(message: Message, secrets: Sequence[str]) -> Message:
    """The message without these secrets; a call and its result still share the same id."""
    calls = tuple(structs.replace(call, **_cleaned(call, CALL_TEXTS, secrets)) for call in message.tool_calls)
    return structs.replace(message, **_cleaned(message, MESSAGE_TEXTS, secrets), tool_calls=calls)


def _cleaned(value: Message | ToolCall, names: Sequence[str], secrets: Sequence[str]) -> dict[str, str]:
    return {name: without(getattr(value, name), secrets) for name in names}


def without(text: str, secrets: Sequence[str]) -> str:
    """The text with these secrets replaced, however they are encoded."""
    return without_values(text, secrets, REDACTED)


def _inside(value: Any, secrets: Sequence[str]) -> Any:
    match value:
        case str():
            return without(value, secrets)
        case dict():
            return {without(str(key), secrets): _inside(item, secrets) for key, item in value.items()}
        case list():
            return [_inside(item, secrets) for item in value]
    return value
