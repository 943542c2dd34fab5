"""Identifies the sender of a request by a header, an id in the body, or only its history; always with upstream, API and credential.

Only hashes of ids and credentials leave this module, plus the session name that a client sent for the lab (`x-session-id`).
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pamer_lab.detection.echoes import repeats
from pamer_lab.live.credentials import CREDENTIALS, IN_ADDRESS, secrets_of
from pamer_lab.live.logs import SAFE
from pamer_lab.live.record import How
from pamer_lab.live.wire import Wire

NAME = "x-session-id"
"""The header with which a client names its session for the lab."""
HEADERS = (NAME, "x-claude-code-session-id", "session-id", "session_id", "x-session-affinity")
"""Headers that name a session, in order of precedence."""
BESIDE = ("x-claude-code-agent-id", "thread-id", "x-openai-subagent", "x-parent-session-id")
"""Headers that tell one agent of a session from another."""
CLIENTS = {
    "claude-cli": "claude-code",
    "codex": "codex",
    "opencode": "opencode",
    "litellm": "litellm",
    "openai": "openai-sdk",
    "asyncopenai": "openai-sdk",
    "anthropic": "anthropic-sdk",
    "asyncanthropic": "anthropic-sdk",
    "ai-sdk": "ai-sdk",
    "curl": "curl",
}
"""Prefixes of `user-agent` -> the client's name in the lab."""


@dataclass(frozen=True)
class Who:
    """Who sent a request, as hashes."""

    scope: str
    """Hash of upstream, API and credential."""
    named: str
    """Hash of the client's ids; empty if it sent none."""
    how: How
    client: str
    label: str = ""
    """The client's name for its session, if it can be a file name."""


def who_sent(headers: Mapping[str, str], wire: Wire | None, upstream: str, api: str, salt: bytes) -> Who:
    """The identity in a request's headers and body."""

    def digest(*parts: str) -> str:
        return hmac.new(salt, "\0".join(parts).encode("utf-8", "replace"), "sha256").hexdigest()[:20]

    in_address = (value for name, value in sorted(headers.items()) if name.startswith(IN_ADDRESS))
    scope = digest(upstream, api, *(headers.get(name, "") for name in CREDENTIALS), *in_address)
    agent = headers.get("user-agent", "").lower()
    client = next((name for start, name in CLIENTS.items() if agent.startswith(start)), "unknown")
    beside = [headers.get(name, "") for name in BESIDE]
    label = headers.get(NAME, "")
    safe = SAFE.fullmatch(label) and not repeats(label, secrets_of(headers))
    for name in HEADERS:
        if headers.get(name):
            return Who(scope, digest(name, headers[name], *beside), "header", client, label if safe else "")
    found = body_id(wire.fields) if wire else ""
    if found:
        return Who(scope, digest("body", found, *beside), "body", client)
    return Who(scope, digest("beside", *beside) if any(beside) else "", "lineage", client)


def body_id(fields: Mapping[str, Any]) -> str:
    """The session id in a body; ids of users do not count."""
    if isinstance(key := fields.get("prompt_cache_key"), str):
        return key
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        for name in ("session_id", "conversation_id", "thread_id"):
            if isinstance(metadata.get(name), str):
                return str(metadata[name])
        user = metadata.get("user_id")
        if isinstance(user, str) and "session" in user:
            return user
    conversation = fields.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""
