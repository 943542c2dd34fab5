"""What `--engine`, `--workers` and `--gpus-per-worker` mean, for every command that has them."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import Any

from pamer_lab.engines import Engine, open_engine, parse_engine
from pamer_lab.errors import InputError
from pamer_lab.features.elsewhere import Elsewhere, computing_on
from pamer_lab.models import devices
from pamer_lab.models.frozen import chosen_model, find_folder, is_here
from pamer_lab.models.profiles import Profile, load_profile
from pamer_lab.workspace import Workspace

PROGRAM = 1_000_000_000
"""Bytes of a worker besides its frozen model: Python, torch, the embedder, the rows it holds."""
TOKENS = 8192
"""Assumed length of an input if the profile sets no limit."""


@contextmanager
def engine_of(args: argparse.Namespace, profile: Profile | None) -> Iterator[Engine]:
    """The engine that the options select; `profile` is the one whose model each worker loads, None if workers load no model."""
    spec = parse_engine(args.engine, args.gpus_per_worker, worker_memory(profile, args.gpus_per_worker))
    if spec.name != "local" and args.processes == 0:
        raise InputError(f"--engine {spec.name} needs at least 1 worker: with --workers 0 this process does the work itself")
    with closing(open_engine(spec)) as engine:
        yield engine


Run = Callable[[argparse.Namespace], dict[str, Any]]


def states_on_engine(run: Run) -> Run:
    """Wrap a command so that `--engine` computes its states: in this process, unless workers are given or the engine is a cluster."""

    @wraps(run)
    def wrapped(args: argparse.Namespace) -> dict[str, Any]:
        workspace = Workspace()
        profile = load_profile(args.profile, workspace.path)
        with engine_of(args, profile) as engine:
            workers = workers_of(args, engine)
            with computing_on(Elsewhere(engine, workers, workspace, profile, args.device) if workers else None):
                return run(args) | engine_facts(engine, workers)

    return wrapped


def workers_of(args: argparse.Namespace, engine: Engine) -> int:
    """The requested number of workers; by default as many as fit on a cluster, and 0 locally: the command does the work itself."""
    if engine.name == "local":
        return max(int(args.processes), 0)
    return max(int(args.processes) if args.processes >= 0 else engine.capacity(), 1)


def engine_facts(engine: Engine, workers: int) -> dict[str, Any]:
    """The `engine` entry of the command's JSON; 0 workers means that the command did the work itself."""
    return {"engine": {"name": engine.name, "workers": workers}}


def worker_memory(profile: Profile | None, gpus: float = 0.0) -> int:
    """Bytes of main memory that a worker needs (estimated), so that a cluster places no more models on a node than fit."""
    if profile is None:
        return 0
    model = chosen_model(profile.frozen_model)
    shape = devices.geometry_of(find_folder(model)) if is_here(model) else devices.QWEN35_9B
    chunk = profile.frozen_model.chunk or 512
    found = devices.estimate(shape, profile.probe_limit or TOKENS, chunk, "bfloat16" if gpus else "float32")
    return PROGRAM + (found.weights if gpus else found.total)
