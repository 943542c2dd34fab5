"""Commands with input nobody meant: one sentence and exit code 1 or 2, never a traceback, never half a file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.workspace import Workspace
from tests.pages.conftest import chat, put

LONG = "x" * 6_000
CASES = {
    "import a missing file": ["import", "missing.json"],
    "import nothing": ["import", ""],
    "import a name with NUL": ["import", "a\0b"],
    "import a very long name": ["import", LONG],
    "import a device": ["import", "/dev/zero"],
    "import a binary file": ["import", "{bin}"],
    "import UTF-16": ["import", "{utf16}"],
    "labels that are a folder": ["import", "{chat}", "--labels", "{folder}"],
    "a workspace that is a file": ["import", "{chat}", "--workspace", "{chat}"],
    "a workspace below a device": ["import", "{chat}", "--workspace", "/dev/null/x"],
    "a workspace with a very long name": ["import", "{chat}", "--workspace", LONG],
    "replay nothing": ["replay", "", "--policy", "base"],
    "replay a very long name": ["replay", LONG, "--policy", "base"],
    "replay an unknown trace": ["replay", "t-0", "--policy", "base"],
    "an unknown policy": ["replay", "{trace}", "--policy", "magic"],
    "a policy of commas": ["replay", "{trace}", "--policy", ",,"],
    "a window of a googol": ["replay", "{trace}", "--policy", f"sliding-window:1{'0' * 100}"],
    "a vote that cannot be reached": ["replay", "{trace}", "--policy", "pamer:vote=99"],
    "prices that are binary": ["replay", "{trace}", "--policy", "base", "--prices", "{bin}"],
    "prices with a very long name": ["replay", "{trace}", "--policy", "base", "--prices", LONG],
    "what-if of no run": ["whatif", LONG],
    "an audit file that is binary": ["audit", "import", "{bin}.csv"],
    "an audit into a folder": ["audit", "export", "{folder}"],
    "an audit where nothing can be": ["audit", "export", "/proc/nowhere/x.csv"],
    "an unknown bench": ["bench", "nonsense"],
    "an unknown profile": ["doctor", "--profile", "nonsense"],
    "a profile that is no TOML": ["doctor", "--profile", "{toml}"],
    "no questions": ["generate", "--questions", "0", "--out", "{folder}/g"],
    "generate into a file": ["generate", "--questions", "2", "--replicas", "1", "--out", "{chat}"],
    "memory of a file": ["memory", "check", "--workspace", "{chat}"],
    "import a pipe": ["import", "{pipe}.json"],
    "labels from a pipe": ["import", "{chat}", "--labels", "{pipe}.json"],
    "prices from a pipe": ["replay", "{trace}", "--policy", "base", "--prices", "{pipe}.json"],
    "an audit from a pipe": ["audit", "import", "{pipe}.csv"],
    "reviews from a pipe": ["audit", "import", "{pipe}.json"],
    "runs from a pipe": ["runs", "import", "{pipe}.runs"],
    "a profile from a pipe": ["doctor", "--profile", "{pipe}.toml"],
    "a report's settings from a pipe": ["report", "--config", "{pipe}.json"],
    "a model folder with a pipe": ["import", "{chat}", "--profile", "hf:{model}"],
    "deep reviews": ["audit", "import", "{deep}.json"],
    "a deep audit": ["audit", "import", "{deep}.jsonl"],
    "deep prices": ["replay", "{trace}", "--policy", "base", "--prices", "{deep}.json"],
    "a report's deep settings": ["report", "--config", "{deep}.json"],
    "deep labels": ["import", "{chat}", "--labels", "{deep}.json"],
    "a deep profile": ["doctor", "--profile", "{deep}.toml"],
    "deep heads": ["replay", "{trace}", "--policy", "pamer", "--heads", "{heads}"],
    "long numbers in prices": ["replay", "{trace}", "--policy", "base", "--prices", "{digits}.json"],
    "long numbers in reviews": ["audit", "import", "{digits}.json"],
    "seeds with 5,000 digits": ["train", "{chat}", "--seeds", "9" * 5_000],
    "caps with 5,000 digits": ["compact", "{chat}", "--caps", "9" * 5_000],
}
MOST_SECONDS = 100
"""A command that waits for a pipe nobody writes to is ended after this."""


@pytest.fixture
def places(workspace: Workspace, tmp_path: Path) -> dict[str, str]:
    put(workspace, own=chat(4))
    files = {"bin": bytes(range(256)) * 20, "bin.csv": b"\xff\xfe\x00\x01", "chat": chat(3), "utf16": chat(2).decode().encode("utf-16")}
    for name, data in {**files, "toml.toml": b"x = ["}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    for name in ("model", "heads"):
        (tmp_path / name).mkdir()
    for name in ("pipe.json", "pipe.csv", "pipe.runs", "pipe.toml", "model/model.safetensors"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    for name in ("deep.json", "deep.jsonl", "heads/heads.json"):
        (tmp_path / name).write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    (tmp_path / "digits.json").write_text('{"a": ' + "9" * 5_000 + "}")
    named = {name: str(tmp_path / name) for name in ("bin", "chat", "utf16", "folder")}
    named |= {name: str(tmp_path / name) for name in ("pipe", "deep", "digits", "model", "heads")}
    return named | {"toml": str(tmp_path / "toml.toml"), "trace": workspace.trace_rows()[0]["trace_id"]}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_sentence(
    name: str, places: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PAMER_LAB_HOME", os.environ["PAMER_LAB_HOME"])  # `--workspace` sets it; afterwards it is as before
    before = sorted(path.name for path in tmp_path.iterdir())
    words = [word if "{" not in word else word.format(**places) for word in CASES[name]]
    signal.alarm(MOST_SECONDS)
    code = main(words)
    signal.alarm(0)
    said = capsys.readouterr()
    assert code in (1, 2) and said.err.strip(), said.out
    assert "Traceback" not in said.err and len(said.err) < 1_500 and said.err.count("\n") <= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == before and list((tmp_path / "folder").iterdir()) == []


def test_an_unknown_option_is_told_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["import", "--nonsense"])
    assert stopped.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_and_a_stop_leave_no_traceback(places: dict[str, str]) -> None:
    program = [sys.executable, "-m", "pamer_lab.cli"]
    piped = subprocess.Popen([*program, "replay", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert piped.stdout and piped.stderr
    piped.stdout.close()
    said = piped.stderr.read().decode()
    assert piped.wait(120) in (0, 1) and "Traceback" not in said and "Exception ignored" not in said
    stopped = subprocess.Popen([*program, "import", "/dev/stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert stopped.stdin
    stopped.stdin.write(b" " * 200_000)  # more than a pipe holds: returns once the command is reading
    stopped.send_signal(signal.SIGINT)
    _, error = stopped.communicate(timeout=120)
    assert stopped.returncode != 0 and b"Traceback" not in error


def test_names_from_files_do_not_reach_the_terminal_as_commands(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "r-\x1b[2J\x1b]0;x\x07\x9b31m\u202egpj"
    shown = {"runs": [name, {"run_id": name, "trace_id": name, "policy": name, "status": name, "turns": 1, "started": name}]}
    monkeypatch.setattr("pamer_lab.commands.runs.run", lambda args: shown)
    for words in (["runs", "list"], ["runs", "list", "--json"]):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert said.replace("\n", "").isprintable() and "gpj" in said
    assert json.loads(said) == shown
