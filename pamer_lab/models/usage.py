"""Tokens that calls to a chat model took, including those whose answer could not be used.

Knows nothing of operations or prices. An error that ends an operation carries the sum of its calls (`usage_of`), so that a
failure is counted with what it cost on the server. Usage that no server reported is counted as unknown, never estimated.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pamer_lab.models.chat import Chat, ChatAnswer, ChatMessages

UsageKind = Literal["recorded", "measured"]
"""`recorded`: the server's own numbers. `measured`: counted here with the model's tokenizer."""

_ATTRIBUTE = "chat_usage"


@dataclass(frozen=True)
class ChatUsage:
    """Tokens of one call or of several."""

    input_tokens: int
    output_tokens: int
    kind: UsageKind
    calls: int = 1
    """Calls that a model worked on, with or without a usable answer."""
    unknown: int = 0
    """Those of them without a usage record; their tokens are in no sum."""

    def __add__(self, other: "ChatUsage") -> "ChatUsage":
        return ChatUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.kind if self.calls else other.kind,
            self.calls + other.calls,
            self.unknown + other.unknown,
        )


NO_USAGE = ChatUsage(0, 0, "recorded", calls=0)
UNKNOWN_USAGE = ChatUsage(0, 0, "recorded", unknown=1)
"""One call that a model worked on and whose tokens nobody reported."""


def usage_of(error: BaseException) -> ChatUsage:
    """What the calls before this error took."""
    usage = getattr(error, _ATTRIBUTE, NO_USAGE)
    return usage if isinstance(usage, ChatUsage) else NO_USAGE


def set_usage(error: BaseException, usage: ChatUsage) -> None:
    """Attach to an error what all calls before it took, replacing what it carries already."""
    setattr(error, _ATTRIBUTE, usage)


class MeteredChat:
    """A chat that sums what its calls take."""

    def __init__(self, chat: "Chat") -> None:
        self.name = chat.name
        self.usage = NO_USAGE
        self._chat = chat

    def complete(self, messages: "ChatMessages", *, max_tokens: int, schema: Mapping[str, Any] | None = None) -> "ChatAnswer":
        try:
            answer = self._chat.complete(messages, max_tokens=max_tokens, schema=schema)
        except Exception as error:
            self.usage += usage_of(error)
            raise
        self.usage += answer.usage
        return answer


@contextmanager
def metered(chat: "Chat") -> Iterator[MeteredChat]:
    """The chat with a meter; an error that leaves the block carries what all calls in it took."""
    meter = MeteredChat(chat)
    try:
        yield meter
    except Exception as error:
        set_usage(error, meter.usage)
        raise
