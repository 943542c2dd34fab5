"""What a study would read and take, before a model is loaded: from token counts, at the pace of this machine (`features/pace.py`).

The exact forecast of a compact study needs its model and its texts (`forecast.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.features.pace import Basis, depth_of, pace_of
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import Profile
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_point
from pamer_lab.studies.compact.registry import condition
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.trajectory.values import Message, Trace
from pamer_lab.workspace import Workspace

BLOCKS = 24
"""Blocks of the made-up trace on which conditions show how much they read; more than any of them takes."""
BLOCK_TOKENS = 4_096
"""Tokens of each, so that the paper's caps of evidence bind."""


@dataclass(frozen=True)
class StudyEstimate:
    """What a study takes."""

    tokens: int
    """Read at most; what the workspace has already is not computed again."""
    seconds: float
    speed: float
    """Tokens a second."""
    basis: Basis


def estimate(
    conditions: Sequence[Condition], tokens: int, profile: Profile, workspace: Workspace, *, share: float = 1.0, device: str = "auto"
) -> StudyEstimate:
    """What the conditions take on traces of so many `tokens`, at a `share` of their decision points."""
    pace, depth = pace_of(profile, workspace.path, device), depth_of(profile)
    read = round(tokens * times_read(conditions, share))
    return StudyEstimate(read, pace.loading + pace.seconds(read, depth), pace.speed(depth), pace.basis)


def times_read(conditions: Sequence[Condition], share: float = 1.0) -> float:
    """How often the tokens of a trace are read, at most.

    Beginnings that texts share are read once: the full context of all points together, and the prefix. Each other text adds its blocks
    at every point; stored states take one more pass over all blocks.
    """
    point, resources = _made_up()
    texts = {one.read(point, resources).blocks for one in conditions}
    parts = {blocks for blocks in texts if len(blocks) <= point.last}
    stored = any("states" in one.needs for one in conditions)
    return (len(parts) < len(texts)) + bool(parts) + stored + share * sum(map(len, parts))


def layerwise_conditions(context: str, *, controls: bool) -> list[Condition]:
    """What a layerwise study reads: one context, and the full one where controls are measured too."""
    return [condition(name) for name in dict.fromkeys([context, *(["full"] if controls else [])])]


class _Equal:
    """Counts every message alike."""

    name = "equal"
    kind: CountKind = "estimated"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [BLOCK_TOKENS] * len(texts)


@cache
def _made_up() -> tuple[DecisionPoint, Resources]:
    messages = [Message("user", "task"), *(Message("assistant", f"step{number} word{number * 7 % BLOCKS}") for number in range(BLOCKS + 1))]
    trace = Trace("t-made-up", "q", "made-up", tuple(messages))
    return decision_point(trace, BLOCKS), Resources(Counts(MessageTokens(_Equal())), HashingEmbedder().embed)
