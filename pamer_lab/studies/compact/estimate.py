"""Estimates a study's tokens and duration from token counts and the speed of this machine (`features/pace.py`).

`estimate` needs neither model nor texts. A `Forecast` has exact token counts: it is made once the texts are known, and compared with
what was actually computed when the study is done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.features.pace import Basis, depth_of, loaded_pace, pace_of
from pamer_lab.features.values import Estimate
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.profiles import Profile
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_point
from pamer_lab.studies.compact.registry import condition
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.trajectory.values import Message, Trace
from pamer_lab.workspace import Workspace

BLOCKS = 24
"""Blocks of the synthetic trace on which conditions show how much they read; more than any condition selects."""
BLOCK_TOKENS = 4_096
"""Tokens of each block; large enough for the paper's evidence caps to take effect."""


@dataclass(frozen=True)
class StudyEstimate:
    """The estimated cost of a study."""

    tokens: int
    """Maximum number of tokens to read; cached ones are not computed again."""
    seconds: float
    speed: float
    """Tokens a second."""
    basis: Basis


def estimate(
    conditions: Sequence[Condition], tokens: int, profile: Profile, workspace: Workspace, *, share: float = 1.0, device: str = "auto"
) -> StudyEstimate:
    """The cost of the conditions on traces with `tokens` tokens, at a `share` of their decision points."""
    pace, depth = pace_of(profile, workspace.path, device), depth_of(profile)
    read = round(tokens * times_read(conditions, share))
    return StudyEstimate(read, pace.loading + pace.seconds(read, depth), pace.speed(depth), pace.basis)


def times_read(conditions: Sequence[Condition], share: float = 1.0) -> float:
    """How often the tokens of a trace are read, at most.

    Common prefixes are read once: the full context for all points together, and the prefix. Each other text adds its blocks at every
    point; stored states need one more pass over all blocks.
    """
    point, resources = _made_up()
    texts = {one.read(point, resources).blocks for one in conditions}
    parts = {blocks for blocks in texts if len(blocks) <= point.last}
    stored = any("states" in one.needs for one in conditions)
    return (len(parts) < len(texts)) + bool(parts) + stored + share * sum(map(len, parts))


def layerwise_conditions(context: str, *, controls: bool) -> list[Condition]:
    """What a layerwise study reads: one context, plus the full one if controls are measured too."""
    return [condition(name) for name in dict.fromkeys([context, *(["full"] if controls else [])])]


class _Equal:
    """Counts every message as `BLOCK_TOKENS` tokens."""

    name = "equal"
    kind: CountKind = "estimated"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [BLOCK_TOKENS] * len(texts)


@cache
def _made_up() -> tuple[DecisionPoint, Resources]:
    messages = [Message("user", "task"), *(Message("assistant", f"step{number} word{number * 7 % BLOCKS}") for number in range(BLOCKS + 1))]
    trace = Trace("t-made-up", "q", "made-up", tuple(messages))
    return decision_point(trace, BLOCKS), Resources(Counts(MessageTokens(_Equal())), HashingEmbedder().embed)


@dataclass(frozen=True)
class Forecast:
    """What has to be computed, and how long it will take."""

    inputs: int
    """Number of distinct texts."""
    cached: int
    """Distinct texts whose states are already stored."""
    tokens: int
    """Tokens to compute, counting common prefixes once."""
    tokens_naive: int
    """Tokens of one forward pass per missing text."""
    seconds: float
    """At the measured speed of this model on this machine (`features/pace.py`)."""

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.tokens else 0.0

    @property
    def sentence(self) -> str:
        return (
            f"estimate: {self.tokens:,} tokens to compute for {self.inputs - self.cached:,} of {self.inputs:,} texts "
            f"({self.tokens_naive:,} one by one; {self.cached:,} texts are in the workspace), about {self.seconds / 60:.1f} min "
            f"at {self.tokens_per_second:,.0f} tokens/s"
        )

    def check(self, tokens: float, seconds: float) -> dict[str, Any]:
        """Estimated and actual values."""
        return {
            "texts": self.inputs,
            "texts_in_workspace": self.cached,
            "tokens_one_by_one": self.tokens_naive,
            "tokens_estimated": self.tokens,
            "tokens_computed": int(tokens),
            "seconds_estimated": round(self.seconds, 1),
            "seconds_taken": round(seconds, 1),
            "tokens_per_second_estimated": round(self.tokens_per_second, 1),
        }


def forecast(parts: list[Estimate], model: FrozenModel, folder: Path | None) -> Forecast:
    """One forecast for several extractions that follow each other; `folder`: the workspace."""
    tokens = sum(part.tokens for part in parts)
    passes = sum(part.tokens * part.depth for part in parts)
    return Forecast(
        inputs=sum(part.inputs for part in parts),
        cached=sum(part.cached for part in parts),
        tokens=tokens,
        tokens_naive=sum(part.tokens_naive for part in parts),
        seconds=passes / loaded_pace(model, folder, max(part.depth for part in parts)) if tokens else 0.0,
    )


def check_sentence(checked: dict[str, Any]) -> str:
    """The check in words."""
    return (
        f"computed {checked['tokens_computed']:,} tokens ({checked['tokens_estimated']:,} estimated) "
        f"in {checked['seconds_taken'] / 60:.1f} min ({checked['seconds_estimated'] / 60:.1f} estimated)"
    )
