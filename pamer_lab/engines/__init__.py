"""Runs long work in processes on this machine (`local`) or on a Ray cluster (`ray[:ADDRESS]`).

A worker runs one module with `Job`, `Note` and `work(job, tell)`: it does one job at a time, reports notes until a job is finished, and
keeps its models loaded between jobs. Knows nothing about the content of jobs. Invariant: a lost worker never blocks its caller, and the
same job gives the same results on every engine.
"""

from pamer_lab.engines.interface import Engine, EngineSpec, Worker, parse_engine
from pamer_lab.engines.local import LocalEngine

__all__ = ["Engine", "EngineSpec", "LocalEngine", "Worker", "open_engine", "parse_engine"]


def open_engine(spec: EngineSpec) -> Engine:
    """Connect to the engine; `InputError` if a cluster does not answer."""
    if spec.name == "local":
        return LocalEngine()
    from pamer_lab.engines.ray_cluster import RayEngine

    return RayEngine(spec)
