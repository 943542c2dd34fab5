"""Folders of Harbor trials (WorkBuddyBench, Terminal-Bench): the agent's files in `agent/`, its reward next to them.

Invariant: only small files of the trial's own folder are looked at, and none of them ever replaces a reward that a trace has.
"""

from collections.abc import Sequence
from pathlib import Path

from pamer_lab.errors import InputError
from pamer_lab.opening import read_file
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rewards import reward_of

REWARDS = ("verifier/reward.json", "verifier/score.json", "verifier/reward.txt", "result.json")
"""Where a trial keeps its reward, the verifier's own words first."""
MOST_BYTES = 4_000_000
PROXY_LOG, SUMMARY = "requests.jsonl", "trajectory.json"
"""The proxy's log of a trial, and the trajectory made from it, which lacks the tools' results."""


def is_trial(folder: Path) -> bool:
    """Whether a folder is one trial: the agent's files next to the verifier's, or next to a result."""
    return (folder / "agent").is_dir() and ((folder / "verifier").is_dir() or (folder / "result.json").is_file())


def trace_files(trial: Path) -> list[Path]:
    """The files of a trial that may be traces; if the proxy's log exists, the trajectory made from it is skipped."""
    found = sorted((trial / "agent").iterdir())
    logged = any(child.name == PROXY_LOG for child in found)
    return [child for child in found if not (logged and child.name == SUMMARY)]


def reward_beside(path: Path, roots: Sequence[Path] = ()) -> float | None:
    """The reward of the trial that a file in `agent/` belongs to; None where there is none."""
    if path.parent.name != "agent" or not is_trial(path.parent.parent):
        return None
    for name in REWARDS:
        try:
            data = read_file(path.parent.parent / name, MOST_BYTES, roots=roots)
            value = get.parsed(data.decode())
        except (InputError, OSError, ValueError):
            continue
        reward = get.as_amount(value) if not isinstance(value, dict) else reward_of(value)
        if reward is not None:
            return reward
    return None
