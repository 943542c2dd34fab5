"""The interface of engines and their workers, and how an engine is named on the command line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from pamer_lab.errors import InputError

EngineName = Literal["local", "ray"]
"""`local`: processes on this machine. `ray`: actors on a Ray cluster."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class EngineSpec:
    """Which engine, and what each of its workers needs."""

    name: EngineName = "local"
    address: str = ""
    """Address of a running cluster (`HOST:6379`, `ray://HOST:10001`, `auto`); empty: `RAY_ADDRESS`, else a new cluster on this machine."""
    gpus_per_worker: float = 0.0
    """GPUs that Ray reserves for each worker; a fraction lets several share one."""
    memory_per_worker: int = 0
    """Bytes that Ray reserves for each worker; 0: none."""


class Worker(Protocol):
    """One worker: it does the jobs that it is sent, one after another, and answers with notes."""

    ahead: int
    """Maximum number of short jobs that it may have at once."""

    @property
    def running(self) -> bool:
        """Whether it can take another job."""

    def ready(self, seconds: float) -> bool:
        """Wait up to `seconds` for it to start; False if it has not."""

    def give(self, jobs: Sequence[object]) -> None:
        """Queue at least one more job; it may have at most `ahead` in total."""

    def answers(self, kind: type[Answer]) -> Iterator[Answer]:
        """Its notes on the jobs, in order, until the caller stops reading or the worker ends."""

    def no_more(self) -> None:
        """Signal that no more jobs will come."""

    def interrupt(self) -> None:
        """Ask it to stop its current job; returns at once."""

    def stop(self) -> None:
        """End it; what is finished is kept."""

    def kill(self) -> None:
        """End it at once, even while another thread is reading its answers; they end then."""

    def why_ended(self) -> str:
        """A short reason, once it has ended."""


class Engine(Protocol):
    """Starts workers."""

    name: str

    def capacity(self) -> int:
        """How many workers can run at the same time; at least 1."""

    def start(self, module: str, workers: int) -> Worker:
        """Start a worker for this module, one of `workers` in total."""

    def close(self) -> None:
        """Release the engine's own resources."""


def check_address(address: str) -> None:
    """Refuse a cluster's address with credentials or options, without repeating it: addresses are shown in messages."""
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
