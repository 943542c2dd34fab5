"""`pamer-lab extract`: the contract's keys, a second run from the store, and bad input in one line."""

import json
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.workspace import Workspace


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    file = tmp_path / "chat.json"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "and?"}]
    file.write_text(json.dumps({"messages": [*messages, {"role": "assistant", "content": "bye"}]}))
    return file


@pytest.mark.weights
def test_extract_reports_its_figures_and_a_second_run_computes_nothing(
    workspace: Workspace, chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for _ in range(2):
        assert main(["extract", str(chat), "--contexts", "full,recent2", "--json", "--device", "cpu"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["decision_points"] == 4
    assert results[0]["tokens_computed"] > 0
    assert (results[1]["tokens_computed"], results[1]["cache_hits"]) == (0, 4)
    assert {"tokens_naive", "seconds"} <= set(results[0])


@pytest.mark.parametrize(
    "options", [["nowhere.json"], ["{chat}", "--contexts", "recent"], ["{chat}", "--poolings", "max"], ["{chat}", "--device", "tpu"]]
)
def test_bad_input_is_one_line_and_exit_code_2(
    workspace: Workspace, chat: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert main(["extract", *(option.replace("{chat}", str(chat)) for option in options)]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0
