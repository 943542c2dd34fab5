"""The scale bench in its smallest form."""

from pathlib import Path

from pamer_lab.bench import catalogue, scale
from pamer_lab.engines import LocalEngine
from pamer_lab.runs.store import RunStore


def test_workers_killed_in_a_batch_lose_and_double_nothing(tmp_path: Path) -> None:
    found = scale.killing(tmp_path / "work", LocalEngine(), kills=1)
    assert (found["kills"], found["lost"], found["doubled"]) == (1, 0, 0)


def test_a_batch_is_timed_from_when_each_worker_has_done_a_trace(tmp_path: Path) -> None:
    clocks = scale.timed(tmp_path / "work", 3, LocalEngine(), 1)
    assert 0 < clocks.working < clocks.whole and clocks.cpu > 0


def test_a_catalogue_has_as_many_traces_and_runs_as_asked_and_answers_queries(tmp_path: Path) -> None:
    workspace = catalogue.make(tmp_path / "work", 60)
    found = catalogue.queries(workspace, 60)
    assert (workspace.traces().height, workspace.runs().height) == (61, 61) and all(seconds > 0 for seconds in found.values())
    assert workspace.trace("t-30").trace.trace_id == "t-30" and RunStore(workspace).stored_count("r-30") == catalogue.TURNS_EACH
