"""Block identities: a hash of what a block says, plus its occurrence number.

The canonical form holds roles, text, tool names, arguments as canonical JSON, and which result answers which call by
position, so that call ids and key order do not matter but content does. Two equal blocks in one trace stay two.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from pamer_lab.trajectory.values import Message


def canonical(messages: Sequence[Message]) -> bytes:
    """The canonical form of one block's messages."""
    order = {call.id: number for number, call in enumerate(messages[0].tool_calls)} if messages else {}
    rows: list[list[Any]] = []
    for message in messages:
        calls = [[call.name, _canonical_arguments(call.arguments)] for call in message.tool_calls]
        answers = order.get(message.tool_call_id) if message.role == "tool" else None
        rows.append([message.role, message.content, calls, answers, [[image.media_type, image.bytes] for image in message.images]])
    return orjson.dumps(rows)


def content_hash(messages: Sequence[Message]) -> str:
    """SHA-256 of a block's canonical form."""
    return hashlib.sha256(canonical(messages)).hexdigest()


def identities(blocks: Iterable[Sequence[Message]]) -> list[str]:
    """`<hash>:<occurrence>` for each block of a conversation, in order."""
    seen: Counter[str] = Counter()
    named: list[str] = []
    for messages in blocks:
        digest = content_hash(messages)
        named.append(f"{digest}:{seen[digest]}")
        seen[digest] += 1
    return named


def _canonical_arguments(text: str) -> str:
    """Arguments with sorted keys and no white space; text that is not JSON stays as it is."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
