"""`bench hindsight` on a trace whose one need is known."""

import json
from pathlib import Path

import pytest

from pamer_lab.bench.hindsight import run
from pamer_lab.errors import InputError

SHOWN = ["order W7678072 is open", *["nothing new"] * 8]
SAID = ["look", *["wait"] * 7, "cancel W7678072"]


def write_trace(path: Path, padding: str = "") -> Path:
    rows: list[dict[str, object]] = [{"role": "user", "content": f"Cancel my order. {padding}"}]
    for number, (text, result) in enumerate(zip(SAID, SHOWN, strict=True)):
        call = {"id": f"c{number}", "name": "act", "arguments": "{}"}
        rows += [
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "content": result, "tool_call_id": f"c{number}"},
        ]
    path.write_text(json.dumps({"pamer_lab": 1, "question_id": path.stem, "messages": rows}))
    return path


def test_the_needed_step_and_identifier_are_counted_and_the_summary_holds_it(tmp_path: Path) -> None:
    ratios, details = run([write_trace(tmp_path / "one.json")])
    assert (details["traces"], details["needed_steps"], details["needed_identifiers"], details["labels"]) == (1, 1, 1, "hindsight")
    assert (ratios["summary"], ratios["index"]) == (1.0, 1.0)
    assert ratios["evidence"] == ratios["recall"]  # one identifier in one step: restored together or not at all


def test_a_count_takes_the_shortest_traces_and_short_ones_are_refused(tmp_path: Path) -> None:
    files = [write_trace(tmp_path / "long.json", "please " * 50), write_trace(tmp_path / "short.json")]
    assert run(files)[1]["decision_points"] == 2 * run(files, count=1)[1]["decision_points"]
    with pytest.raises(InputError):
        run(files, least_turns=20)
