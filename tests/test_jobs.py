"""Processes of ours that answer in JSON lines: what they say, how they end, how they are stopped."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest

from pamer_lab.jobs import LINES_VARIABLE, Line, OneAtATime, Process, Progress, Work

PATIENCE = 60.0
PROGRAM = """
import sys, msgspec
from pamer_lab.jobs import stop_when_terminated
stop_when_terminated()
print("a library says hello")
try:
    print('{"progress": {"done": 1, "total": 4, "what": "steps"}}', flush=True)
    for line in sys.stdin:
        print(msgspec.json.encode({"said": msgspec.json.decode(line)["word"]}).decode(), flush=True)
except KeyboardInterrupt:
    print('{"said": "put away"}', flush=True)
    sys.exit(3)
"""

PUTS_AWAY = """
import sys
from pamer_lab.jobs import stop_when_terminated
stop_when_terminated()
try:
    print('{"said": "working"}', flush=True)
    sys.stdin.readline()
except KeyboardInterrupt:
    print('{"said": "putting away"}', flush=True)
    sys.stdin.readline()
    print('{"said": "put away"}', flush=True)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "talks_in_lines.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    return "talks_in_lines"


def test_a_process_answers_what_it_is_sent_and_other_output_is_left_out(program: str) -> None:
    process = Process(program)
    answers = process.answers(Line)
    assert next(answers).progress == Progress(done=1, total=4, what="steps")
    process.send({"word": "one"})
    assert next(answers).said == "one"
    process.no_more()
    assert list(answers) == [] and process.wait() == 0 and not process.running


def test_a_stopped_process_puts_away_what_it_has(program: str) -> None:
    process, stopping = Process(program), threading.Event()
    process.stop_on(stopping)
    answers = process.answers(Line)
    next(answers)
    stopping.set()
    assert [line.said for line in answers] == ["put away"] and process.wait() == 3


def test_a_second_signal_does_not_disturb_a_process_that_puts_away_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "puts_away.py").write_text(PUTS_AWAY)
    monkeypatch.syspath_prepend(tmp_path)
    process = Process("puts_away")
    answers = process.answers(Line)
    assert next(answers).said == "working"
    process.interrupt()
    assert next(answers).said == "putting away"
    process.interrupt()
    process._process.send_signal(signal.SIGINT)  # Ctrl-C reaches a command and its workers
    process.send({"word": "go on"})
    assert next(answers).said == "put away" and process.wait() == 0


def test_sending_to_a_process_that_is_gone_is_no_error(program: str) -> None:
    process = Process("a_module_that_is_not_there")
    assert process.wait() == 1
    process.send({"word": "one"})
    assert list(process.answers(Line)) == []


def test_a_command_that_another_process_runs_answers_in_lines() -> None:
    environment = os.environ | {LINES_VARIABLE: "1"}
    done = Process("pamer_lab.cli", "replay", "--list", environment=environment)
    (line,) = done.answers(Line)
    assert done.wait() == 0 and line.result and "base" in [policy["name"] for policy in line.result["policies"]]
    failed = Process("pamer_lab.cli", "replay", environment=environment)
    (line,) = failed.answers(Line)
    assert failed.wait() == 2 and line.error and line.result is None


def test_progress_knows_its_share_and_the_time_left() -> None:
    progress = Progress(done=30, total=120, what="tokens", seconds=10, seconds_left=30)
    assert progress.share == 0.25 and re.search(r"\b30\b.*\b120\b.*\b3\b", progress.line)
    assert Progress(done=1, total=4, what="tokens", there=0.5).share_of_all == 0.625
    assert Progress(done=0, total=0, what="turns").share == 0 and Progress(done=0, total=5, what="turns").time_left == ""
    assert "2 min" in Progress(done=1, total=5, what="turns", seconds_left=120).time_left


def test_whatever_happens_work_ends_and_says_why() -> None:
    def fails(work: Work) -> None:
        raise OSError("disk full")

    work = OneAtATime[Work]().queue(Work, fails)
    assert work.wait(PATIENCE) and not work.running and "OSError: disk full" in work.error
