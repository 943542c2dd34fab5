"""`sliding-window:K`: prefix and the newest K complete blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, Offered, PolicySession, Resources


@dataclass(frozen=True)
class SlidingWindow:
    """Drops complete blocks that leave the window; they are lost."""

    needs_models: ClassVar[bool] = False
    description: ClassVar[str] = "the prefix and the newest K complete blocks; older blocks are dropped"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Sliding Window (K = 5, 10, 20)", "qhjqhj00/cabeza, context/recent_k.py")
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "K is 5, 10 or 20; the paper gives neither its unit nor a trigger"),
        ("note", "cabeza applies it only over a soft token budget, keeps the newest 10 closed tool turns and adds a notice"),
        ("inferred", "K counts complete blocks, so that a call never loses its result"),
    )
    family: ClassVar[Family] = "baseline"
    needs: ClassVar[tuple[Need, ...]] = ()
    look: ClassVar[LineLook] = LineLook("sky", "dash")
    offered: ClassVar[Offered] = "first"
    acts_live: ClassVar[bool] = True
    deviations: ClassVar[tuple[str, ...]] = (
        "the paper gives K without its unit: here K counts complete blocks, and the window is applied at every turn",
        "with budget=N it is applied only while the request exceeds N tokens, as in public implementations; no notice is added",
    )

    k: int = field(default=5, metadata={"least": 1})
    """Number of complete blocks kept; incomplete blocks among or after them stay too."""
    budget: int = 0
    """Request size in tokens below which nothing is dropped; 0 always applies the window."""

    @property
    def name(self) -> str:
        return f"sliding-window:{self.k}" + (f":budget={self.budget}" if self.budget else "")

    def settings(self, resources: Resources) -> dict[str, Any]:
        return {"k": self.k, "budget": self.budget}

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self)


class _Session:
    def __init__(self, policy: SlidingWindow) -> None:
        self.policy = policy

    def turn(self, history: History) -> Decision:
        k, budget = self.policy.k, self.policy.budget
        first = recent_start(history.blocks, k)
        if budget and history.raw_tokens <= budget:
            first, reason = 0, f"the request is within the budget of {budget:,} tokens"
        elif first:
            reason = f"dropped {counted(first, 'block')} older than the newest {k} complete ones"
        else:
            reason = f"no block is older than the newest {k} complete ones"
        return Decision("pass", reason, (*history.head(), *history.raw([(first, history.t)])))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """Nothing is remembered between turns."""
