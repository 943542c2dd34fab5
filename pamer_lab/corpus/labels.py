"""A plan -> labels at every decision point, by two rules (`docs/corpus.md` states them and their limits).

Knows the plan only. Compression has a label at every `t >= 1`; recall has one, positive or negative, wherever a settled fact is older
than the two most recent blocks.
Invariant: a positive recall label names blocks older than the two most recent ones.
"""

from collections.abc import Sequence

from pamer_lab.corpus.plan import Step
from pamer_lab.trajectory.values import Label

ORIGIN = "generator"
FIRST_OLD = 3
"""At `t` the blocks up to `t - 3` are older than Recent2; so this is the first decision point that has one."""


def make_labels(steps: Sequence[Step]) -> list[Label]:
    """Labels for the decision points 1 to `len(steps)`."""
    labels: list[Label] = []
    settled_at: dict[str, int] = {}
    for number, step in enumerate(steps):
        t = number + 1
        if step.outcome == "settles":
            settled_at[step.subject.name] = number
        labels.append(Label(t, "compression", step.outcome == "settles" and t >= FIRST_OLD, ORIGIN))
        if any(block <= t - FIRST_OLD for block in settled_at.values()):
            needed = (settled_at[step.need.name],) if step.need else ()
            labels.append(Label(t, "recall", bool(needed), ORIGIN, steps=needed))
    return labels
