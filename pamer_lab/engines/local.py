"""The engine for one machine: each worker is a process that exchanges JSON lines."""

import os
from collections.abc import Sequence

from pamer_lab.engines.interface import Worker
from pamer_lab.jobs import Process


def cores() -> int:
    """Cores that this process may use; the system can give it fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalWorker(Process):
    """A process that does the jobs of one module."""

    ahead = 1  # sending a job through a pipe costs nothing, and a pipe buffers little
    _ending = False

    def give(self, jobs: Sequence[object]) -> None:
        for job in jobs:
            self.send(job)

    def ready(self, seconds: float) -> bool:
        return self.running

    def no_more(self) -> None:
        self._ending = True
        super().no_more()

    def interrupt(self) -> None:
        if not self._ending:  # without input, it is about to end by itself
            super().interrupt()

    def why_ended(self) -> str:
        return f"exit code {self.wait()}"


class LocalEngine:
    """Processes on this machine, which share its cores."""

    name = "local"

    def capacity(self) -> int:
        return cores()

    def start(self, module: str, workers: int) -> Worker:
        threads = str(max(1, self.capacity() // max(workers, 1)))
        return LocalWorker("pamer_lab.engines.serve", module, environment={"OMP_NUM_THREADS": threads, **os.environ})

    def close(self) -> None:
        """Does nothing: the processes belong to whoever started them."""
