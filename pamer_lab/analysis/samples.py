"""The results of the sample study that come with the package, so that pages have something to show at once.

Each file under `sample_study/` is a study as `pamer-lab layerwise|controls|train --out` writes it, with the command that gives
it again. What always holds: nothing here is computed or changed on reading.
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
