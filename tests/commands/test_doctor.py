"""`pamer-lab doctor`: fast, complete, and never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.workspace import Workspace


def doctor(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["doctor", "--json", *options]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_embedded_profile_is_ready_and_every_check_has_its_keys(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    result = doctor(capsys)
    assert result["ok"] is True
    assert {"ok", "device", "profiles", "checks"} <= set(result)
    for check in result["checks"]:
        assert {"name", "ok", "detail", "fix"} <= set(check)
        assert check["ok"] or check["fix"]
    assert {"embedded", "paper"} == {row["name"] for row in result["profiles"]}
    assert result["device"]["memory_total"] > 0


def test_the_paper_profile_names_what_is_missing_and_the_cards_that_fit(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = doctor(capsys, "--profile", "paper")
    missing = [check for check in result["checks"] if "frozen model" in check["name"]]
    assert missing[0]["ok"] or missing[0]["fix"] == "hf download Qwen/Qwen3.5-9B"
    memory = result["gpu_memory"]
    assert memory["input_tokens"] == 35_000
    assert 17 < memory["weights_gb"] < 19
    assert memory["total_gb"] > memory["weights_gb"] + memory["cache_gb"]
    assert memory["cards"]


def test_missing_weights_are_said_with_the_command_that_gets_them(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAMER_LAB_CACHE", str(tmp_path / "empty"))
    result = doctor(capsys)
    assert result["ok"] is False
    assert any(check["fix"] == "pamer-lab prepare" for check in result["checks"])


def test_an_unknown_profile_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--profile", "papre"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_doctor_loads_neither_torch_nor_transformers_where_no_gpu_is() -> None:
    program = (
        "import shutil, sys; shutil.which = lambda name: None\n"
        "from pamer_lab.cli import main\n"
        "main(['doctor', '--json', '--profile', 'paper'])\n"
        "sys.exit(' '.join({'torch', 'transformers', 'lancedb'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
