"""What a replay would load and take, before it starts: by the last runs on this machine, else a first guess; nothing is loaded.

Heads read the prefix and the newest blocks that their policy retains, at every turn; policies that read the same share the states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pamer_lab.factory import Factory
from pamer_lab.models.profiles import Profile
from pamer_lab.models.speed import LOADING, guessed_speed
from pamer_lab.policies.availability import loads
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.samples import sample_run_ids
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import TraceSize

LIGHT_TURN = 0.02
"""Seconds a turn of a policy without models takes."""

Basis = Literal["measured", "guessed", "mixed"]
"""`measured`: every policy was replayed on this machine before. `guessed`: none was. `mixed`: some were."""


@dataclass(frozen=True)
class Estimate:
    """What replaying traces through policies takes."""

    runs: int
    turns: int
    """Of all runs together."""
    models: tuple[str, ...]
    """Names of the models that are loaded."""
    read_tokens: int
    """Tokens that the frozen model reads at most."""
    seconds: float
    basis: Basis


def estimate(todo: Mapping[str, Sequence[str]], factory: Factory, *, turn_limit: int = 0) -> Estimate:
    """What it takes to replay each policy's traces, all turns or the first ones, with nothing of it stored yet."""
    workspace, profile = factory.workspace, factory.profile
    sizes = workspace.trace_sizes({trace_id for names in todo.values() for trace_id in names})
    store = RunStore(workspace)
    done = store.newest_done(without=sample_run_ids())
    models: dict[str, None] = {}
    reads: dict[tuple[str, int], int] = {}
    guessed: dict[tuple[str, int], int] = {}
    turns, seconds, measured = 0, 0.0, 0
    for name, trace_ids in todo.items():
        policy, known = parse_policy(name), done.get((name, profile.name))
        own = {(trace_id, retained(policy)): _read(policy, profile, sizes[trace_id], turn_limit) for trace_id in trace_ids}
        own_turns = sum(_turns(sizes[trace_id], turn_limit) for trace_id in trace_ids)
        models |= dict.fromkeys(loads(policy, factory))
        if policy.needs_models:
            reads |= own
        if known is not None:
            measured += 1
            seconds += own_turns * store.seconds_per_turn(known)
        elif policy.needs_models:
            guessed |= own
        else:
            seconds += own_turns * LIGHT_TURN
        turns += own_turns
    if guessed:
        seconds += LOADING + sum(guessed.values()) / guessed_speed(profile)
    basis: Basis = "measured" if measured == len(todo) else "mixed" if measured else "guessed"
    return Estimate(sum(map(len, todo.values())), turns, tuple(models), sum(reads.values()), seconds, basis)


def retained(policy: Policy) -> int:
    """Newest blocks that a policy's heads read; 0 for a policy without heads."""
    return int(getattr(policy, "retained", 0)) if policy.needs_models else 0


def _turns(size: TraceSize, turn_limit: int) -> int:
    return min(size.turns, turn_limit) if turn_limit else size.turns


def _read(policy: Policy, profile: Profile, size: TraceSize, turn_limit: int) -> int:
    """Tokens over all turns, at most: each time the prefix, and every block as often as it is among the newest."""
    if not policy.needs_models or not size.turns:
        return 0
    turns = _turns(size, turn_limit)
    read = turns * size.head_tokens + retained(policy) * size.later_tokens * turns // size.turns
    return min(read, turns * profile.probe_limit) if profile.probe_limit else read
