"""Raw blocks <-> bytes: the archive keeps what the caller sent, byte for byte.

A block is archived as a JSON list of its message objects.
Invariant: `unpack(pack(messages)) == messages`, or `pack` raises; a body that does not match its hash is never returned.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pamer_lab.errors import StorageError
from pamer_lab.memory.records import RawBlock


def pack(messages: Sequence[dict[str, Any]]) -> RawBlock:
    """The archived form of one block."""
    try:
        body = json.dumps(list(messages), separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise StorageError(f"a block holds a value that JSON cannot keep ({error})") from error
    if json.loads(body) != list(messages):
        raise StorageError("a block does not come back from JSON as it was; only plain JSON values can be archived")
    return RawBlock(hashlib.sha256(body).hexdigest(), body)


def unpack(block: RawBlock) -> list[dict[str, Any]]:
    """The caller's messages, after the hash was found right."""
    if not is_intact(block):
        raise StorageError(f"archived block {block.raw_hash[:12]} does not match its hash; run: pamer-lab memory check")
    messages: list[dict[str, Any]] = json.loads(block.body)
    return messages


def is_intact(block: RawBlock) -> bool:
    return hashlib.sha256(block.body).hexdigest() == block.raw_hash
