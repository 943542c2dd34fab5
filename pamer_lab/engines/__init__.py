"""Where long work is done: in processes of this machine (`local`), or on a Ray cluster (`ray[:ADDRESS]`).

A worker runs one of our programs, a module with `Job`, `Note` and `work(job, tell)`, gets one job at a time and answers with notes
until the last one; it keeps its models from job to job. Knows nothing of what the jobs are. Invariant: a worker that is gone never
blocks its caller, and the same job gives the same results on every engine.
"""

from pamer_lab.engines.interface import Engine, EngineSpec, Worker, parse_engine
from pamer_lab.engines.local import LocalEngine

__all__ = ["Engine", "EngineSpec", "LocalEngine", "Worker", "open_engine", "parse_engine"]


def open_engine(spec: EngineSpec) -> Engine:
    """The engine, connected; a cluster that does not answer is an `InputError`."""
    if spec.name == "local":
        return LocalEngine()
    from pamer_lab.engines.ray_cluster import RayEngine

    return RayEngine(spec)
