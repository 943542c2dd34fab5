"""How long one run should take: estimated once its models are there, and corrected by its own turns where that was a guess."""

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
"""A guess gives way to the pace of the run itself after so many seconds and turns, or so many turns that are such a share of all; of a
shorter run it does so again at the next share, since many policies begin to work late."""


class Expected:
    """What the rest of one run should take."""

    def __init__(
        self, line: Timeline, policy: Policy, resources: RunResources, before: int, seconds: float, guessed: bool, reading: float
    ) -> None:
        """`before`: turns that were there. `guessed`: the time of a turn is a guess, since the policy has neither run nor been tried on
        this trace. `reading`: seconds that reading states should take of all."""
        self._line, self._policy, self._resources = line, policy, resources
        self._before, self._guessed, self._reading = before, guessed, reading
        self.seconds = seconds
        """From the first of the missing turns to the last."""
        self.began = time.monotonic()
        self._corrected = 0
        """Shares of the turns at which the guess was corrected."""
        self._spent = 0.0
        """Seconds of the turns made, as long as the guess is corrected."""
        self._read: list[tuple[int, int]] = []
        """Done and total of the first and the newest progress of reading."""

    def see(self, progress: Progress) -> None:
        """Take note of the states read."""
        self._read = [*self._read[:1], (progress.done, progress.total)]

    def turns_read(self) -> int:
        """First turns whose states are in the workspace, as far as reading them said."""
        done, line = self._read[-1][0] if self._read else 0, self._line
        return bisect_right(line.cumulative, line.cumulative[self._before] + done, hi=line.turns + 1) - 1

    def correct(self, turns: Sequence[Turn]) -> bool:
        """Once some turns are there, expect of the others what those took, and of their states what those read took; says whether."""
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
        # What passed besides the turns was reading, or, without heads, checking and laying out requests, which each turn needs.
        left = (
            left + self._reading_left(passed - self._spent, to_come)
            if self._policy.needs_models
            else left * passed / max(self._spent, 1e-9) + self._storing()
        )
        self.seconds = passed + left
        return True

    def _reading_left(self, seconds: float, to_come: int) -> float:
        """Seconds that the states of the turns to come should take, after so many seconds of reading."""
        if len(self._read) == 2 and self._read[1][0] > self._read[0][0]:
            (first, _), (done, total) = self._read
            return seconds * (total - done) / (done - first)
        return self._reading * to_come / (self._line.turns - self._before)

    def _storing(self) -> float:
        """Seconds of the commits of a short run's end."""
        return COMMITS * (usual_commit(self._resources.factory.workspace.path) or COMMIT)


def expect(
    line: Timeline, policy: Policy, resources: RunResources, before: int, seconds: float | None = None, guessed: bool = False
) -> Expected:
    """Load what a policy needs, and expect of its run what was said before it, else what is estimated now."""
    asked, reading = Estimator(resources.factory), 0.0
    asked.load(policy, resources)
    if seconds is None:
        size = TraceSize(line.turns, line.prefix_tokens + line.tools_tokens, line.cumulative[max(line.turns - 1, 0)])
        cost = asked.cost(policy, line.trace.trace_id, size, before)
        seconds, guessed, reading = cost.seconds, not cost.sure, cost.read_seconds
    return Expected(line, policy, resources, before, seconds, guessed, reading)
