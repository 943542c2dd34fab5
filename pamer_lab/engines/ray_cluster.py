"""The engine for a Ray cluster: each worker is an actor that runs the same program as a local worker.

Jobs and notes are sent as JSON, with few jobs per actor and few unread notes, so that nothing accumulates in Ray's object store. A message
through Ray takes milliseconds, so short jobs are sent in batches ahead of time, and notes are batched into one stream per actor. Results
go from the actor into the workspace. Credentials are not sent: each node has them in its own environment.
"""

import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from pamer_lab import __version__
from pamer_lab.engines.interface import EngineSpec, Worker
from pamer_lab.engines.ray_joining import join, last_words
from pamer_lab.errors import InputError, LabError
from pamer_lab.jobs import own_environment

Answer = TypeVar("Answer")
NOTES_AHEAD = 16
"""Number of a worker's unread messages after which it blocks; also the maximum number of notes in one message."""
NOTE_EVERY = 0.2
"""Seconds during which notes are collected for one message."""
JOBS_AHEAD = 64
"""Maximum number of short jobs that an actor may have at once."""
SHOWN = 3
"""Maximum number of nodes that an error message describes."""
PATIENCE = 20.0
"""Seconds a stopped worker may take to save its work."""

Said = bytes | BaseException | None
"""Bytes: a note, or if empty a request to send the notes so far. None: the end. An error: the end and its cause."""


class Serving:
    """The actor: runs a module's `work(job, tell)` in a separate thread, one job at a time, and streams its notes."""

    def __init__(self, module: str, version: str) -> None:
        if version != __version__:
            raise RuntimeError(f"this node has pamer-lab {__version__}, the caller {version}; install the same version on every node")
        self._module = import_module(module)
        self._stopping = threading.Event()
        self._jobs: queue.Queue[bytes] = queue.Queue()
        self._notes: queue.Queue[Said] = queue.Queue(NOTES_AHEAD)

    def started(self) -> int:
        return os.getpid()

    def stop(self) -> None:
        self._stopping.set()
        self._jobs.put(b"[]")

    def take(self, jobs: bytes) -> None:
        """Queue more jobs."""
        self._jobs.put(jobs)

    def notes(self) -> Iterator[bytes]:
        """Lists of notes as they arrive; an error of the program itself is raised at the end."""
        threading.Thread(target=self._work, daemon=True).start()
        last: Said = b""
        while isinstance(last, bytes):
            found = _gathered(self._notes)
            last = found[-1]
            yield b"[" + b",".join(note for note in found if isinstance(note, bytes) and note) + b"]"
        if last is not None:
            raise RuntimeError(f"{type(last).__name__}: {last}")

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                for job in msgspec.json.decode(self._jobs.get(), type=list[self._module.Job]):  # type: ignore[name-defined]
                    self._module.work(job, self._tell)
                self._notes.put(b"")
            self._notes.put(None)
        except BaseException as error:
            self._notes.put(error)

    def _tell(self, note: Any) -> None:
        self._notes.put(msgspec.json.encode(note))
        if self._stopping.is_set():
            raise KeyboardInterrupt


def _gathered(notes: "queue.Queue[Said]") -> list[Said]:
    """Wait for a note, then collect more for `NOTE_EVERY` seconds; stops at anything that is not a note."""
    found = [notes.get()]
    until = time.monotonic() + NOTE_EVERY
    while found[-1] and isinstance(found[-1], bytes) and len(found) < NOTES_AHEAD:
        try:
            found.append(notes.get(timeout=max(0.0, until - time.monotonic())))
        except queue.Empty:
            break
    return found


class RayWorker:
    """One actor, as its caller sees it."""

    ahead = JOBS_AHEAD

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._started = self._taken = actor.started.remote()
        self._notes = actor.notes.options(num_returns="streaming", _generator_backpressure_num_objects=NOTES_AHEAD).remote()
        self._ended = ""

    @property
    def running(self) -> bool:
        return not self._ended

    def ready(self, seconds: float) -> bool:
        import ray

        done, _ = ray.wait([self._started], timeout=seconds)
        if done:
            try:
                ray.get(done[0])
            except Exception as error:
                self._ended = last_words(error)
        return bool(done)

    def give(self, jobs: Sequence[object]) -> None:
        import ray

        message = msgspec.json.encode(jobs)
        if self.running:
            with suppress(Exception):  # a dead actor is noticed when its notes are read
                ray.get(self._taken)  # a threaded actor may run two calls out of order
                self._taken = self._actor.take.remote(message)

    def answers(self, kind: type[Answer]) -> Iterator[Answer]:
        import ray

        if not self.running:
            return
        try:
            for notes in self._notes:
                yield from msgspec.json.decode(ray.get(notes), type=list[kind])  # type: ignore[valid-type]
        except (LabError, GeneratorExit):
            raise
        except Exception as error:  # the actor died, its node is gone, or the program in it failed
            self._ended = last_words(error)
            self.kill()

    def no_more(self) -> None:
        self._ended = self._ended or "no more jobs"
        self.kill()

    def interrupt(self) -> None:
        with suppress(Exception):
            self._actor.stop.remote()

    def stop(self) -> None:
        import ray

        if self.running:
            with suppress(Exception):
                ray.wait([self._notes.completed()], timeout=PATIENCE)
        self.no_more()

    def why_ended(self) -> str:
        return self._ended

    def kill(self) -> None:
        import ray

        with suppress(Exception):
            ray.kill(self._actor)


class RayEngine:
    """A cluster that was joined, or started here; `close` ends the latter."""

    name = "ray"

    def __init__(self, spec: EngineSpec) -> None:
        self.spec = spec
        self._own = join(spec.address)

    def capacity(self) -> int:
        self._require_room(1)
        return sum(_fit(node, self._needs(1)) for node in _nodes())

    def _needs(self, cores: int) -> dict[str, float]:
        """What Ray reserves for a worker, by resource name."""
        return {"CPU": cores, "GPU": self.spec.gpus_per_worker, "memory": self.spec.memory_per_worker}

    def _require_room(self, cores: int) -> None:
        """Refuse a cluster in which no node has room for a worker: Ray would wait silently."""
        needs, nodes = self._needs(cores), _nodes()
        if not any(_fit(node, needs) for node in nodes):
            has = "; ".join(_in_words(node) for node in nodes[:SHOWN]) or "there is none"
            raise InputError(f"no node of the cluster has room for a worker, which needs {_in_words(needs, every=False)}; nodes: {has}")

    def start(self, module: str, workers: int) -> Worker:
        import ray

        spec = self.spec
        sizes = [int(node.get("CPU", 0)) for node in _nodes()]
        threads = max(1, min(sum(sizes) // max(workers, 1), min((size for size in sizes if size), default=1)))
        self._require_room(threads)
        variables = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
        if self._own:
            variables["PYTHONPATH"] = own_environment()["PYTHONPATH"]
        options: dict[str, Any] = {
            "num_cpus": threads,
            "max_concurrency": 3,
            "max_restarts": 0,  # the caller gives a lost worker's job to a new one and counts the attempts
            "runtime_env": {"env_vars": variables},
        }
        if spec.gpus_per_worker:
            options["num_gpus"] = spec.gpus_per_worker
        if spec.memory_per_worker:
            options["memory"] = spec.memory_per_worker
        return RayWorker(ray.remote(**options)(Serving).remote(module, __version__))

    def close(self) -> None:
        import ray

        if self._own:
            ray.shutdown()


def _nodes() -> list[dict[str, float]]:
    """Total resources of each live node, by name."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node["Resources"] for node in nodes if node.get("Alive")]


def _fit(node: dict[str, float], needs: dict[str, float]) -> int:
    """How many workers a node has room for."""
    return int(min(node.get(name, 0.0) / needed for name, needed in needs.items() if needed))


def _in_words(resources: dict[str, float], *, every: bool = True) -> str:
    """CPUs, GPUs and memory in words; without `every`, only those that are not zero."""
    cores, gpus, memory = (resources.get(name, 0.0) for name in ("CPU", "GPU", "memory"))
    parts = [(cores, f"{cores:g} CPU"), (gpus, f"{gpus:g} GPU"), (memory, f"{memory / 1e9:.1f} GB of memory")]
    return ", ".join(words for count, words in parts if count or every)
