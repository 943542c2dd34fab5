"""What kind of event it is, by its type name: `agent.tool_use`, `toolCallStarted`, `TEXT_MESSAGE_CONTENT`, `user_prompt`.

For logs of programs we have never seen. Knows words only, no file format. Invariant: an event without a word we know has the kind "".
"""

import re
from typing import Any, Literal

from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.vocabulary import plain_word, role_of

EventWord = Literal["user", "agent", "system", "thinking", "call", "call_piece", "result", "piece", "thought_piece", "usage", "mark", ""]
"""`piece`, `thought_piece`, `call_piece`: a part of a text, a thought or a call's arguments that is being written. `mark`: it only says
that something began, continues or ended."""

TYPES = ("type", "event", "kind", "event_type", "eventType", "event_name", "action", "role")
BODIES = ("data", "payload", "message", "event", "body", "params", "msg", "item", "properties", "details")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TOOL = frozenset("tool tools function mcp action command skill shell bash exec".split())
RESULT = frozenset("result results output outputs response completed complete finished finish end ended return returned done".split())
RESULT |= frozenset("success error failed observation".split())
CALL = frozenset(
    "call calls use uses start started request requested begin invoke invoked invocation execute execution input ready".split()
)
PIECE = frozenset("delta chunk partial token stream".split())
THINKING = frozenset("thinking thought thoughts reasoning think".split())
USAGE = frozenset("usage tokens cost".split())
USER = frozenset("user human prompt question instruction task query".split())
AGENT = frozenset("assistant agent ai model llm bot answer final response completion gemini claude gpt text reply generation".split())
MARK = frozenset("start started end ended finish finished status idle init running ping heartbeat progress step turn session run".split())


def type_of(row: dict[str, Any]) -> str:
    """What the source calls an event."""
    return next((row[key] for key in TYPES if isinstance(row.get(key), str) and row[key]), "")


def body_of(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, those inside its payload included."""
    for key in BODIES:
        if isinstance(inner := row.get(key), dict):
            return {name: value for name, value in row.items() if name != key} | inner
    return row


def kind_of(name: str, body: dict[str, Any]) -> EventWord:
    """What an event is, by its type's words; its role decides where the type alone does not."""
    words = _words(name)
    speaker = role_of(body.get("role"))
    if plain_word(name) in ("observation", "toolresult", "tooloutput") or (words & TOOL and words & RESULT):
        return "result"
    if words & TOOL and not words & USER:
        if words & PIECE or "args" in words:
            return "call_piece"
        return "call" if words & CALL or "name" in body or "tool" in body else ""
    if words & THINKING:
        return "thought_piece" if words & PIECE else "thinking"
    if words & USAGE:
        return "usage"
    if words & PIECE or ("delta" in body and isinstance(body["delta"], str)):
        return "piece" if speaker not in ("user", "system") else ""
    if speaker in ("user", "assistant", "system"):
        return "agent" if speaker == "assistant" else "user" if speaker == "user" else "system"
    if speaker == "tool":
        return "result"
    if words & MARK and not words & {"message", "answer", "text", "response"}:
        return "mark"
    if words & USER and not words & {"assistant", "agent", "ai", "llm", "response"}:
        return "user"
    if words & AGENT and "request" not in words and "call" not in words:
        return "agent"
    return "system" if words == {"system"} or words == {"system", "prompt"} or words == {"system", "message"} else ""


def is_mark(name: str) -> bool:
    """Whether an event only says that something began, continues or ended, as long as it has no text."""
    return bool(_words(name) & MARK) and "error" not in _words(name)


def _words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def call_id_of(body: dict[str, Any]) -> str:
    """The id that a result or a piece gives of its call, under any name that ends like one."""
    for key, value in body.items():
        if isinstance(value, str | int) and plain_word(key).endswith(("tooluseid", "callid", "toolid", "invocationid")) and value != "":
            return get.as_text(value)
    return ""
