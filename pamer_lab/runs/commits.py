"""How long it takes to commit new rows of a run to a workspace, measured by its newest runs and kept in `commits.json`.

The time depends on the disk and on the workspace: a commit to a table with many earlier commits takes longer.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pamer_lab.errors import LabError
from pamer_lab.opening import read_file
from pamer_lab.storage.files import write_whole

FILE = "commits.json"
COMMIT = 0.006
"""First guess, in seconds, for a workspace without any commits."""
KEPT = 15
"""Number of newest commits kept; enough that one delayed commit does not move the median."""


def remember_commits(folder: Path, seconds: Sequence[float]) -> None:
    """Keep the times of a run's commits; nothing is kept if the workspace cannot be written."""
    if not seconds:
        return
    try:
        write_whole(folder / FILE, msgspec.json.encode([*_known(folder), *seconds][-KEPT:]))
    except LabError:
        return


def usual_commit(folder: Path) -> float:
    """Median seconds of a commit; 0 if none is known."""
    known = _known(folder)
    return statistics.median(known) if known else 0.0


def _known(folder: Path) -> list[float]:
    try:
        return msgspec.json.decode(read_file(folder / FILE), type=list[float])
    except (LabError, OSError, msgspec.MsgspecError):
        return []
