"""The reward that a record or a result file holds, under the names of the benchmarks."""

from typing import Any

from pamer_lab.trajectory.shared import get

NAMES = ("reward", "score", "final_reward", "total_reward")
HOLDERS = ("rewards", "verifier_result", "verifier", "result", "results", "outcome", "evaluation", "metadata", "info")
"""Objects that a record keeps its reward in; Harbor's results nest two of them."""


def reward_of(value: Any, depth: int = 0) -> float | None:
    """The first reward of a record, first its own, then that of the objects inside it; None if it has none."""
    found = get.amount(value, *NAMES)
    for key in HOLDERS if found is None and isinstance(value, dict) and depth < 3 else ():
        if (found := reward_of(value.get(key), depth + 1)) is not None:
            break
    return found
