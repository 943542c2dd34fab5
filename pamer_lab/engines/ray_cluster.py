"""The engine of a Ray cluster: each worker is an actor that runs the same program as a local worker.

Jobs and notes travel as JSON, one job per actor at a time and few notes ahead of their reader, so that nothing gathers in Ray's object
store; results go from the actor into the workspace. Credentials are not sent: each node has them in its own environment.
"""

import os
import queue
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from pamer_lab import __version__
from pamer_lab.engines.interface import EngineSpec, Worker
from pamer_lab.errors import InputError, LabError
from pamer_lab.jobs import own_environment

Answer = TypeVar("Answer")
OBJECT_STORE = 200_000_000
"""Bytes of the object store of a cluster that we start ourselves; notes are small."""
NOTES_AHEAD = 16
"""Notes of a job that wait unread before the worker waits too."""
PATIENCE = 20.0
"""Seconds a stopped worker may take to put away what it has."""
INSTALL = "--engine ray needs Ray, which is not installed here: pip install 'pamer-lab[ray]'"


class Serving:
    """The actor: `work(job, tell)` of a module, as a stream of notes."""

    def __init__(self, module: str, version: str) -> None:
        if version != __version__:
            raise RuntimeError(f"this node has pamer-lab {__version__}, the caller {version}; install the same version on every node")
        self._module = import_module(module)
        self._stopping = threading.Event()

    def started(self) -> int:
        return os.getpid()

    def stop(self) -> None:
        self._stopping.set()

    def work(self, job: bytes) -> Iterator[bytes]:
        """Notes as they come; a fault of the program itself is raised at the end."""
        notes: queue.Queue[bytes | BaseException | None] = queue.Queue(NOTES_AHEAD)

        def tell(note: Any) -> None:
            notes.put(msgspec.json.encode(note))
            if self._stopping.is_set():
                raise KeyboardInterrupt

        def run() -> None:
            try:
                self._module.work(msgspec.json.decode(job, type=self._module.Job), tell)
                notes.put(None)
            except BaseException as error:
                notes.put(error)

        threading.Thread(target=run, daemon=True).start()
        while (note := notes.get()) is not None:
            if isinstance(note, BaseException):
                raise RuntimeError(f"{type(note).__name__}: {note}")
            yield note


class RayWorker:
    """One actor, as its caller sees it."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._started = actor.started.remote()
        self._notes: Any = None
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
                self._ended = _words(error)
        return bool(done)

    def send(self, value: object) -> None:
        if self.running:
            self._notes = self._actor.work.options(num_returns="streaming", _generator_backpressure_num_objects=NOTES_AHEAD).remote(
                msgspec.json.encode(value)
            )

    def answers(self, kind: type[Answer]) -> Iterator[Answer]:
        import ray

        if not self.running:
            return
        try:
            for note in self._notes:
                yield msgspec.json.decode(ray.get(note), type=kind)
        except (LabError, GeneratorExit):
            raise
        except Exception as error:  # the actor died, its node is gone, or the program in it failed
            self._ended = _words(error)
            self._kill()

    def no_more(self) -> None:
        self._ended = self._ended or "no more jobs"
        self._kill()

    def interrupt(self) -> None:
        with suppress(Exception):
            self._actor.stop.remote()

    def stop(self) -> None:
        import ray

        with suppress(Exception):
            ray.wait([self._notes.completed()], timeout=PATIENCE)
        self.no_more()

    def why_ended(self) -> str:
        return self._ended

    def _kill(self) -> None:
        import ray

        with suppress(Exception):
            ray.kill(self._actor)


class RayEngine:
    """A cluster, joined or started here; one that was started here ends with `close`."""

    name = "ray"

    def __init__(self, spec: EngineSpec) -> None:
        self.spec = spec
        self._own = _connect(spec.address)

    def capacity(self) -> int:
        found = _resources()
        spec, fits = self.spec, [float(found.get("CPU", 1))]
        if spec.gpus_per_worker:
            fits.append(found.get("GPU", 0) / spec.gpus_per_worker)
            if fits[-1] < 1:
                raise InputError(f"the cluster has {found.get('GPU', 0):g} GPUs, fewer than --gpus-per-worker {spec.gpus_per_worker:g}")
        if spec.memory_per_worker:
            fits.append(found.get("memory", 0) / spec.memory_per_worker)
        return max(1, int(min(fits)))

    def start(self, module: str, workers: int) -> Worker:
        import ray

        spec = self.spec
        threads = max(1, min(int(_resources().get("CPU", 1)) // max(workers, 1), _node_cores()))
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


def _connect(address: str) -> bool:
    """Join the cluster at an address, or start one; True where it was started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise InputError(INSTALL) from error
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS", "")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address:
            ray.init(address=address, **quiet)
            return False
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="lancedb fork support")  # Ray forks only to start other programs
            ray.init(address="local", include_dashboard=False, object_store_memory=OBJECT_STORE, **quiet)
        return True
    except Exception as error:
        where = f"no Ray cluster answers at {address}" if address else "Ray cannot start a cluster on this machine"
        raise InputError(f"{where} ({_words(error)})") from error


def _resources() -> dict[str, float]:
    """What the cluster has in all, by name."""
    import ray

    return dict(ray.cluster_resources())  # type: ignore[no-untyped-call]


def _node_cores() -> int:
    """Cores of the smallest node that has any, so that a worker fits everywhere."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    sizes = [int(node["Resources"].get("CPU", 0)) for node in nodes if node.get("Alive")]
    return min((size for size in sizes if size), default=1)


def _words(error: Exception) -> str:
    """The last line of Ray's report, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300]}" if lines else type(error).__name__
