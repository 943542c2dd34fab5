"""How long a commit of turns or texts takes in a workspace, as its newest runs found it.

It is a matter of the disk and of the workspace: a table of many commits takes longer than a new one. Kept in `commits.json`.
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
"""Seconds of one where nothing was committed yet: a first guess."""
KEPT = 15
"""Newest commits that are remembered; the median of so many is not moved by one that had to wait."""


def remember_commits(folder: Path, seconds: Sequence[float]) -> None:
    """Keep what a run's commits took; a workspace that cannot be written keeps nothing."""
    if not seconds:
        return
    try:
        write_whole(folder / FILE, msgspec.json.encode([*_known(folder), *seconds][-KEPT:]))
    except LabError:
        return


def usual_commit(folder: Path) -> float:
    """Seconds of one commit; 0 where none is known."""
    known = _known(folder)
    return statistics.median(known) if known else 0.0


def _known(folder: Path) -> list[float]:
    try:
        return msgspec.json.decode(read_file(folder / FILE), type=list[float])
    except (LabError, OSError, msgspec.MsgspecError):
        return []
