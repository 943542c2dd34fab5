"""Agents of the arena: the `Agent` Protocol, the embedded `reader`, and any model behind an OpenAI-compatible server.

Invariant: an agent sees only the messages and tools that it is given; whatever goes wrong with it is an `AgentError`, whose message is the
reason why its task ended.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from pamer_lab.arena.reader import Reader
from pamer_lab.controller.request import as_chat
from pamer_lab.errors import InputError, LabError
from pamer_lab.features.serialise import as_function
from pamer_lab.models.attempts import BadAnswer, server_client, with_attempts
from pamer_lab.models.profiles import ChatSettings
from pamer_lab.redaction import without_keys, without_secrets
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Usage

URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
ANSWER_TOKENS = 512
MOST_CHARACTERS = 1_000_000
"""Maximum length of an answer with its calls; a server that sends more ignores `max_tokens`."""
MOST_CALLS = 128
"""Maximum number of calls in one answer; stops a server that repeats itself within an answer."""
REQUEST_SECONDS = 120.0
SERVER_FAILED = "the server failed"
"""Start of the reason why a task ended, if its server did not answer."""


class AgentError(LabError):
    """Raised when the arena cannot continue with an agent's output; the task ends with this message."""


class Agent(Protocol):
    """Takes the next step."""

    @property
    def simulated(self) -> bool: ...

    """Whether the agent is a program rather than a model; its numbers are then labelled simulated."""

    @property
    def name(self) -> str: ...

    def act(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """The next assistant message: calls, or the answer."""
        ...


@dataclass(frozen=True)
class ServedAgent:
    """A model behind an OpenAI-compatible server, with the tools as functions."""

    model: str
    base_url: str
    timeout: float = REQUEST_SECONDS
    attempts: int = 3
    simulated: bool = False

    @property
    def name(self) -> str:
        return f"openai:{self.model}"

    @cached_property
    def _client(self) -> Any:
        # A server on this machine takes any key; one that wants a real key names it in the environment.
        os.environ.setdefault(KEY_VARIABLE, "none")
        settings = ChatSettings(
            kind="openai", base_url=self.base_url, model=self.model, api_key_variable=KEY_VARIABLE, timeout_seconds=self.timeout
        )
        return server_client(settings)

    def act(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        functions = [as_function(tool) for tool in tools]
        request = {
            "model": self.model,
            "messages": [as_chat(message) for message in messages],
            "tools": functions,
            "temperature": 0.0,
            "max_tokens": ANSWER_TOKENS,
        }
        try:
            what = f"{self.model} at {self.base_url}"
            return with_attempts(lambda: _message(self._client.chat.completions.create(**request)), what=what, attempts=self.attempts)
        except AgentError:
            raise
        except LabError as error:
            raise AgentError(f"{SERVER_FAILED}: {without_secrets(str(error))}") from error


def _message(answer: Any) -> Message:
    """The answer's message with its calls; keys are removed from all texts."""
    choices = getattr(answer, "choices", None)
    said = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if said is None:
        raise BadAnswer("the answer has no message")
    calls, wanted = [], getattr(said, "tool_calls", None) or []
    if not isinstance(wanted, list):
        raise BadAnswer("its calls are not a list")
    if len(wanted) > MOST_CALLS:
        raise AgentError(f"the agent made {len(wanted):,} calls at once; the limit is {MOST_CALLS}")
    for number, call in enumerate(wanted):
        function = getattr(call, "function", None)
        if function is None:
            raise BadAnswer("a call names no function")
        given = (getattr(call, "id", "") or f"call_{number}", getattr(function, "name", ""), getattr(function, "arguments", "") or "{}")
        calls.append(ToolCall(*map(_text, given)))
    usage = getattr(answer, "usage", None)
    used = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
    known = Usage(used[0] or 0, used[1] or 0) if all(isinstance(number, int) for number in used) else None
    content = _text(getattr(said, "content", ""))
    if (size := len(content) + sum(len(call.arguments) + len(call.name) for call in calls)) > MOST_CHARACTERS:
        raise AgentError(f"the agent's answer is too long: {size:,} characters; the limit is {MOST_CHARACTERS:,}")
    return Message("assistant", content, tuple(calls), usage=known)


def _text(value: Any) -> str:
    """Whatever a server sent as a text, as storable text without any keys that it echoes."""
    return without_keys(str(value or "").encode("utf-8", "replace").decode())


def parse_agent(text: str, seconds: float = REQUEST_SECONDS) -> Agent:
    """`reader`, `reader:notes=off` or `openai:MODEL`, whose server is OPENAI_BASE_URL and has up to `seconds` to answer."""
    name, _, rest = text.partition(":")
    if name == "reader" and rest in ("", "notes=on", "notes=off"):
        return Reader(notes=rest != "notes=off")
    if name == "openai" and rest:
        url = os.environ.get(URL_VARIABLE, "")
        if not url:
            raise InputError(f"agent {text!r} needs the address of its server in {URL_VARIABLE}, such as http://127.0.0.1:8000/v1")
        return ServedAgent(rest, url, min(seconds, REQUEST_SECONDS))
    raise InputError(f"an agent is reader, reader:notes=off, openai:MODEL or command:PROGRAM ARGUMENT…, not {text[:60]!r}")
