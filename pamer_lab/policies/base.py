"""`base`: the request as the agent sent it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pamer_lab.decisions import Decision
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, Offered, PolicySession, Resources


@dataclass(frozen=True)
class Base:
    """Keeps everything."""

    needs_models: ClassVar[bool] = False
    description: ClassVar[str] = "the full history, unchanged: the baseline for every other policy"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, base agent",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "the base agent sends its complete history; its peak was 280K tokens"),
        ("note", "WorkBuddyBench compacts at 200,000 tokens by default, so the paper must have changed this setting without saying so"),
    )
    family: ClassVar[Family] = "baseline"
    needs: ClassVar[tuple[Need, ...]] = ()
    look: ClassVar[LineLook] = LineLook("grey", "dot")
    offered: ClassVar[Offered] = "first"
    acts_live: ClassVar[bool] = True
    deviations: ClassVar[tuple[str, ...]] = (
        "if the agent's harness compacts, the replay does not; recorded compactions are shown separately",
    )

    @property
    def name(self) -> str:
        return "base"

    def settings(self, resources: Resources) -> dict[str, Any]:
        return {}

    def start(self, resources: Resources) -> PolicySession:
        return _Session()


class _Session:
    def turn(self, history: History) -> Decision:
        return Decision("pass", "base keeps the full history", (*history.head(), *history.raw([(0, history.t)])))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """Nothing is remembered between turns."""
