"""A batch that runs beside its caller: start it, look at its progress, stop it.

For pages, whose script ends long before a replay does. The work itself is `replay_batch` with worker processes; this
module adds a thread that waits for it. What always holds: at most one batch runs at a time, and a batch that was stopped or
failed keeps its finished turns, so that starting it again continues it.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pamer_lab.errors import Cancelled, LabError
from pamer_lab.replay.batch import BatchOptions, Outcome, Progress, replay_batch
from pamer_lab.workspace import Workspace


@dataclass
class Batch:
    """One batch under way or ended."""

    trace_ids: tuple[str, ...]
    policies: tuple[str, ...]
    options: BatchOptions
    progress: Progress | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    error: str = ""
    """Why it ended before its time; empty while it runs and when it is done."""
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    @property
    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status != "done"]

    def stop(self) -> None:
        self.stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        return self.ended.wait(seconds)


class Background:
    """The batches of one workspace, one at a time."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = Workspace(workspace)
        self.latest: Batch | None = None
        self._lock = threading.Lock()

    @property
    def current(self) -> Batch | None:
        """The batch that runs now."""
        return self.latest if self.latest is not None and self.latest.running else None

    def start(self, trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> Batch:
        """Start a batch; while one runs, that one is returned instead."""
        with self._lock:
            if self.current is not None:
                return self.current
            batch = self.latest = Batch(tuple(trace_ids), tuple(policies), options)
            threading.Thread(target=self._run, args=(batch,), daemon=True).start()
            return batch

    def _run(self, batch: Batch) -> None:
        def report(progress: Progress) -> None:
            batch.progress = progress

        try:
            batch.outcomes = replay_batch(
                batch.trace_ids, batch.policies, self.workspace, batch.options, report=report, cancelled=batch.stopping.is_set
            )
        except Cancelled as stopped:
            batch.error = str(stopped)
        except LabError as error:
            batch.error = str(error)
        except Exception as error:  # shown to the reader, who would otherwise wait for a thread that is gone
            batch.error = f"the replay failed ({type(error).__name__}: {error}); finished turns are kept"
        finally:
            batch.ended.set()
