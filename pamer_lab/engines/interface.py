"""The seam: what an engine and its workers offer, and how one is named on the command line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from pamer_lab.errors import InputError

EngineName = Literal["local", "ray"]
"""`local`: processes of this machine. `ray`: actors of a Ray cluster."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class EngineSpec:
    """Which engine, and what each of its workers needs."""

    name: EngineName = "local"
    address: str = ""
    """Of a running cluster (`HOST:6379`, `ray://HOST:10001`, `auto`); empty: `RAY_ADDRESS`, else a cluster of this machine."""
    gpus_per_worker: float = 0.0
    """GPUs that Ray reserves for each worker; a fraction lets several share one."""
    memory_per_worker: int = 0
    """Bytes that Ray reserves for each worker; 0: none."""


class Worker(Protocol):
    """One worker: sent jobs, it does them one after another and answers with notes."""

    ahead: int
    """Short jobs that it may have at once."""

    @property
    def running(self) -> bool:
        """Whether it can take another job."""

    def ready(self, seconds: float) -> bool:
        """Wait until it has started, or the time is over; False where it has not."""

    def give(self, jobs: Sequence[object]) -> None:
        """Jobs, at least one, behind those it has; at most `ahead` in all."""

    def answers(self, kind: type[Answer]) -> Iterator[Answer]:
        """What it says about the jobs, in their order, until the caller has heard enough or the worker ends."""

    def no_more(self) -> None:
        """No further job will come."""

    def interrupt(self) -> None:
        """Ask it to stop what it does; returns at once."""

    def stop(self) -> None:
        """End it; what is finished is kept."""

    def kill(self) -> None:
        """End it at once, also while another thread waits for its answers, which then end."""

    def why_ended(self) -> str:
        """In a few words, once it has ended."""


class Engine(Protocol):
    """Starts workers."""

    name: str

    def capacity(self) -> int:
        """How many workers fit at the same time; at least 1."""

    def start(self, module: str, workers: int) -> Worker:
        """A worker that runs this module, one of so many."""

    def close(self) -> None:
        """Give back what the engine itself holds."""


def check_address(address: str) -> None:
    """Refuse a cluster's address that carries credentials or options, without repeating it: addresses are shown in messages."""
    if "@" in address or "?" in address:
        raise InputError("a Ray cluster's address is HOST:PORT or ray://HOST:PORT, without credentials or options")


def parse_engine(text: str, gpus_per_worker: float = 0.0, memory_per_worker: int = 0) -> EngineSpec:
    """`local`, `ray` or `ray:ADDRESS`."""
    name, _, address = text.partition(":")
    if name not in ("local", "ray") or (name == "local" and address):
        raise InputError(f"unknown engine {name[:20]!r}; known: local, ray, ray:ADDRESS (a cluster, such as ray:auto or ray:HOST:6379)")
    check_address(address)
    if not 0 <= gpus_per_worker < float("inf") or (gpus_per_worker > 1 and gpus_per_worker % 1):
        raise InputError(f"--gpus-per-worker must be a share of one GPU or a whole number, such as 0.5 or 2, not {gpus_per_worker}")
    if gpus_per_worker and name == "local":
        raise InputError("--gpus-per-worker needs --engine ray; local workers take the GPU that --device names")
    return EngineSpec("ray" if name == "ray" else "local", address, gpus_per_worker, memory_per_worker)
