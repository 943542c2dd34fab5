"""A batch in the background: start it, follow its progress, stop it.

The work itself is `replay_batch` with worker processes; a thread waits for it. Invariant: at most one batch runs at a time, and a
batch that was stopped or failed keeps its finished turns, so that starting it again continues it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pamer_lab.jobs import OneAtATime, Progress, Work
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import Outcome
from pamer_lab.workspace import Workspace


@dataclass
class Batch(Work):
    """One batch, running or ended."""

    trace_ids: tuple[str, ...]
    policies: tuple[str, ...]
    options: BatchOptions
    outcomes: list[Outcome] = field(default_factory=list, compare=False)

    @property
    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status != "done"]


class Background(OneAtATime[Batch]):
    """The batches of one workspace, one at a time, in the order they were asked for."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.workspace = Workspace(workspace)

    def start(self, trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> Batch:
        """Start a batch, or queue it while another runs; the same batch is not queued twice."""
        return self.queue(lambda: Batch(tuple(trace_ids), tuple(policies), options), self._run)

    def _run(self, batch: Batch) -> None:
        def report(progress: Progress) -> None:
            batch.progress = progress

        batch.outcomes = replay_batch(
            batch.trace_ids, batch.policies, self.workspace, batch.options, report=report, cancelled=batch.stopping.is_set
        )
