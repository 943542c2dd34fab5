"""Recorded model calls -> conversations, for telemetry, HTTP recordings and every other log of single calls.

A request usually repeats the history, so each adds what it has beyond the one before; its answer follows with its own usage. Messages are
in any dialect. Invariant: every recorded answer is a turn, or a note that says why it is not; no message is read twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.exchanges import RETRY_MESSAGES, common
from pamer_lab.trajectory.shared.parts import read_content
from pamer_lab.trajectory.shared.rows import attempt, episodes
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, keep_none
from pamer_lab.trajectory.shared.usage import add_usage, read_usage
from pamer_lab.trajectory.shared.vocabulary import KINDS, plain_word, role_of
from pamer_lab.trajectory.values import Tool, Usage

T = TypeVar("T")
OPEN_CHAINS = 8
"""How many conversations of a file may grow in alternation before the oldest counts as finished."""
OPEN_CALLS = 64
"""How many of a session's newest conversations a call is compared with."""


@dataclass
class ModelCall:
    """One request to a model, with its answer."""

    where: str
    messages: list[dict[str, Any]]
    """The prompt, system messages included."""
    answers: list[dict[str, Any]]
    """What came back: one message, or several items; empty where none was recorded."""
    tools: list[Tool] = field(default_factory=list)
    model: str = ""
    usage: Usage | None = None
    session: str = ""
    """Whatever id the log gives a run; calls of different runs are never joined."""
    group: str = ""
    """What made the call (an agent's span): calls of one group follow each other where prompts do not repeat the history."""
    id: str = ""
    follows: str = ""
    """Id of the answer that this call continues, where the provider keeps the history."""
    start: int = 0
    at: float | None = None
    """When it was recorded, in seconds since 1970."""
    several: bool = False
    """The answers are successive turns, because an agent recorded its run rather than its model calls."""
    reward: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def is_system(self, message: dict[str, Any]) -> bool:
        return role_of(message.get("role")) == "system"

    @cached_property
    def system(self) -> list[Any]:
        return [message for message in self.messages if self.is_system(message)]

    @cached_property
    def said(self) -> list[dict[str, Any]]:
        """The prompt without its system messages."""
        return [message for message in self.messages if not self.is_system(message)]


def chains(found: Iterable[T], messages_of: Callable[[T], Any]) -> list[list[T]]:
    """Rows grouped by conversation: a row that repeats an earlier one and continues it joins its chain, so the longest is last."""
    kept: list[list[T]] = []
    for row in found:
        now = messages_of(row)
        for chain in reversed(kept[-OPEN_CHAINS:]):
            before = messages_of(chain[-1])
            grows = isinstance(now, list) and isinstance(before, list) and 1 < len(before) < len(now)
            if (
                grows
                and now[1] == before[1]
                and now[: len(before)] == before
                and any(is_agents(item) for item in before if isinstance(item, dict))
            ):
                chain.append(row)
                break
        else:
            kept.append([row])
    return kept


def read_chains(document: Document, name: str, read_one: Callable[[Any, str], Draft], messages_of: Callable[[Any], Any]) -> Iterator[Draft]:
    """A draft per conversation, where a file (for fine-tuning, say) repeats one with every turn; each row's usage is its last turn's."""
    for chain in chains(episodes(document), lambda row: messages_of(row[1])):
        where, value = chain[-1]
        draft = attempt(name, where, read_one, value, where)
        if len(chain) > 1:
            draft.meta["requests"] = len(chain)
            draft.warn(chain[0][0], f"{len(chain)} rows continue one another; they are one trace")
            for _, row in chain[:-1]:
                draft.usage = add_usage(draft.usage, read_usage(get.obj(row, "usage") or None))
        yield draft


def conversations(calls: Iterable[ModelCall]) -> list[list[ModelCall]]:
    """Calls in the order given, each assigned to the conversation that it continues best."""
    found: list[list[ModelCall]] = []
    of_session: dict[str, list[list[ModelCall]]] = {}
    of_answer: dict[str, list[ModelCall]] = {}
    for call in calls:
        near = of_session.setdefault(call.session, [])
        scored = [(_continues(one, call), one) for one in near[-OPEN_CALLS:]]
        score, best = max(reversed(scored), key=lambda pair: pair[0], default=(-1, []))
        if call.follows in of_answer:
            best = of_answer[call.follows]
        elif score < 0:
            best = []
            found.append(best)
            near.append(best)
        best.append(call)
        if call.id:
            of_answer[call.id] = best
    return found


def _continues(conversation: Sequence[ModelCall], call: ModelCall) -> int:
    """How well a call continues a conversation: messages in common plus one, 0 if only its group fits, -1 if it does not."""
    newest = conversation[-1]
    if newest.system and call.system and common(newest.system, call.system) == 0:
        return -1
    before, now = newest.said, call.said
    shared = common(before, now)
    if before and shared == len(before):
        return shared + 1 if len(now) > len(before) or (call.group and newest.group == call.group) else -1
    if shared and any(is_agents(message) for message in before[:shared]):
        return shared + 1 if len(before) - shared <= RETRY_MESSAGES or newest.group == call.group else -1
    if not call.group or newest.group != call.group or shared or newest.system != call.system:
        return -1
    return -1 if any(is_agents(message) for message in now) else 0


def is_agents(item: dict[str, Any]) -> bool:
    """Whether an item of a prompt is something the model produced: a message, a call, or reasoning."""
    if role := role_of(item.get("role")):
        return role in ("assistant", "call")
    kind = plain_word(item.get("type"))
    if "kwargs" in item and isinstance(item.get("id"), list) and item["id"]:
        return role_of(get.as_text(item["id"][-1]).removesuffix("Message")) == "assistant"
    return KINDS.get(kind, "") in ("thinking", "call") or kind.endswith("call")


def _echo(answer: Turn, fresh: Sequence[dict[str, Any]]) -> int:
    """How many of the messages after an answer repeat it: one message, any number of items, or messages with parts of it."""
    count, done = 0, False
    for message in fresh:
        if not is_agents(message) or (done and not _says_part_of(answer, message)):
            break
        count += 1
        done = done or (role_of(message.get("role")) == "assistant" and "type" not in message)
    return count


def _says_part_of(answer: Turn, message: dict[str, Any]) -> bool:
    """Whether a message holds texts and calls of an answer and nothing else; some logs write one message per text, call and thought."""
    turns = [step for step in steps_of(Draft(""), [message], "") if isinstance(step, Turn)]
    texts = {text for turn in turns for text in turn.texts}
    calls = {call.id for turn in turns for call in turn.calls}
    return bool(texts or calls) and texts <= {*answer.texts} and calls <= {call.id for call in answer.calls if call.id}


class Conversation:
    """Combines the calls of one conversation; `steps` has the result."""

    def __init__(self, draft: Draft, calls: Sequence[ModelCall]) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.turns: list[tuple[ModelCall, Turn]] = []
        """The recorded answers, in order."""
        self._newest: ModelCall | None = None
        for call in calls:
            self._add(call)
        for call in calls:
            draft.usage = add_usage(draft.usage, call.usage)
            draft.model = call.model or draft.model
            draft.tools = call.tools if len(call.tools) >= len(draft.tools) else draft.tools
        draft.meta["calls"] = len(calls)

    def write(self) -> Draft:
        """The steps as messages of the draft."""
        add_steps(self.draft, self.steps)
        return self.draft

    def _add(self, call: ModelCall) -> None:
        before = self._newest
        if before is None:
            self._read(call.messages, call.where)
        else:
            self._read(self._fresh(before, call), call.where)
        self._newest = call
        answer = [step for step in steps_of(self.draft, call.answers, f"{call.where} answer") if not isinstance(step, Said)]
        turns = [step for step in answer if isinstance(step, Turn)]
        if not turns:
            self.draft.warn(call.where, "a request has no recorded answer")
        kept = turns[:1]
        for turn in turns[1:]:
            if call.several and kept[-1].calls and turn.texts:
                kept.append(turn)
                continue
            kept[-1].merge(turn)
        self.steps += [step for step in answer if not isinstance(step, Turn) or any(step is turn for turn in kept)]
        if kept:
            kept[-1].usage, kept[-1].at = call.usage, call.at
            self.turns += [(call, turn) for turn in kept]

    def _read(self, messages: list[dict[str, Any]], where: str) -> None:
        self.steps += steps_of(self.draft, messages, f"{where} messages")

    def _fresh(self, before: ModelCall, call: ModelCall) -> list[dict[str, Any]]:
        """What a request adds to the one before it, without the answer to that one, which was recorded itself."""
        shared = common(before.messages, call.messages)
        gone = len(before.messages) - shared
        fresh = call.messages[shared:]
        if gone and not call.follows:
            systems = before.system
            fresh = [message for message in fresh if not (call.is_system(message) and message in systems)]
            if shared > len(before.system):
                self.steps.append(Mark("context_edit", "", {"what": "the next request leaves messages out", "messages": gone}))
            elif any(is_agents(message) for message in before.said):
                facts = {"what": "the next request begins again", "messages": gone}
                self.steps.append(Mark("compaction", "", facts, keep_none, Said))
        last = self.turns[-1][1] if self.turns and self.turns[-1][0] is before else None
        if last is None:
            return fresh
        if echo := _echo(last, fresh):
            return self._after_echo(last, fresh, echo, call.where)
        if not fresh and not gone and not last.calls and before.messages:
            self._drop(last)
        return fresh

    def _after_echo(self, last: Turn, fresh: list[dict[str, Any]], echo: int, where: str) -> list[dict[str, Any]]:
        """The messages after the repeated answer. One with other calls is no repeat: the recorded answer was discarded."""
        repeated = [step for step in steps_of(Draft(""), fresh[:echo], where) if isinstance(step, Turn)]
        calls = [call for turn in repeated for call in turn.calls]
        if last.calls and calls and [call.name for call in calls] != [call.name for call in last.calls]:
            self._drop(last)
            return fresh
        named = {step.call_id for step in steps_of(Draft(""), fresh[echo:], where) if isinstance(step, Result)}
        if calls and not named & {call.id for call in last.calls}:
            last.calls = calls  # results name these ids, or there were no calls
        if not last.texts and not last.calls:
            last.texts = [text for turn in repeated for text in turn.texts]
        rest = fresh[echo:]
        while rest and role_of(rest[0].get("role")) == "call":
            last.texts.append(read_content(rest[0].get("content")).text)  # a call in words, which follows what the model said
            rest = rest[1:]
        return rest

    def _drop(self, turn: Turn) -> None:
        place = next(number for number, step in enumerate(self.steps) if step is turn)
        words = "\n".join([*turn.texts, *(f"{call.name}({call.arguments})" for call in turn.calls)])
        self.steps[place] = Mark("note", words, {"what": "dropped by a retry; no later request holds it", "where": turn.where})
        self.turns.pop()
