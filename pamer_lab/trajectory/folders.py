"""Folders of traces: which files are read, and the reward that a Harbor trial (WorkBuddyBench, Terminal-Bench) keeps in its folder.

Invariant: rewards come from small files of the trial's own folder, and never replace a trace's own.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pamer_lab.errors import InputError
from pamer_lab.opening import read_file, regular
from pamer_lab.trajectory.document import EVENT_FILE
from pamer_lab.trajectory.piece_folders import is_beside, is_joined
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rewards import reward_of
from pamer_lab.trajectory.yaml_cassette import CASSETTE_SUFFIXES, is_cassette

REWARDS = ("verifier/reward.json", "verifier/score.json", "verifier/reward.txt", "result.json")
"""Where a trial keeps its reward; the verifier's files come first."""
MOST_BYTES = 4_000_000
"""Size limit of a file with a reward."""
PROXY_LOG, SUMMARY = "requests.jsonl", "trajectory.json"
"""The proxy's log of a trial, and the trajectory made from it, which lacks the tools' results."""
LABEL_SUFFIX = ".labels.json"
"""Side files of labels, which hold no trace; `import --labels` reads them."""


def trace_sources(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files to read below `path`; a folder of numbered event files, or of other pieces of conversations, is one source."""
    if not path.is_dir():
        yield path
        return
    children = _trace_files(path) if _is_trial(path) else sorted(path.iterdir())
    if any(EVENT_FILE.match(child.name) for child in children) or is_joined(path):
        yield path
        return
    for child in children:
        if child.is_dir() and not child.is_symlink():
            yield from trace_sources(child, suffixes)
        elif regular(child) and _may_hold_traces(child, suffixes):
            yield child


def _may_hold_traces(file: Path, suffixes: tuple[str, ...]) -> bool:
    """Judged by its name, and for YAML by its beginning, since most YAML files are settings, not cassettes."""
    if file.suffix in CASSETTE_SUFFIXES:
        try:
            with file.open("rb") as stream:
                return is_cassette(stream.read(4_000))
        except OSError:
            return False
    return file.suffix in suffixes and not file.name.endswith(LABEL_SUFFIX) and not is_beside(file)


def _is_trial(folder: Path) -> bool:
    """Whether a folder is one trial: the agent's files next to the verifier's, or next to a result."""
    return (folder / "agent").is_dir() and ((folder / "verifier").is_dir() or (folder / "result.json").is_file())


def _trace_files(trial: Path) -> list[Path]:
    """The files of a trial that may be traces; if the proxy's log exists, the trajectory made from it is skipped."""
    found = sorted((trial / "agent").iterdir())
    logged = any(child.name == PROXY_LOG for child in found)
    return [child for child in found if not (logged and child.name == SUMMARY)]


def reward_beside(path: Path, roots: Sequence[Path] = ()) -> float | None:
    """The reward of the trial that a file in `agent/` belongs to; None without one."""
    if path.parent.name != "agent" or not _is_trial(path.parent.parent):
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
