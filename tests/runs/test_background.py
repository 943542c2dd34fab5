import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.errors import Cancelled, InputError
from pamer_lab.runs.background import Background
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BatchProgress, Outcome
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.runs.test_batch import filled

MODULE = sys.modules[Background.__module__]
PATIENCE = 240.0
HERE = BatchOptions()
"""In this process: threads and events are what is tested, workers have their own tests."""


def test_a_batch_runs_beside_its_caller_and_leaves_its_outcomes(workspace: Workspace) -> None:
    ids = filled(workspace, 3, traces=2)
    beside = Background(workspace.path)
    batch = beside.start(ids, ["base"], HERE)
    assert batch.wait(PATIENCE) and not batch.running and beside.current is None and beside.latest is batch
    assert [outcome.status for outcome in batch.outcomes] == ["done", "done"] and not batch.failures and not batch.error
    assert isinstance(batch.progress, BatchProgress) and batch.progress.runs_done == 2


def held(release: threading.Event) -> Callable[..., list[Outcome]]:
    """A replay that waits until it is let go or stopped."""

    def replaying(*given: Any, report: Callable[[BatchProgress], None], cancelled: Callable[[], bool], **more: Any) -> list[Outcome]:
        report(BatchProgress(done=1, total=2, runs_done=0, runs=1))
        while not release.wait(0.01):
            if cancelled():
                raise Cancelled("stopped; finished turns are kept")
        return [Outcome("t", "base", "", "failed", "it broke")]

    return replaying


def test_a_second_batch_waits_for_the_first_and_then_runs_by_itself(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(MODULE, "replay_batch", held(release))
    beside = Background(workspace.path)
    first = beside.start(["t"], ["base"], HERE)
    assert beside.start(["t"], ["base"], HERE) is first is beside.current and not beside.waiting
    second, third = beside.start(["u"], ["base"], HERE), beside.start(["v"], ["base"], HERE)
    assert beside.waiting == [second, third] and beside.start(["u"], ["base"], HERE) is second
    second.stop()
    assert beside.waiting == [third] and beside.current is first
    release.set()
    assert all(batch.wait(PATIENCE) for batch in (first, second, third)) and not beside.waiting
    assert [outcome.error for batch in (first, third) for outcome in batch.failures] == ["it broke"] * 2 and not second.outcomes
    assert beside.latest is third and beside.current is None


def test_a_stopped_batch_says_so_and_can_be_started_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = filled(workspace, 3, traces=1)
    beside = Background(workspace.path)
    monkeypatch.setattr(MODULE, "replay_batch", held(threading.Event()))
    batch = beside.start(ids, ["base"], HERE)
    batch.stop()
    assert batch.wait(PATIENCE) and batch.error and not batch.outcomes
    monkeypatch.setattr(MODULE, "replay_batch", replay_batch)
    again = beside.start(ids, ["base"], HERE)
    assert again.wait(PATIENCE) and [head.status for head in RunStore(workspace).heads()] == ["done"]


@pytest.mark.parametrize(
    ("error", "words"), [(InputError("the file is gone"), "the file is gone"), (OSError("disk full"), "OSError: disk full")]
)
def test_an_error_ends_the_batch_with_its_sentence_so_that_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def failing(*given: Any, **more: Any) -> list[Outcome]:
        raise error

    monkeypatch.setattr(MODULE, "replay_batch", failing)
    batch = Background(tmp_path).start(["t"], ["base"], HERE)
    assert batch.wait(PATIENCE) and words in batch.error
