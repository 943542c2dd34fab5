"""The results of the sample study that come with the package.

Each file under `sample_study/` is a study written by `pamer-lab layerwise|controls|train --out`, with the command that reproduces it.
Nothing is computed or changed on reading.
"""

from pathlib import Path

from pamer_lab.errors import UnknownNameError
from pamer_lab.studies.study import Study, read_study

FOLDER = Path(__file__).parent / "sample_study"


def sample_names() -> list[str]:
    """Names of the sample results that are here."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def sample_study(name: str) -> Study:
    """One sample result by its name."""
    if name not in sample_names():
        raise UnknownNameError("sample result", name, sample_names())
    return read_study(FOLDER / f"{name}.json")
