"""`base`: the request as the agent sent it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Need, Offered, PolicySession, Resources
from pamer_lab.policies.values import Answer, History


@dataclass(frozen=True)
class Base:
    """Keeps everything."""

    needs_models: ClassVar[bool] = False
    description: ClassVar[str] = "the whole history, unchanged: what every other policy is measured against"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, base agent",)
    needs: ClassVar[tuple[Need, ...]] = ()
    look: ClassVar[LineLook] = LineLook("grey", "dot")
    offered: ClassVar[Offered] = "first"
    deviations: ClassVar[tuple[str, ...]] = (
        "an agent whose own harness compacts is replayed without that; recorded compactions stand beside",
    )

    @property
    def name(self) -> str:
        return "base"

    def settings(self, resources: Resources) -> dict[str, Any]:
        return {}

    def start(self, resources: Resources) -> PolicySession:
        return _Session()


class _Session:
    def turn(self, history: History) -> Answer:
        return Answer("pass", "base keeps the whole history", (*history.head(), *history.raw([(0, history.t)])))

    def resume(self, answers: Sequence[Answer]) -> None:
        """Nothing is remembered between turns."""
