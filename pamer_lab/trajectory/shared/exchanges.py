"""Logged model calls -> conversations, for the readers of request logs and completion logs.

Every request of such a log repeats the prompt so far, so a conversation is its longest request plus the answer to it; the
other requests are prefixes of it. What a retry dropped (a malformed answer and the hint after it) is in no later
request and is kept as an event.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_tools
from pamer_lab.trajectory.shared.messages import add_message
from pamer_lab.trajectory.shared.parts import content_of, read_content
from pamer_lab.trajectory.shared.usage import add_usage, read_usage
from pamer_lab.trajectory.values import Usage

RETRY_MESSAGES = 6
"""A request that drops at most this many of the newest messages continues the conversation (up to three re-asked
answers with their hints); one that drops more starts another."""


@dataclass
class Exchange:
    """One request with its answer."""

    where: str
    messages: list[Any]
    system: Any = None
    tools: Any = None
    model: str = ""
    session: str = ""
    """Whatever id the log gives a run; requests of different runs are never joined."""
    answer: dict[str, Any] | None = None
    """The answer as an OpenAI- or Anthropic-shaped message; None where the log was cut before it."""
    usage: Usage | None = None
    reward: float | None = None


@dataclass
class Conversation:
    """Requests that continue each other."""

    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def longest(self) -> Exchange:
        """The newest of the longest requests."""
        return max(reversed(self.exchanges), key=lambda exchange: len(exchange.messages))

    def continued_by(self, exchange: Exchange) -> int:
        """How many messages both have in common; -1 where the request starts another conversation."""
        newest = self.exchanges[-1]
        if newest.session != exchange.session or newest.system != exchange.system:
            return -1
        shared = common(newest.messages, exchange.messages)
        if shared == 0 or len(newest.messages) - shared > RETRY_MESSAGES:
            return -1
        if shared in (len(newest.messages), len(exchange.messages)) or _has_assistant(newest.messages[:shared]):
            return shared
        return shared if any(_same(exchange.messages[shared], one.answer) for one in self.exchanges) else -1


def common(first: list[Any], second: list[Any]) -> int:
    """Length of the longest common prefix."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other and not _equal(one, other):
            break
        count += 1
    return count


def _equal(one: Any, other: Any) -> bool:
    """Whether two messages say the same; a prompt cache's marks move from request to request and are ignored."""
    if not isinstance(one, dict) or not isinstance(other, dict) or "content" not in one or "content" not in other:
        return False
    if type(one["content"]) is str and type(other["content"]) is str and one["content"] != other["content"]:
        return False
    same = one.get("role") == other.get("role") and one.get("tool_call_id") == other.get("tool_call_id")
    return same and _in_words(one) == _in_words(other)


def group(exchanges: Iterable[Exchange]) -> list[Conversation]:
    """Assign each request to the conversation that it continues best."""
    conversations: list[Conversation] = []
    for exchange in exchanges:
        best = max(conversations, key=lambda conversation: conversation.continued_by(exchange), default=None)
        if best is None or best.continued_by(exchange) < 0:
            conversations.append(Conversation([exchange]))
        else:
            best.exchanges.append(exchange)
    return conversations


def write(draft: Draft, conversation: Conversation) -> Draft:
    """The conversation as a trace: the longest request, its answer, usage per call, and what retries dropped."""
    final = conversation.longest
    draft.model, draft.tools = final.model, read_tools(final.tools)
    if final.system is not None:
        draft.system(content_of(draft, final.system, f"{final.where} system").text)
    starts: list[int] = []
    for where, item in get.placed(final.messages, f"{final.where} messages"):
        starts.append(len(draft.messages))
        add_message(draft, item, where)
    starts.append(len(draft.messages))
    if final.answer is not None:
        add_message(draft, final.answer | {"role": "assistant"}, f"{final.where} response")
    else:
        draft.warn(final.where, "the last request has no recorded answer")
    _place_answers(draft, conversation, final, starts)
    return draft


def _place_answers(draft: Draft, conversation: Conversation, final: Exchange, starts: list[int]) -> None:
    chain: list[Any] = [*final.messages, *([final.answer] if final.answer is not None else [])]
    kept: set[int] = set()
    dropped: list[tuple[int, str, str]] = []
    for exchange in conversation.exchanges:
        draft.usage = add_usage(draft.usage, exchange.usage)
        shared = common(exchange.messages, final.messages)
        dropped += [(shared, _in_words(item), exchange.where) for item in exchange.messages[shared:]]
        if exchange.answer is None:
            continue
        used = shared < len(chain) and shared not in kept and (exchange is final or _same(chain[shared], exchange.answer))
        if used:
            kept.add(shared)
            index = starts[shared]
            if exchange.usage and index < len(draft.messages) and draft.messages[index].role == "assistant":
                draft.messages[index] = msgspec.structs.replace(draft.messages[index], usage=exchange.usage)
        else:
            dropped.append((shared, _in_words(exchange.answer), exchange.where))
    noted: set[tuple[int, str]] = set()
    for shared, text, where in sorted(dropped, key=lambda row: row[0]):
        if text and (shared, text) not in noted:
            noted.add((shared, text))
            draft.event_at(starts[shared], "note", text, what="dropped by a retry; no later request holds it", where=where)


def _has_assistant(messages: list[Any]) -> bool:
    return any(isinstance(item, dict) and item.get("role") == "assistant" for item in messages)


def _same(item: Any, answer: dict[str, Any] | None) -> bool:
    """Whether a message of a later request is that answer; call ids decide if there are any."""
    if answer is None or not isinstance(item, dict) or item.get("role", "assistant") != "assistant":
        return False
    return _signature(item) == _signature(answer)


def _signature(item: dict[str, Any]) -> tuple[str, ...]:
    content = read_content(item.get("content"), where="content")
    calls = content.calls + read_calls(item.get("tool_calls"))
    if calls:
        return tuple(call.id or f"{call.name}({call.arguments})" for call in calls)
    return (content.text.strip(),)


def _in_words(item: Any) -> str:
    """A message as text: its content, results and calls."""
    if not isinstance(item, dict):
        return json_text(item)
    content = read_content(item.get("content"), where="content")
    calls = content.calls + read_calls(item.get("tool_calls"))
    results = [f"{call_id}: {result.text}" for call_id, result, _ in content.results]
    return "\n".join(filter(None, [content.text, *results, *(f"{call.name}({call.arguments})" for call in calls)]))


def read_answer(response: Any) -> tuple[dict[str, Any] | None, Usage | None, str]:
    """(message, usage, model) of a logged response in the shape of OpenAI chat or Anthropic messages."""
    if not isinstance(response, dict):
        return None, None, ""
    usage, model = read_usage(response.get("usage")), get.text(response, "model")
    if chosen := get.obj(get.first(response, "choices"), "message"):
        return chosen, usage, model
    if isinstance(response.get("content"), list | str):
        return {"role": "assistant", "content": response["content"]}, usage, model
    inner = get.obj(response, "message")
    return (inner if "content" in inner else None), usage, model
