"""How long one run should take: estimated once its models are loaded, and corrected from its own turns if that was a guess."""

import time
from bisect import bisect_right
from collections.abc import Sequence

from pamer_lab.jobs import Progress
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.commits import COMMIT, usual_commit
from pamer_lab.runs.estimate import Estimator
from pamer_lab.runs.known import COMMITS
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.trial import newest_turns
from pamer_lab.runs.values import Turn
from pamer_lab.workspace import TraceSize

CORRECT_AFTER, CORRECT_TURNS, CORRECT_SHARES = 0.5, 4, (0.25, 0.5)
"""A guess is replaced by the run's own pace after this many seconds and turns, or after this many turns that are this share of all. In
a run that has taken fewer seconds it is corrected again at the next share, since many policies start working late."""


class Expected:
    """How long the rest of one run should take."""

    def __init__(
        self, line: Timeline, policy: Policy, resources: RunResources, before: int, seconds: float, guessed: bool, reading: float
    ) -> None:
        """`before`: turns that were already stored. `guessed`: the time of a turn is a guess, since the policy has neither run nor been
        tried on this trace. `reading`: the part of `seconds` for reading states."""
        self._line, self._policy, self._resources = line, policy, resources
        self._before, self._guessed, self._reading = before, guessed, reading
        self.seconds = seconds
        """From the first missing turn to the last."""
        self.began = time.monotonic()
        self._corrected = 0
        """How many of `CORRECT_SHARES` had been reached at the last correction."""
        self._spent = 0.0
        """Seconds of the new turns, summed while the time is a guess."""
        self._read: list[tuple[int, int]] = []
        """Done and total of the first and the newest report on reading."""

    def see(self, progress: Progress) -> None:
        """Record how many states have been read."""
        self._read = [*self._read[:1], (progress.done, progress.total)]

    def turns_read(self) -> int:
        """How many first turns have their states in the workspace, according to the progress of reading."""
        done, line = self._read[-1][0] if self._read else 0, self._line
        return bisect_right(line.cumulative, line.cumulative[self._before] + done, hi=line.turns + 1) - 1

    def correct(self, turns: Sequence[Turn]) -> bool:
        """Once enough turns are done, estimate the rest from the newest of them and from reading so far; True if the estimate changed."""
        if not self._guessed:
            return False
        made, to_come = len(turns) - self._before, self._line.turns - len(turns)
        self._spent += turns[-1].seconds
        shares = [share for share in CORRECT_SHARES if made >= max(CORRECT_TURNS, share * (made + to_come))]
        if (self._spent < CORRECT_AFTER or made < CORRECT_TURNS) and len(shares) <= self._corrected:
            return False
        self._corrected = len(shares)
        self._guessed = self._spent < CORRECT_AFTER and len(shares) < len(CORRECT_SHARES)
        passed = time.monotonic() - self.began
        newest = [turn.seconds for turn in turns[-newest_turns(made) :]]
        left = sum(newest) / len(newest) * to_come
        # The time outside the turns went into reading or, without heads, into checking and laying out requests, which every turn needs.
        left = (
            left + self._reading_left(passed - self._spent, to_come)
            if self._policy.needs_models
            else left * passed / max(self._spent, 1e-9) + self._storing()
        )
        self.seconds = passed + left
        return True

    def _reading_left(self, seconds: float, to_come: int) -> float:
        """Seconds that reading the states of the coming turns should take, after `seconds` of reading."""
        if len(self._read) == 2 and self._read[1][0] > self._read[0][0]:
            (first, _), (done, total) = self._read
            return seconds * (total - done) / (done - first)
        return self._reading * to_come / (self._line.turns - self._before)

    def _storing(self) -> float:
        """Seconds of the commits at the end of a short run."""
        return COMMITS * (usual_commit(self._resources.factory.workspace.path) or COMMIT)


def expect(
    line: Timeline, policy: Policy, resources: RunResources, before: int, seconds: float | None = None, guessed: bool = False
) -> Expected:
    """Load what a policy needs, and expect its run to take `seconds`, or an estimate made now if there is none."""
    asked, reading = Estimator(resources.factory), 0.0
    asked.load(policy, resources)
    if seconds is None:
        size = TraceSize(line.turns, line.prefix_tokens + line.tools_tokens, line.cumulative[max(line.turns - 1, 0)])
        cost = asked.cost(policy, line.trace.trace_id, size, before)
        seconds, guessed, reading = cost.seconds, not cost.sure, cost.read_seconds
    return Expected(line, policy, resources, before, seconds, guessed, reading)
