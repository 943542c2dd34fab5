"""`NAME:gate=priced`: any policy, but edits are made only if they pay off under a provider's prices.

Between two edits, a request is the previous one plus what came since, so a prompt cache keeps serving it. PaMER and PaMER+ have their own
gate, which they ask before they store anything. Invariant: after `resume` it decides as if it had made the earlier decisions itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from pamer_lab.controller.gate import Gate
from pamer_lab.decisions import Decision, Item
from pamer_lab.policies.interface import History, Policy, PolicySession, Resources

PARAMETERS = ("gate", "horizon", "prices", "window")


@dataclass(frozen=True)
class Priced:
    """A policy behind a gate."""

    inner: Policy
    gate: Gate
    suffix: str
    """The gate's part of the name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        return self.inner.name + self.suffix

    def settings(self, resources: Resources) -> dict[str, Any]:
        return self.inner.settings(resources) | {"gate": self.gate.as_settings()}

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: Priced, resources: Resources) -> None:
        self._policy, self._tokens = policy, resources.tokens
        self._inner = policy.inner.start(resources)
        self._decided = 0
        """Number of turns that the inner policy has seen."""
        self._sent: tuple[Item, ...] = ()
        self._t = 0

    def resume(self, decisions: Sequence[Decision]) -> None:
        self._inner.resume(())
        self._decided = 0
        self._sent, self._t = (decisions[-1].items, len(decisions) - 1) if decisions else ((), 0)

    def turn(self, history: History) -> Decision:
        for t in range(self._decided, history.t):
            self._inner.turn(_at(history, t))
        decision = self._inner.turn(history)
        self._decided = history.t + 1
        kept = joined([*history.head(), *_later(self._sent), *history.raw([(self._t, history.t)])])
        if not self._sent or decision.action == "fallback":
            return self._send(decision, history)
        wanted = joined(decision.items)
        same = self._shared(self._sent, wanted, history)
        before = sum(item.tokens for item in self._sent)
        if same >= before:
            return self._send(replace(decision, items=wanted), history)
        now, then = sum(item.tokens for item in kept), decision.tokens
        behind = max(0, then - same - (now - before))
        verdict = self._policy.gate.ask(removed=max(0, now - then), behind=behind, tokens=now, idle=history.idle)
        if not verdict.edit:
            waits = replace(decision, action="pass", reason=f"{decision.reason}; the edit waits: it {verdict.reason}", items=kept)
            return self._send(waits, history)
        action = "compress" if decision.action == "pass" else decision.action
        return self._send(replace(decision, action=action, reason=f"{decision.reason}; {verdict.reason}", items=wanted), history)

    def _send(self, decision: Decision, history: History) -> Decision:
        self._sent, self._t = decision.items, history.t
        return decision

    def _shared(self, sent: Sequence[Item], wanted: Sequence[Item], history: History) -> int:
        """Tokens at the start of the wanted request that were also in the last one."""
        shared = 0
        for before, now in zip(sent, wanted, strict=False):
            if before == now:
                shared += now.tokens
                continue
            if before.kind == now.kind == "blocks" and before.spans[0][0] == now.spans[0][0]:
                last = min(before.spans[0][1], now.spans[0][1])
                return shared + history.tokens([(now.spans[0][0], last)])
            return shared
        return shared


def joined(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, with adjacent blocks merged."""
    found: list[Item] = []
    for item in items:
        before = found[-1] if found else None
        if before and item.kind == before.kind == "blocks" and before.spans[0][1] == item.spans[0][0]:
            found[-1] = Item("blocks", before.tokens + item.tokens, ((before.spans[0][0], item.spans[0][1]),))
        else:
            found.append(item)
    return tuple(found)


def _later(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item.kind not in ("tools", "prefix")]


def _at(history: History, t: int) -> History:
    """The history at an earlier decision point."""
    return History(
        t,
        history.messages[: history.blocks[t].start],
        history.prefix_end,
        history.blocks[:t],
        history.cumulative[: t + 1],
        history.prefix_tokens,
        history.tools,
        history.tools_tokens,
    )
