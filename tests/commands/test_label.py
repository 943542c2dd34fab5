"""`label` through the program: what it says, what the workspace keeps, and that an import does not drop it."""

import json
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.runs.hindsight import Rule
from pamer_lab.trajectory import read_traces
from pamer_lab.workspace import Workspace

RULE = Rule(horizon=2, minimum_tokens=0)


def write_trace(path: Path) -> Path:
    rows: list[dict[str, object]] = [{"role": "user", "content": "Cancel my order."}]
    said = ["look", "wait", "wait", "cancel W7678072", "bye"]
    shown = ["order W7678072", "ok", "ok", "done", "ok"]
    for number, (text, result) in enumerate(zip(said, shown, strict=True)):
        call = {"id": f"c{number}", "name": "act", "arguments": "{}"}
        rows += [
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "content": result, "tool_call_id": f"c{number}"},
        ]
    path.write_text(json.dumps({"pamer_lab": 1, "question_id": "q", "messages": rows}))
    return path


def test_labels_are_counted_stored_and_written(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = write_trace(tmp_path / "trace.json"), tmp_path / "labelled.jsonl"
    options = ["--rule", "hindsight", "--horizon", "2", "--minimum", "0", "--out", str(out)]
    assert main(["label", str(file), *options, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["traces"], result["decision_points"], result["origin"]) == (1, 2, RULE.origin)
    assert result["positives"] == {"compression": 0, "recall": 1}
    assert {"horizon": 2, "retained": 2, "minimum_tokens": 0}.items() <= result["rule"].items()
    row = workspace.trace_rows()[0]
    kept = workspace.trace(row["trace_id"]).trace.labels
    assert row["labels"] == len(kept) == 3 and {label.origin for label in kept} == {RULE.origin}
    assert read_traces(out)[0].labels == kept

    assert main(["import", str(file), "--json"]) == 0  # the file has no labels; those of the workspace stay
    assert workspace.trace(row["trace_id"]).trace.labels == kept
    assert main(["label", "@workspace", *options[:4], "--minimum", "0", "--json"]) == 0
    assert len(workspace.trace(row["trace_id"]).trace.labels) == 3  # replaced, not added


def test_an_empty_workspace_and_a_bad_rule_are_sentences(workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", "@workspace"]) == 2
    assert main(["label", str(write_trace(tmp_path / "trace.json")), "--horizon", "0"]) == 2
    assert main(["label", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 3
