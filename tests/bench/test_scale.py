"""The scale bench in its smallest form."""

from pathlib import Path

from pamer_lab.bench import scale
from pamer_lab.engines import LocalEngine


def test_workers_killed_in_a_batch_lose_and_double_nothing(tmp_path: Path) -> None:
    found = scale.killing(tmp_path / "work", LocalEngine(), kills=1)
    assert (found["kills"], found["lost"], found["doubled"]) == (1, 0, 0)


def test_queries_of_a_catalogue_are_measured(tmp_path: Path) -> None:
    found = scale._opened(tmp_path / "work", 60)
    assert {"first_traces", "last_traces", "all_runs"} <= set(found["seconds"])
    assert all(seconds > 0 for seconds in found["seconds"].values())
