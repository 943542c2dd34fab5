"""Episodes -> the paper's columns by policy, paired differences from base, and where and why each episode diverged from base.

Intervals: Wilson's for success rates, the bootstrap over tasks for paired differences, whose p is that of the sign-flip test.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pamer_lab.arena.episode import Episode
from pamer_lab.blocks.cut import canonical_arguments
from pamer_lab.corpus.language import KEPT_UNDER, described
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.probes.metrics import sign_flip, wilson

RESAMPLES = 4_000
Measure = Callable[[Episode], float]


def measures(prices: str) -> dict[str, Measure]:
    """The measures of the paired comparisons."""
    return {
        "reward": lambda episode: episode.reward,
        "main_input": lambda episode: float(episode.totals["main_input"]),
        "total": lambda episode: float(episode.totals["total"]),
        "cost": lambda episode: episode.cost.get(prices, float("nan")),
        "turns": lambda episode: float(episode.turns),
    }


def table(episodes: Sequence[Episode], prices: str, agent: str) -> list[dict[str, Any]]:
    """One row per policy: means over tasks."""
    rows = []
    by_policy = _by_policy(episodes)
    base = by_policy.get("base", {})
    for policy, own in by_policy.items():
        played = list(own.values())
        n, won = len(played), sum(episode.reward for episode in played)
        shared = [task for task in own if task in base]
        tokens = {name: sum(source[task].totals["total"] for task in shared) for name, source in (("own", own), ("base", base))}
        rows.append(
            {
                "policy": policy,
                "agent": agent,
                "n": n,
                "success_rate": won / n,
                "ci": wilson(won, n),
                "share": _mean(played, lambda episode: episode.share),
                "turns": _mean(played, lambda episode: episode.turns),
                "repeats": _mean(played, lambda episode: episode.repeats),
                "main_input": _mean(played, lambda episode: episode.totals["main_input"]),
                "uncached": _mean(played, lambda episode: episode.totals["uncached_input"]),
                "total": _mean(played, lambda episode: episode.totals["total"]),
                "peak_active": _mean(played, lambda episode: episode.totals["peak_active"]),
                "cost": _mean(played, lambda episode: episode.cost.get(prices, float("nan"))),
                "vs_base_pct": 100 * (tokens["own"] / tokens["base"] - 1) if tokens["base"] else None,
                "compressions": _mean(played, lambda episode: episode.totals["actions"]["compress"]),
                "recalls": _mean(played, lambda episode: episode.totals["actions"]["recall"]),
                "ended": dict(Counter(episode.ended for episode in played)),
                "bound": policy in BOUNDS,
            }
        )
    return rows


def pairs(episodes: Sequence[Episode], prices: str, against: str = "base", only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Differences from `against` on the tasks that both policies played: mean, 95 % interval, exact p."""
    by_policy = _by_policy(episodes)
    other = by_policy.get(against, {})
    rows = []
    for policy, own in by_policy.items():
        shared = [task for task in own if task in other]
        if policy == against or not shared or (only and policy not in only):
            continue
        for name, measure in measures(prices).items():
            differences = np.array([measure(own[task]) - measure(other[task]) for task in shared])
            low, high = bootstrap(differences)
            mean = float(differences.mean())
            rows.append(
                {"policy": policy, "against": against, "measure": name, "n": len(shared), "difference": mean, "ci": [low, high]}
                | {"p": sign_flip(differences)}
            )
    return rows


def paths(episodes: Sequence[Episode], prices: str = "") -> list[dict[str, Any]]:
    """Each episode's outcome, the first turn at which it acted differently from base, and the lost fact that this turn looked for."""
    by_policy = _by_policy(episodes)
    base = by_policy.get("base", {})
    rows = []
    for episode in episodes:
        left = left_at(episode, base[episode.task]) if episode.task in base else None
        gone = lost_at(episode, left) if left is not None else ()
        rows.append(
            {
                "task": episode.task,
                "policy": episode.policy,
                "reward": episode.reward,
                "share": episode.share,
                "ended": episode.ended,
                "turns": episode.turns,
                "repeats": episode.repeats,
                "total": episode.totals["total"],
                "peak_active": episode.totals["peak_active"],
                "cost": episode.cost.get(prices, float("nan")),
                "left_base_at": left,
                "lost_fact": _cause(episode, left, gone),
                "lost": list(gone),
                "missing": list(episode.missing),
                "never_found": list(episode.never_found),
            }
        )
    return rows


def left_at(episode: Episode, base: Episode) -> int | None:
    """The first turn whose call or answer differs from base; None if the paths are the same."""
    ours, theirs = _actions(episode), _actions(base)
    for turn, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return turn
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


def lost_at(episode: Episode, turn: int) -> tuple[str, ...]:
    """Needed facts that had been found and were out of sight at a turn."""
    known = [entry for entry in sorted(episode.lost) if entry <= turn]
    return episode.lost[known[-1]] if known else ()


def _cause(episode: Episode, turn: int | None, gone: Sequence[str]) -> str:
    """The lost fact whose entity the turn's call names; otherwise the first lost fact."""
    if turn is None or not gone:
        return ""
    said = episode.answers[turn] if turn < len(episode.answers) else None
    asked = " ".join(call.arguments for call in said.tool_calls) + said.content if said else ""
    return next((fact for fact in gone if any(word in asked for word in _names(fact))), gone[0])


def _names(fact: str) -> list[str]:
    """The entity that a lost fact is about."""
    wanted = described(fact)
    if wanted:
        return [wanted.entity]
    opening, middle = KEPT_UNDER.split("{e}")[0], KEPT_UNDER.split("{e}")[1].split("{d}")[0]
    return [fact.removeprefix(opening).partition(middle)[0]]


def _actions(episode: Episode) -> list[tuple[Any, ...]]:
    return [
        tuple((call.name, canonical_arguments(call.arguments)) for call in said.tool_calls) or ("answer", said.content)
        for said in episode.answers
    ]


def _by_policy(episodes: Sequence[Episode]) -> dict[str, dict[int, Episode]]:
    found: dict[str, dict[int, Episode]] = {}
    for episode in episodes:
        found.setdefault(episode.policy, {})[episode.task] = episode
    bounds = {policy: found.pop(policy) for policy in BOUNDS if policy in found}
    return found | bounds


def _mean(played: Sequence[Episode], measure: Measure) -> float:
    return float(np.mean([measure(episode) for episode in played]))


def bootstrap(differences: "np.ndarray[Any, np.dtype[np.float64]]") -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean difference over tasks; deterministic."""
    draws = np.random.default_rng(0).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.quantile(differences[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)
