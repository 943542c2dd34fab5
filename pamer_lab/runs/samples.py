"""Recorded runs of the demo traces, so that every page has real data on a fresh install.

Each file was written by `pamer-lab runs export` after a replay; a run carries the hashes of its models and heads, and pages say if the
installed heads differ. Nothing is computed or changed on reading, and a file whose trace is not in the workspace adds nothing.
"""

from functools import lru_cache

from msgspec.structs import replace

from pamer_lab.config import app_folder
from pamer_lab.runs.bundle import read_bundle, run_starts, trace_ids, unpack_runs
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import RunInfo
from pamer_lab.workspace import Workspace

SAMPLE_RUNS = app_folder() / "sample_traces" / "runs"
"""The files that come with the project."""


@lru_cache(maxsize=1)
def sample_runs() -> dict[str, str]:
    """The runs that come with the project, and when each of them started."""
    found: dict[str, str] = {}
    for path in sorted(SAMPLE_RUNS.glob("*.runs")):
        found |= run_starts(read_bundle(path), str(path))
    return found


def is_sample(head: RunInfo) -> bool:
    """Whether a run was recorded elsewhere, so that its times say nothing about this machine; the same run may have been replayed here."""
    return sample_runs().get(head.run_id) == head.started


def import_sample_runs(workspace: Workspace) -> list[str]:
    """Add the recorded runs of traces in the workspace, marked as demo; returns the ids of the new ones."""
    known = {row["trace_id"] for row in workspace.trace_rows()}
    before = {head.run_id for head in RunStore(workspace).heads()} if known else set()
    added: list[str] = []
    for path in sorted(SAMPLE_RUNS.glob("*.runs")):
        body = read_bundle(path)
        if trace_ids(body, str(path)) <= known:
            added += [name for name in unpack_runs(workspace, body, str(path)) if name not in before]
    store = RunStore(workspace)
    for head in store.heads(run_ids=added) if added else ():
        store.put_head(replace(head, demo=True))
    return added
