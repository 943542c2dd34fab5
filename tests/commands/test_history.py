"""`--history` on the study commands: recorded histories are used where they are, counted, stored and named."""

import json
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.cli import main
from pamer_lab.trajectory.recorded import count_recorded
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
from tests.commands.labelled import write_labelled

QUESTIONS = 14


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Every second trace gave its first two turns up for a summary before its third."""
    path = write_labelled(tmp_path / "corpus.jsonl", QUESTIONS, 6, lambda rng: f"found {rng.integers(100)}")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[::2]:
        line["events"] = [{"kind": "compaction", "before_message": 5, "text": "nothing yet", "replaced": [[1, 5]]}]
        line["labels"] = [*line["labels"], {"t": 2, "target": "recall", "value": True}]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert main([*arguments, "--device", "cpu", "--json"]) == 0
    said = capsys.readouterr()
    result: dict[str, Any] = json.loads(said.out)
    return result, said.err


@pytest.mark.weights
@pytest.mark.parametrize(
    "command",
    [
        ["layerwise", "--layers", "final"],
        ["controls"],
        ["train", "--layer", "final"],
        ["compact", "--conditions", "recent", "--layer", "final"],
    ],
    ids=lambda command: command[0],
)
def test_a_study_says_which_history_it_used_and_asks_recall_accordingly(
    workspace: Workspace, profile: Path, corpus: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    common = [*command, str(corpus), "--seeds", "0,1", "--profile", str(profile)]
    recorded, said = run(common, capsys)
    assert f"{QUESTIONS // 2} of {QUESTIONS} traces" in said
    assert recorded["settings"]["history"] == recorded["corpus"]["history"] == "recorded"
    assert f"{QUESTIONS // 2} of {QUESTIONS} traces" in recorded["notes"]["history"]
    assert "--history" not in recorded["command"]
    full, _ = run([*common, "--history", "full"], capsys)
    assert "history" not in full["settings"] and "history" not in full["corpus"]
    assert full["command"].endswith("--history full") or "--history full " in full["command"]
    assert full["study_id"] != recorded["study_id"]
    assert recorded["corpus"]["asked"]["recall"] - full["corpus"]["asked"]["recall"] == QUESTIONS // 2
    assert [row["mean"] for row in full["rows"]] != [row["mean"] for row in recorded["rows"]]


@pytest.mark.weights
def test_extract_computes_the_other_history_only_where_it_differs(
    workspace: Workspace, profile: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["extract", str(corpus), "--contexts", "full", "--layers", "final", "--profile", str(profile)]
    (recorded, _), (full, _) = run(common, capsys), run([*common, "--history", "full"], capsys)
    assert (recorded["history"], full["history"]) == ("recorded", "full")
    assert recorded["recorded_traces"] == full["recorded_traces"] == QUESTIONS // 2
    assert recorded["decision_points"] == full["decision_points"]
    changed = 4 * QUESTIONS // 2  # points 2 to 5 of every second trace
    assert (recorded["cache_hits"], full["cache_hits"]) == (0, full["decision_points"] - changed)
    assert full["tokens_computed"] > 0


def test_what_an_operation_replaced_is_kept_by_the_workspace(workspace: Workspace, corpus: Path) -> None:
    import_paths([corpus], workspace)
    found = [workspace.trace(row["trace_id"]).trace for row in workspace.trace_rows()]
    assert count_recorded(found) == QUESTIONS // 2
    assert {event.replaced for trace in found for event in trace.events} == {((1, 5),)}
