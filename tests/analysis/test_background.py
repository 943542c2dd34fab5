"""Studies beside their caller: a real process finishes, fails with its sentence, or is stopped."""

import os
from pathlib import Path

import pytest

from pamer_lab.analysis.background import StudyJobs
from pamer_lab.jobs import LINES_VARIABLE, Line, Process
from pamer_lab.probes.split import MINIMUM_QUESTIONS
from pamer_lab.studies.study import list_studies
from pamer_lab.workspace import Workspace
from tests.commands.conftest import profile
from tests.commands.test_studies import write_corpus
from tests.trajectory.formats.told import numbers

__all__ = ["profile"]


@pytest.mark.weights
def test_a_command_reports_progress_and_its_result_as_json_lines(workspace: Workspace, profile: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    process = Process(
        "pamer_lab.cli",
        "layerwise",
        str(corpus),
        "--seeds",
        "0",
        "--profile",
        str(profile),
        "--device",
        "cpu",
        environment=os.environ | {LINES_VARIABLE: "1", "PAMER_LAB_HOME": str(workspace.path)},
    )
    lines = list(process.answers(Line))
    assert process.wait() == 0
    progress = [line.progress for line in lines if line.progress]
    assert progress and all(0 < one.done <= one.total and one.what == "tokens" for one in progress)
    assert lines[-1].result and lines[-1].result["study_id"] and any(line.said for line in lines)


@pytest.mark.weights
def test_a_study_runs_to_its_end_and_is_in_the_workspace(workspace: Workspace, profile: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    jobs = StudyJobs(workspace.path)
    job = jobs.start([["layerwise", str(corpus), "--seeds", "0,1", "--profile", str(profile), "--device", "cpu"]])
    assert jobs.current is job
    behind = jobs.start([["layerwise", "none"]])
    assert jobs.waiting == [behind] and jobs.start([["layerwise", "none"]]) is behind
    behind.stop()
    assert job.wait(240)
    assert job.error == ""
    assert [row["study_id"] for row in list_studies(workspace)] == job.study_ids
    assert jobs.current is None


def test_a_command_that_fails_ends_the_job_with_its_sentence(workspace: Workspace, tmp_path: Path) -> None:
    few = write_corpus(tmp_path / "few.jsonl", 3)
    job = StudyJobs(workspace.path).start([["layerwise", str(few)], ["controls", str(few)]])
    assert job.wait(120)
    assert numbers(job.error)[-2:] == [MINIMUM_QUESTIONS, 3]
    assert job.number == 0
    assert job.study_ids == []


def test_a_stopped_job_ends_soon_and_says_that_it_can_go_on(workspace: Workspace, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    job = StudyJobs(workspace.path).start([["layerwise", str(corpus)]])
    job.stop()
    assert job.wait(60)
    assert job.error and job.study_ids == []
    assert job.words.startswith("pamer-lab layerwise ")
