"""`pamer-lab replay` and `pamer-lab whatif` as a user runs them."""

import json
import re
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.runs.store import RunStore
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

PLAIN = "base,sliding-window:2,periodic-summary:2"
TURN_KEYS = {
    *"t action reason raw_tokens active_tokens candidate_tokens logits votes thresholds memory_ids".split(),
    *"restored_steps block_states".split(),
}
TOTAL_KEYS = {
    *"main_input main_output aux_input aux_output total peak_active reduction_pct cached_input".split(),
    "uncached_input",
}


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    file = tmp_path / "trace.json"
    file.write_bytes(to_native(long_trace(6)))
    return file


def test_a_file_is_imported_and_replayed_with_the_contracts_keys(
    workspace: Workspace, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(trace_file), "--policy", PLAIN, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [run["policy"] for run in result["runs"]] == PLAIN.split(",")
    for run in result["runs"]:
        assert set(run["totals"]) >= TOTAL_KEYS and len(run["turns"]) == 6
        for turn in run["turns"]:
            assert set(turn) >= TURN_KEYS and len(turn["block_states"]) == turn["t"]
            assert turn["active_tokens"] == sum(item["tokens"] for item in turn["items"])
        assert run["note"] and run["tokenizer"] and run["tokens_kind"]
        assert run["not_in_file"] == [] and run["compactions"] == [] and run["recorded_context"] == [None] * 6
    assert [(run["policy"], run["drops"]["blocks"]) for run in result["runs"] if run["drops"]["turns"]] == [("sliding-window:2", 3)]
    assert [(entry["policy"], entry["baseline"], entry["dropped"]) for entry in result["verdicts"]] == [
        ("base", "base", 0),
        ("sliding-window:2", "base", 3),
        ("periodic-summary:2", "base", 0),
    ]
    assert [entry["t"] for entry in result["divergences"]] == [3, 3]
    assert {row["policy"] for row in result["policies"]} == set(PLAIN.split(",")) and result["mean_context"][0]["running"] == 1


def test_the_whole_workspace_is_replayed_by_one_word(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "@workspace", "--policy", "base"]) == 2  # it is empty
    for turns in (3, 5):
        (tmp_path / f"{turns}.json").write_bytes(to_native(long_trace(turns)))
        assert main(["import", str(tmp_path / f"{turns}.json")]) == 0
    capsys.readouterr()
    assert main(["replay", "@workspace", "--policy", "base", "--json"]) == 0
    assert sorted(len(run["turns"]) for run in json.loads(capsys.readouterr().out)["runs"]) == [3, 5]


def test_an_estimate_replays_nothing(workspace: Workspace, trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace_file), "--policy", PLAIN, "--estimate", "--turn-limit", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimate"]
    assert (found["runs"], found["turns"], found["models"], found["basis"]) == (3, 12, [], "measured") and found["seconds"] > 0
    assert RunStore(workspace).heads() == []
    assert main(["replay", str(trace_file), "--policy", PLAIN, "--estimate"]) == 0
    assert re.search(r"\b18\b", capsys.readouterr().out)


def test_a_group_is_replayed_without_what_cannot_run_and_a_name_fails_with_its_reason(
    workspace: Workspace, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(trace_file), "--policy", "light", "--turn-limit", "3", "--json"]) == 0
    out, said = capsys.readouterr()
    names = [run["policy"] for run in json.loads(out)["runs"]]
    assert {"base", "acon", "auto-compact", "lre"} <= {*names} and "acm" not in names and "pamer" not in names
    assert re.search(r"\bacm\b", said)
    assert main(["replay", str(trace_file), "--policy", "base,acm", "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert [entry["policy"] for entry in failed] == ["acm"] and "manage_context" in failed[0]["error"]


def test_people_get_a_table_and_the_caveat(workspace: Workspace, trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(trace_file), "--policy", PLAIN, "--turn-limit", "4"]) == 0
    shown = capsys.readouterr().out
    assert set(PLAIN.split(",")) <= set(re.split(r"[\s,]+", shown)) and len(re.findall(r"\bturn 3\b", shown)) == 2
    assert main(["replay", "--list"]) == 0
    assert "periodic-summary:n=5:mode=reset:keep=1" in capsys.readouterr().out


def test_a_table_names_the_command_that_makes_it_again(
    workspace: Workspace, trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.md"
    assert main(["replay", str(trace_file), "--policy", PLAIN, "--turn-limit", "4", "--table", str(out)]) == 0
    made = out.read_text().splitlines()[-1]
    assert f"--policy {PLAIN} --turn-limit 4 --prices" in made and str(tmp_path) not in made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "trace"),
        (["serve", "--upstream", "http://127.0.0.1:9", "--deadline", "-1"], "--deadline"),
        (["serve", "--upstream", "http://127.0.0.1:9", "--window", "-5"], "--window"),
        (["replay", "t-none", "--policy", "base"], "t-none"),
        (["replay", "t-none", "--policy", "bass"], "'bass'"),
        (["replay", "TRACE", "--policy", "pamer:vote=9"], "'pamer:vote=9'"),
        (["replay", "t-none", "--policy", "base", "--turn-limit", "-2"], "--turn-limit"),
        (["replay", "t-none", "--policy", "base", "--prices", "FILE"], "FILE"),
        (["whatif", "r-none"], "r-none"),
        (["whatif", "r-none", "--threshold", "high"], "--threshold"),
        (["whatif", "r-none", "--threshold", "1.5"], "--threshold"),
        (["whatif", "r-none", "--vote", "-1"], "--vote"),
    ],
)
def test_bad_input_is_one_sentence(
    workspace: Workspace, trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("read = -1")
    files = {"FILE": str(prices), "TRACE": str(trace_file)}
    assert main([files.get(word, word) for word in arguments]) == 2
    shown = capsys.readouterr()
    assert files.get(said, said) in shown.err and shown.err.count("\n") == 1 and not shown.out


def test_what_if_needs_a_run_with_heads(workspace: Workspace, trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(trace_file), "--policy", "base", "--json"])
    run_id = json.loads(capsys.readouterr().out)["runs"][0]["run_id"]
    assert main(["whatif", run_id]) == 2
    said = capsys.readouterr().err
    assert run_id in said and "'base'" in said
