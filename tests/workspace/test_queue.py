"""Whoever comes first works first, and a dead process keeps nobody waiting."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pamer_lab.errors import Cancelled
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BatchProgress
from pamer_lab.runs.worker import WORTH_WORKERS, default_processes
from pamer_lab.workspace import Workspace, queue
from pamer_lab.workspace.queue import in_line
from tests.runs.making import estimated, long_trace


def test_the_second_waits_for_the_first_and_is_told_so(tmp_path: Path) -> None:
    order: list[str] = []
    told, entered = threading.Event(), threading.Event()

    def second() -> None:
        with in_line(tmp_path, waiting=lambda ahead: told.set()):
            order.append("second")
        entered.set()

    with in_line(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(30)
        order.append("first")
    assert entered.wait(30)
    thread.join()
    assert order == ["first", "second"] and list((tmp_path / "locks" / "queue").iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from pamer_lab.workspace.queue import in_line\n"
        "with in_line(Path(sys.argv[1])): os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    left = list((tmp_path / "locks" / "queue").iterdir())
    assert len(left) == 1
    told: list[int] = []
    with in_line(tmp_path, waiting=told.append):
        assert not left[0].exists()
    assert told == []


def test_waiting_can_be_stopped_and_leaves_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "LOOK_EVERY", 0.0)
    with in_line(tmp_path):
        with pytest.raises(Cancelled), in_line(tmp_path, cancelled=lambda: True):
            raise AssertionError("never reached")
        assert len(list((tmp_path / "locks" / "queue").iterdir())) == 1


def test_a_batch_with_models_waits_in_the_queue_and_says_so(workspace: Workspace) -> None:
    ids = [row["trace_id"] for row in workspace.add_traces([long_trace(4)], estimated())]
    seen: list[BatchProgress] = []
    with in_line(workspace.path):
        replay_batch(ids, ["base"], workspace, BatchOptions())  # needs no model, so it does not wait
        with pytest.raises(Cancelled):
            replay_batch(ids, ["pamer"], workspace, BatchOptions(), report=seen.append, cancelled=lambda: bool(seen))
    assert seen[0].ahead == 1 and str(seen[0].ahead) in seen[0].line


def test_policies_with_models_share_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    assert default_processes(["pamer", "base"], 9, 1e6) == default_processes(["base"], 1, 1e6) == 0
    assert default_processes(["base"], 9, 1e6) == 4 and default_processes(["base"], 3, 1e6) == 3


def test_short_work_starts_no_worker() -> None:
    assert default_processes(["base"], 9, WORTH_WORKERS / 2) == 0 < default_processes(["base"], 9, 2 * WORTH_WORKERS)
