"""A program plays behind the live proxy: its tasks are files, its reward is a grader's, and its task always ends with a reason."""

import os
import re
import shlex
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.command import CommandAgent
from pamer_lab.arena.episode import Episode
from pamer_lab.arena.opening import open_episode
from pamer_lab.arena.plan import Plan
from pamer_lab.arena.programs import run_limited
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import ArenaStore
from pamer_lab.arena.suite import read_reward, read_suite, suite_name
from pamer_lab.cli import main
from pamer_lab.errors import InputError
from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace

AGENT = """
import json, os, pathlib, subprocess, sys, time, urllib.request
task = pathlib.Path(sys.argv[1]).read_text()
assert os.environ["PAMER_TASK_FILE"] == sys.argv[1] and not pathlib.Path("answer").exists()
kind = task.split()[0]
if kind == "crash":
    print("no idea", file=sys.stderr)
    sys.exit(3)
if kind == "hang":
    time.sleep(600)
messages = [{"role": "system", "content": "work"}, {"role": "user", "content": task}]
for step in range(8):
    body = json.dumps({"model": "fake", "messages": messages}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    asked = urllib.request.Request(url, body, {"content-type": "application/json", "authorization": "Bearer sk-planted-0123456789abcdef"})
    said = json.load(urllib.request.urlopen(asked, timeout=60))["choices"][0]["message"]["content"]
    call = {"id": f"c{step}", "type": "function", "function": {"name": "note", "arguments": json.dumps({"n": step})}}
    messages += [{"role": "assistant", "content": said, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": f"c{step}", "content": "noted " * 60}]
if kind == "tools":
    print(subprocess.run(os.environ["PAMER_TOOLS"].split() + ["search", "{}"], capture_output=True, text=True, check=True).stdout)
pathlib.Path("done.txt").write_text(said)
print(said)
"""
GRADER = """
import os, pathlib
work = pathlib.Path(os.environ["PAMER_WORK_DIR"])
expected = pathlib.Path(os.environ["PAMER_TASK_FOLDER"], "answer").read_text()
print('{"reward": %s}' % (0.5 if expected == "half" else float((work / "done.txt").read_text().startswith(expected))))
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    for number, (kind, expected) in enumerate([("good", "Answer"), ("other", "half"), ("wrong", "Nothing"), ("crash", "")]):
        task = folder / f"{number}-{kind}"
        (task / "files").mkdir(parents=True)
        (task / "task.md").write_text(f"{kind} task")
        (task / "answer").write_text(expected)
        (task / "grade.py").write_text(GRADER)
    (folder / "notes").mkdir()
    return folder


def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **plan: Any) -> tuple[Workspace, str, list[Episode], FakeUpstream]:
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    workspace, fake = Workspace(tmp_path / "ws"), FakeUpstream()
    agent = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(program))} {{task}}"
    with serving(fake) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        info = play_arena(Plan(agent=agent, **{"policies": ("sliding-window:2",)} | plan), workspace)
    return workspace, info.arena_id, ArenaStore(workspace).episodes(info.arena_id), fake


def test_a_program_plays_a_suite_under_each_policy(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, arena_id, episodes, fake = played(tmp_path, monkeypatch, suite=str(suite))
    found = {(episode.task, episode.policy): episode for episode in episodes}
    base, window = (found[0, policy] for policy in ("base", "sliding-window:2"))
    assert len(found) == 8 and [found[task, "base"].reward for task in range(4)] == [1.0, 0.5, 0.0, 0.0]
    assert [found[task, "base"].ended for task in range(3)] == ["answered"] * 3
    assert re.search(r"\b3\b.*no idea", found[3, "base"].ended)
    assert base.turns == window.turns == 8 and base.totals["main_input"] > window.totals["main_input"] > 0
    assert base.cost.keys() == window.cost.keys() and all(base.cost.values())
    assert len(fake.ledger) == 2 * 3 * 8 and len(fake.ledger[7].body) > len(fake.ledger[15].body)
    for policy, episode in (("base", base), ("sliding-window:2", window)):
        opened = open_episode(workspace, arena_id, 0, policy)
        run = RunStore(workspace).run(opened["run_id"])
        assert run.head.policy == policy and run.totals["main_input"] == episode.totals["main_input"]
        assert len(workspace.trace(opened["trace_id"]).trace.messages) >= 16
    with pytest.raises(InputError):
        open_episode(workspace, arena_id, 3, "base")
    stored = b"".join(path.read_bytes() for path in (workspace.path / "arena").rglob("*") if path.is_file())
    assert b"sk-planted" not in stored


def test_a_program_that_does_not_end_is_ended_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tmp_path / "slow" / "1"
    task.mkdir(parents=True)
    (task / "task.txt").write_text("hang")
    _, _, (episode,), _ = played(tmp_path, monkeypatch, suite=str(task.parent), grader="true", policies=(), time_limit=1.0)
    assert "1 seconds" in episode.ended and episode.reward == 0.0 and episode.turns == 0


@pytest.mark.parametrize(
    "trick", ["os.unlink('.stdout'); os.mkfifo('.stdout')", "os.unlink('.stdout'); os.symlink('/dev/zero', '.stdout')"]
)
def test_what_a_program_puts_in_place_of_its_output_is_not_read(trick: str, tmp_path: Path) -> None:
    code, said, _ = run_limited([sys.executable, "-c", f"import os; print('done', flush=True); {trick}"], os.environ, tmp_path, 60)
    assert (code, said) == (0, "done\n")


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.arena.programs.MOST_PRINTED", 1_000_000)
    code, said, _ = run_limited(["yes"], os.environ, tmp_path, 600)
    assert code is None and said.endswith("y\n")


def test_a_suite_with_links_out_of_it_or_with_pipes_is_refused(suite: Path) -> None:
    inside, outside = suite / "0-good" / "files" / "link", suite / "1-other" / "files" / "deep" / "link"
    inside.symlink_to(suite / "0-good" / "answer")
    assert len(read_suite(str(suite))) == 4
    outside.parent.mkdir()
    outside.symlink_to(Path.home())
    with pytest.raises(InputError):
        read_suite(str(suite))
    outside.unlink()
    os.mkfifo(outside)
    with pytest.raises(InputError):
        read_suite(str(suite))


def test_a_program_plays_a_world_with_its_tools_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, episodes, _ = played(tmp_path, monkeypatch, tasks=1, level="1-0-0")
    assert [(episode.policy, episode.ended, episode.reward) for episode in episodes] == [
        ("base", "answered", 0.0),
        ("sliding-window:2", "answered", 0.0),
    ]


def test_programs_at_the_same_time_play_as_one_after_another(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, alone, _ = played(tmp_path, monkeypatch, suite=str(suite))
    (tmp_path / "other").mkdir()
    *_, together, fake = played(tmp_path / "other", monkeypatch, suite=str(suite), processes=2)

    def told(episode: Episode) -> tuple[Any, ...]:
        return episode.task, episode.policy, episode.ended, episode.reward, episode.turns, episode.totals["main_input"]

    assert list(map(told, alone)) == list(map(told, together)) and len(fake.ledger) == 2 * 3 * 8


def test_keys_that_a_program_prints_or_is_started_with_are_neither_kept_nor_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, last, own = ("sk-ant-api03-" + letters * 20 for letters in ("Zq7", "Xw4", "Kp9"))
    monkeypatch.setenv("MY_OWN_API_KEY", own)
    (tmp_path / "agent.py").write_text(f"import sys\nprint({last!r})\nsys.exit('refused: {last} and {own}')")
    task = tmp_path / "suite" / "1"
    task.mkdir(parents=True)
    (task / "task.md").write_text("work")
    workspace = Workspace(tmp_path / "ws")
    monkeypatch.setenv("PAMER_LAB_HOME", str(workspace.path))
    agent = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'agent.py'))} --api-key {words}"
    arena = play_arena(Plan(agent=agent, suite=str(task.parent), grader="true", policies=()), workspace).arena_id
    (episode,) = ArenaStore(workspace).episodes(arena)
    assert re.search(r"\b1\b.*\[redacted: ", episode.ended)
    page = tmp_path / "share.html"
    assert main(["report", "--arena", arena, "--out", str(page)]) == 0
    shared = page.read_bytes()
    with zipfile.ZipFile(page.with_suffix(".zip")) as archive:
        shared += b"".join(archive.read(name) for name in archive.namelist())
    kept = b"".join(path.read_bytes() for path in workspace.path.rglob("*") if path.is_file() and "work" not in path.parts)
    assert arena.encode() in shared and not [key for key in (words, last, own) if key.encode() in shared + kept]


@pytest.mark.parametrize(
    ("printed", "code", "reward"),
    [
        ("", 0, 1.0),
        ("", 1, 0.0),
        ("log\n0.25", 0, 0.25),
        ('{"score": 1}', 1, 1.0),
        ("true", 1, 0.0),
        ('{"note": 1}', 0, 1.0),
        ('{\n  "reward": 0.5,\n  "tests": [1]\n}\n', 0, 0.5),
        ('{"reward": false}', 0, 0.0),
        ("[" * 100_000, 1, 0.0),
    ],
)
def test_a_graders_json_counts_before_its_exit_code(printed: str, code: int, reward: float) -> None:
    assert read_reward(printed, code) == reward


@pytest.mark.parametrize("printed", ["7", "NaN", '{"reward": -1}', '{"reward": Infinity}', '{"reward": "0.5"}', '{"reward": null}'])
def test_a_reward_that_is_no_number_from_0_to_1_is_the_graders_failure(printed: str) -> None:
    with pytest.raises(AgentError):
        read_reward(printed, 0)


def test_a_suite_without_tasks_or_graders_is_refused(suite: Path, tmp_path: Path) -> None:
    before = suite_name(read_suite(str(suite)))
    (suite / "0-good" / "grade.py").unlink()
    for folder in (tmp_path / "nowhere", suite / "notes", suite):
        with pytest.raises(InputError):
            read_suite(str(folder))
    assert suite_name(read_suite(str(suite), "true")) != before
    for text in ("", "no-such-program-here", "'open"):
        with pytest.raises(InputError):
            CommandAgent.parse(text)
    with pytest.raises(InputError):
        play_arena(Plan(suite=str(suite)), Workspace(tmp_path / "ws"))
    assert os.environ.get("PAMER_TASK_FILE") is None
