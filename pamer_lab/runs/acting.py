"""A policy at work on a running agent: messages come in, the request that the model sees goes out, and every decision is a checked turn.

Knows neither the agent nor who runs it; stores nothing. Invariants: the turns equal those of a replay of the finished trace, except for
their time; after `follow` of an edited history, decisions whose history changed are forgotten and made again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pamer_lab.blocks import MessageTokens
from pamer_lab.decisions import Decision, Item
from pamer_lab.policies.growing import GrowingHistory
from pamer_lab.policies.interface import History, Policy, Resources
from pamer_lab.policies.rebuilt import rebuilt
from pamer_lab.runs.ledger import Ledger
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Tool


def made_turn(
    decision: Decision, history: History, previous: Sequence[Item] | Ledger, tokens: MessageTokens, *, output: int = 0, seconds: float = 0.0
) -> Turn:
    """A decision as a turn, once the ledger has accepted it; `previous`: the previous request's items, or the ledger that has them."""
    ledger = previous if isinstance(previous, Ledger) else Ledger(previous)
    active, cached, states = ledger.follow(decision, history, tokens.counter)
    return Turn(
        **{name: getattr(decision, name) for name in Decision.__struct_fields__},
        t=history.t,
        raw_tokens=history.raw_tokens,
        active_tokens=active,
        output_tokens=output,
        cached_tokens=cached,
        states=states,
        seconds=seconds,
    )


@dataclass(frozen=True)
class Act:
    """What goes to the model at one decision point."""

    turn: Turn
    """The decision; its output is counted once the answer has arrived."""
    messages: list[Message]
    """The request, without the tools."""
    history: History


class Acting:
    """One running agent under one policy."""

    def __init__(
        self, policy: Policy, resources: Resources, tools: Sequence[Tool] = (), messages: Sequence[Message] = (), turns: Sequence[Turn] = ()
    ) -> None:
        """`messages`, `turns`: those of a session that is resumed."""
        self._policy, self._resources = policy, resources
        self._tokens = resources.tokens
        self.growing = GrowingHistory(self._tokens, tools, messages)
        self._take_up(turns)

    def _take_up(self, turns: Sequence[Turn]) -> None:
        """Start a session after these decisions; the old one may remember a history that has changed since."""
        self._session = self._policy.start(self._resources)
        self._session.resume(turns)
        self.turns = list(turns)

    @property
    def t(self) -> int:
        """The current decision point."""
        return self.growing.t

    def add(self, messages: Sequence[Message]) -> None:
        """Append what the agent or its tools said; the first answer of a turn completes it."""
        at = self.growing.t
        self.growing.append(messages)
        self._complete(at)

    def follow(self, messages: Sequence[Message]) -> int:
        """Take over a complete history; returns how many decisions were forgotten because their history changed."""
        at = self.growing.t
        kept = self.growing.follow(messages)
        forgotten = max(0, len(self.turns) - kept)
        if forgotten:
            self._take_up(self.turns[:kept])
        self._complete(min(at, len(self.turns) - 1) if forgotten else at)
        return forgotten

    def decide(self, idle: float | None = None) -> Act:
        """The policy's decision at the current point; made once, however often it is asked for.

        If the agent starts with a history, its earlier points are decided first, in order, as in a replay.
        `idle`: seconds since the previous request, if known.
        """
        now = self.growing.t
        for t in range(len(self.turns), now + 1):
            began = time.perf_counter()
            history = self.growing.at(t, idle if t == now else None)
            decision = self._session.turn(history)
            previous = self.turns[-1].items if self.turns else ()
            self.turns.append(made_turn(decision, history, previous, self._tokens, seconds=time.perf_counter() - began))
            self._complete(t)
        history = self.growing.at(now, idle)
        return Act(self.turns[now], rebuilt(self.turns[now], history), history)

    def query(self, asked: str) -> str:
        """What the policy's memory answers to the agent's own question; for policies that offer this (`answers_queries`)."""
        answer: str = self._session.query(asked, self.growing.at_now())  # type: ignore[attr-defined]
        return answer

    def _complete(self, at: int) -> None:
        """Count the tokens of the answers to decisions from `at` on."""
        for t in range(max(at, 0), min(len(self.turns), self.growing.t)):
            start = self.growing.starts[t]
            self.turns[t] = replace(self.turns[t], output_tokens=self.growing.tokens_of(start, start + 1))
