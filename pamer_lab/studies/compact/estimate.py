"""What a study would read and take, before a model is loaded: by the last study in the workspace, else a first guess.

The exact forecast of a compact study needs its model and its texts (`contexts.forecast`); this one needs token counts alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import Profile
from pamer_lab.models.speed import LOADING, guessed_speed
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_point
from pamer_lab.studies.compact.registry import condition
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.studies.study import list_studies, load_study
from pamer_lab.trajectory.values import Message, Trace
from pamer_lab.workspace import Workspace

BLOCKS = 24
"""Blocks of the made-up trace on which conditions show how much they read; more than any of them takes."""
BLOCK_TOKENS = 4_096
"""Tokens of each, so that the paper's caps of evidence bind."""
ENOUGH = 1_000
"""Tokens from which a study's speed means something."""
LAST_STUDIES = 5
"""Studies that are looked at for a measured speed."""


@dataclass(frozen=True)
class StudyEstimate:
    """What a study takes."""

    tokens: int
    """Read at most; what the workspace has already is not computed again."""
    seconds: float
    speed: float
    """Tokens a second."""
    basis: Literal["measured", "guessed"]
    """`measured`: by the last study in the workspace. `guessed`: for two cores, by the size of the model."""


def estimate(
    conditions: Sequence[Condition], tokens: int, profile: Profile, measured: float | None = None, *, share: float = 1.0
) -> StudyEstimate:
    """What the conditions take on traces of so many `tokens`, at a `share` of their decision points."""
    speed = measured or guessed_speed(profile)
    read = round(tokens * times_read(conditions, share))
    return StudyEstimate(read, LOADING + read / speed, speed, "measured" if measured else "guessed")


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


def measured_speed(workspace: Workspace) -> float | None:
    """Tokens a second of the newest study here that computed something; None where there is none."""
    for row in list_studies(workspace)[:LAST_STUDIES]:
        notes = load_study(workspace, row["study_id"]).notes
        costs = [(cost["tokens_computed"], cost["seconds"]) for cost in notes.get("features", [])]
        if "cost" in notes:  # of a compact study
            costs = [(notes["cost"]["tokens_computed"], notes["cost"]["seconds_taken"])]
        known = [(tokens, seconds) for tokens, seconds in costs if tokens > ENOUGH and seconds > 0]
        if known:
            return float(sum(tokens for tokens, _ in known) / sum(seconds for _, seconds in known))
    return None


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
