"""The engine of a Ray cluster: each worker is an actor that runs the same program as a local worker.

Jobs and notes travel as JSON, few jobs per actor at a time and few notes ahead of their reader, so that nothing gathers in Ray's object
store. A message through Ray takes milliseconds: short jobs are sent several at once, ahead of their turn, and notes are gathered into
one stream per actor. Results go from the actor into the workspace. Credentials are not sent: each node has them in its own environment.
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
"""Messages of a worker that wait unread before it waits too, and notes that it gathers for one."""
NOTE_EVERY = 0.2
"""Seconds in which notes are gathered for one message."""
JOBS_AHEAD = 64
"""Short jobs that are sent in one message."""
SHOWN = 3
"""Nodes that a message describes."""
PATIENCE = 20.0
"""Seconds a stopped worker may take to put away what it has."""

Said = bytes | BaseException | None
"""A note; empty: what was said so far should be sent; None: nothing more comes; an error: why nothing more comes."""


class Serving:
    """The actor: `work(job, tell)` of a module, one job at a time in a thread of its own, and its notes as one stream."""

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
        """Jobs to do after those that are there."""
        self._jobs.put(jobs)

    def notes(self) -> Iterator[bytes]:
        """Lists of notes as they come; a fault of the program itself is raised at the end."""
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
    """The notes of the next moments, at least one; after what is no note comes nothing."""
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
            with suppress(Exception):  # an actor that has died says so in its notes
                ray.get(self._taken)  # two calls of a threaded actor may change places
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
    """A cluster, joined or started here; one that was started here ends with `close`."""

    name = "ray"

    def __init__(self, spec: EngineSpec) -> None:
        self.spec = spec
        self._own = join(spec.address)

    def capacity(self) -> int:
        self._require_room(1)
        return sum(_fit(node, self._needs(1)) for node in _nodes())

    def _needs(self, cores: int) -> dict[str, float]:
        """What Ray reserves for a worker, by the names of `RESOURCES`."""
        return {"CPU": cores, "GPU": self.spec.gpus_per_worker, "memory": self.spec.memory_per_worker}

    def _require_room(self, cores: int) -> None:
        """Refuse a cluster where no node can ever hold a worker: Ray would wait for one without a word."""
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
            "max_restarts": 0,  # a lost worker's job is given to a new one by the caller, who counts the attempts
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
    """What each node of the cluster has in all, by name."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node["Resources"] for node in nodes if node.get("Alive")]


def _fit(node: dict[str, float], needs: dict[str, float]) -> int:
    """How many workers a node has room for."""
    return int(min(node.get(name, 0.0) / needed for name, needed in needs.items() if needed))


def _in_words(resources: dict[str, float], *, every: bool = True) -> str:
    """CPUs, GPUs and memory; without `every` only what is not zero."""
    cores, gpus, memory = (resources.get(name, 0.0) for name in ("CPU", "GPU", "memory"))
    parts = [(cores, f"{cores:g} CPU"), (gpus, f"{gpus:g} GPU"), (memory, f"{memory / 1e9:.1f} GB of memory")]
    return ", ".join(words for count, words in parts if count or every)
