"""How long turns took in runs and trials, which of these is most similar to a coming run, and a first guess if none is."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pamer_lab.errors import LabError
from pamer_lab.models.speed import matrix_speed, stretch
from pamer_lab.policies.interface import Need, Policy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.trial import Trial
from pamer_lab.runs.values import RunInfo

TURN: dict[Need | Literal[""], float] = {"": 0.0005, "summariser": 0.005, "embedder": 0.008}
"""Seconds of a turn, without reading and embedding, by the heaviest thing a policy needs, on a machine as fast as `REFERENCE`: first
guesses for policies that never ran here."""
REFERENCE, REFERENCE_TOKENS = 1.6e11, 500
"""Where `TURN` was measured: operations per second of the matrix product on two cores, and tokens of a block."""
COMMITS = 1
"""Commits of a run that is stored at its end."""
RECENT = 60.0
"""Seconds for which a trial reflects the machine's current load."""
MOST_LARGER = 20.0
"""Maximum ratio of block sizes that counts, since what a turn reads is limited."""


@dataclass(frozen=True)
class Known:
    """How long a turn took in a run or a trial."""

    policy: str
    trace_id: str
    tokens: float
    """Mean tokens of a block."""
    seconds: float = 0.0
    """Seconds of a turn; 0: the mean of the stored turns of `run_id`."""
    run_id: str = ""
    storing: float = 0.0
    """Seconds of the run's commits, which `seconds` does not include."""
    stretch: float = 0.0
    """Factor by which other programs slowed everything down then; 0: as they do now, or unknown."""

    def is_of(self, policy: Policy, trace_id: str) -> bool:
        """Whether it was of this very policy on this very trace."""
        return (self.policy, self.trace_id) == (policy.name, trace_id)


def of_trial(trial: Trial, commit: float) -> Known:
    """What a trial measured; `commit`: seconds of a commit in this workspace, 0 if unknown."""
    recent = time.time() - trial.at < RECENT
    storing = trial.commits * (commit or trial.commit)
    return Known(trial.policy, trial.trace_id, trial.tokens, trial.seconds, storing=storing, stretch=0.0 if recent else trial.stretch)


def of_run(head: RunInfo, commit: float) -> Known:
    """What a run measured: its turns' stored times if it read states or is unfinished, else all its time except its commits."""
    tokens = sum(head.block_tokens) / max(len(head.block_tokens), 1)
    if head.status != "done" or not head.turns or head.heads:
        return Known(head.policy, head.trace_id, tokens, run_id=head.run_id)
    storing = min(COMMITS * commit, head.taken / 2)
    return Known(head.policy, head.trace_id, tokens, (head.taken - storing) / head.turns, head.run_id, storing)


class ByPolicy:
    """Known times, indexed by the class of their policy."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._found: defaultdict[str, list[Known]] = defaultdict(list)
        self.add(known)

    def add(self, known: Iterable[Known]) -> None:
        for one in known:
            self._found[one.policy.partition(":")[0]].append(one)

    def like(self, policy: Policy) -> list[Known]:
        return self._found.get(policy.name.partition(":")[0], [])


def most_like(found: Sequence[Known], policy: Policy, trace_id: str, tokens: float) -> Known | None:
    """The same policy on the same trace; else on the trace with the most similar block size; else a policy of the same class.

    Ties go to the newest, which comes last.
    """
    ranked = [(_likeness(known, policy, trace_id), -_apart(known.tokens, tokens), number) for number, known in enumerate(found)]
    likeness, _, number = max(ranked, default=(0, 0.0, 0))
    return found[number] if likeness else None


def _likeness(known: Known, policy: Policy, trace_id: str) -> int:
    if known.policy == policy.name:
        return 4 if known.trace_id == trace_id else 3
    try:
        other = parse_policy(known.policy)
    except LabError:  # a policy of another version of the program
        return 0
    return 2 if type(other) is type(policy) else 0


def _apart(tokens: float, other: float) -> float:
    return abs(math.log((tokens + 1) / (other + 1))) if other else 0.0


def by_size(tokens: float, other: float) -> float:
    """Factor on the time of a turn for blocks of another size: half of the time is the same at any size."""
    return 0.5 + 0.5 * min(tokens / other, MOST_LARGER) if other else 1.0


def guessed_turn(policy: Policy) -> float:
    """Seconds of a turn of a policy that never ran here."""
    heaviest = max([TURN[""], *(TURN.get(need, 0.0) for need in policy.needs)])
    return heaviest * REFERENCE / matrix_speed() * stretch()
