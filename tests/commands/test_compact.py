"""`compact` through the program, with a tiny model of random weights: a whole table, a second run that computes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.analysis.compact import (
    budget_table,
    compact_studies,
    expanded_table,
    open_compact,
    orderings,
    paired_table,
    retrieval_table,
    tradeoff,
)
from pamer_lab.analysis.published import table
from pamer_lab.cli import main
from pamer_lab.commands.compact import tables
from pamer_lab.models.kept_embeddings import EMBEDDINGS
from pamer_lab.studies.study import read_study
from pamer_lab.workspace import Workspace
from tests.commands.labelled import write_labelled

QUESTIONS, TURNS = 14, 9


def write_corpus(path: Path) -> Path:
    """Blocks of different length, so that caps and selectors have something to choose between."""
    words = [f"word{number}" for number in range(40)]
    return write_labelled(path, QUESTIONS, TURNS, lambda rng: " ".join(rng.choice(words, size=rng.integers(3, 12))))


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["compact", *arguments, "--device", "cpu", "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.weights
def test_the_whole_table_has_no_empty_cell_that_the_paper_has_and_a_second_run_computes_nothing(
    workspace: Workspace, profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    common = [str(corpus), "--seeds", "0,1", "--profile", str(profile), "--caps", "8K,16K,60"]
    estimated = run([*common, "--estimate"], capsys)
    assert estimated["embeddings_missing"] > 0
    assert not workspace.database.exists(EMBEDDINGS)
    estimate = estimated["cost"]
    first = run([*common, "--out", str(tmp_path / "compact.json")], capsys)
    study = read_study(tmp_path / "compact.json")
    lines = {line["label"]: line for line in expanded_table(study)}
    for name, cells in (("compact", ("tokens_pct", "auroc", "f1", "agreement")), ("retrieval", ("tokens_pct", "auroc", "agreement"))):
        for row in table(name).rows:
            line = lines[row["label"].replace("Qwen", "Embedding")]
            assert line["published"]["label"] in (row["label"], "Top3 uncapped")
            for key in row:
                if key.endswith(cells):
                    assert line[key] is not None, (row["label"], key)
    assert [line["condition"] for line in budget_table(study)] == [
        *"embedding-top3-cap60 embedding-top3-cap8192 embedding-top3-cap16384 embedding-top3".split()
    ]
    assert len(retrieval_table(study)) == 8
    assert {row["published"]["p"] for row in paired_table(study) if row["published"]} == {0.5, 0.0625, 0.3125, 0.1875}
    assert all(point["sd"] is not None and point["n"] for point in tradeoff(study))
    cost = first["notes"]["cost"]
    assert cost["tokens_estimated"] == estimate["tokens_estimated"]
    assert cost["texts_in_workspace"] == 0
    assert cost["tokens_computed"] == pytest.approx(cost["tokens_estimated"], rel=0.02)
    assert cost["tokens_computed"] < cost["tokens_one_by_one"]
    assert {tuple(row["test_n"]) for row in first["rows"] if row["target"] == "recall"} == {tuple(first["rows"][1]["test_n"])}

    second = run(common, capsys)
    assert second["notes"]["cost"]["tokens_computed"] == second["notes"]["cost"]["tokens_estimated"] == 0
    assert second["notes"]["cost"]["texts_in_workspace"] == second["notes"]["cost"]["texts"] == cost["texts"]
    assert set(second["notes"]["seconds"]) == {"embeddings", "states", "probes"}
    assert second["notes"]["fits_from_workspace"] == len(lines)
    assert second["rows"] == first["rows"]
    in_parts = run([*common, "--states-memory", "0.05"], capsys)
    assert in_parts["notes"]["cost"]["streamed_bytes"] > 50_000 and "streamed_bytes" not in first["notes"]["cost"]
    assert in_parts["notes"]["fits_from_workspace"] == len(lines), "states in parts are the same states"
    assert in_parts["rows"] == first["rows"] and "states-memory" not in in_parts["command"]
    assert [row["study_id"] for row in compact_studies(workspace)] == [first["study_id"]]
    assert open_compact(workspace, first["study_id"]).rows == first["rows"]
    printed = "\n".join(tables(study))
    assert "Hidden Bank Similarity8" in printed
    assert f"{'retrieval controls':<30} tokens %" in printed
    assert all(row["claim"] in printed for row in orderings(study)) and "not tested" in printed
    assert all(name in printed for name in second["notes"]["seconds"])
    assert [line["points_cap_changed"] for line in budget_table(study)][1:] == [0, 0, None]
    assert 0 < lines["Embedding Top3, cap 60 tokens"]["points_cap_changed"] <= lines["Embedding Top3"]["evidence_tokens"]["n"]
    assert "Recent2 - Full Context, no hint" in printed


@pytest.mark.weights
def test_a_subset_of_conditions_on_a_sample_keeps_its_teacher_and_says_its_n(
    workspace: Workspace, profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    options = [
        str(corpus),
        "--seeds",
        "0",
        "--profile",
        str(profile),
        "--conditions",
        "recent,raw-top1",
        "--sample",
        "70",
        "--layer",
        "block:1",
    ]
    found = run(options, capsys)
    names = list(dict.fromkeys(row["condition"] for row in found["rows"]))
    assert names == ["full", "current", "recent1", "recent2", "recent4", "raw-top1"]
    assert {(row["points"], row["layer"]) for row in found["rows"]} == {(70, "block_1")}
    assert len(found["decisions"]) == found["corpus"]["decision_points"] == 70
    assert "--sample 70" in found["command"]
    assert "--conditions recent,raw-top1" in found["command"]
    assert main(["compact", *options, "--device", "cpu"]) == 0
    assert "Recent2" in capsys.readouterr().out, "for people it is a table"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--conditions", "recent3"], "'recent3'"),
        (["--conditions", ","], "condition"),
        (["--caps", "8G"], "--caps"),
        (["--caps", "²K"], "--caps"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert main(["compact", str(tmp_path / "none.jsonl"), *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert reason in error
    assert "\n" not in error


@pytest.mark.weights
@pytest.mark.parametrize("layer", ["all", "block:12", "last"])
def test_a_layer_that_the_model_does_not_have_is_answered_with_those_it_has_before_anything_is_computed(
    workspace: Workspace, profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], layer: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    assert main(["compact", str(corpus), "--seeds", "0", "--profile", str(profile), "--layer", layer, "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert f"'{layer}'" in error and "block_1" in error
    assert "embeddings:" not in error
