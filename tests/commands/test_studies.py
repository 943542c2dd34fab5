"""`layerwise`, `controls`, `train` and `annotate` through the program, with a tiny model of random weights."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pamer_lab.cli import main
from pamer_lab.commands.studying import find_traces, first_replicas, layer_name
from pamer_lab.errors import InputError
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.split import CLEAN
from pamer_lab.studies.study import list_studies, read_study
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
from tests.commands.labelled import write_labelled
from tests.models.fault_server import CHAT, serving


def write_corpus(path: Path, questions: int = 14) -> Path:
    return write_labelled(path, questions, 6, lambda rng: f"found {rng.integers(100)}", replicas=2)


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--device", "cpu", "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def assert_same_rows(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one["name"], one["target"], one["test_n"]) == (other["name"], other["target"], other["test_n"])
        assert one["seeds"] == pytest.approx(other["seeds"], abs=0.02)


@pytest.mark.weights
def test_the_studies_run_store_themselves_and_write_heads(
    workspace: Workspace, profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl")
    common = [str(corpus), "--seeds", "0,1", "--profile", str(profile)]
    layers = run(["layerwise", *common, "--out", str(tmp_path / "layers.json")], capsys)
    names = {row["name"] for row in layers["rows"]}
    assert {"final last", "final mean", "block_1 last"} <= names
    assert all({"mean", "sd", "seeds", "n", "interval", "target"} <= set(row) for row in layers["rows"])
    assert layers["notes"]["splits"][0].endswith(CLEAN)
    assert read_study(tmp_path / "layers.json").study_id == layers["study_id"]

    controls = run(["controls", *common], capsys)
    kinds = [row["kind"] for row in controls["rows"]]
    assert (kinds.count("control"), kinds.count("rule"), kinds.count("shuffled"), kinds.count("hidden")) == (12, 6, 2, 4)
    assert controls["notes"]["features"][0]["tokens_computed"] == 0
    assert controls["settings"]["tokenizer"] == controls["model"]
    shown = {tuple(row["test_n"]) for row in controls["rows"] if row["target"] == "recall"}
    assert shown == {tuple(row["test_n"]) for row in layers["rows"] if row["target"] == "recall"}

    in_parts = run(["layerwise", *common, "--states-memory", "0.05"], capsys)
    assert in_parts["notes"]["features"][0]["streamed_bytes"] > 50_000 and "streamed_bytes" not in layers["notes"]["features"][0]
    assert_same_rows(in_parts["rows"], layers["rows"])

    trained = run(["train", *common, "--replicas", "1", "--heads", str(tmp_path / "heads")], capsys)
    in_parts = run(["train", *common, "--replicas", "1", "--states-memory", "0.05"], capsys)
    assert in_parts["notes"]["features"][0]["streamed_bytes"] > 50_000 and "states-memory" not in in_parts["command"]
    assert_same_rows(in_parts["rows"], trained["rows"])
    clear = [row for row in zip(trained["decisions"], in_parts["decisions"], strict=True) if row[0]["vote_margin"] > 1e-3]
    assert len(clear) > 60 and all(ours["yes"] == theirs["yes"] for ours, theirs in clear)
    assert [row["name"] for row in trained["rows"]].count("Recent2 + decision KD") == 2
    assert "--replicas 1" in trained["command"]
    heads = HeadSet.load(tmp_path / "heads")
    assert heads.seeds == (0, 1)
    assert len(trained["decisions"]) == trained["corpus"]["decision_points"]
    assert all(row["vote_margin"] <= row["majority_margin"] for row in trained["decisions"])
    assert heads.facts["corpus"]["traces"] == 14
    assert heads.facts["command"] == trained["command"]
    again = run(["heads", "test", str(tmp_path / "heads"), str(corpus), "--profile", str(profile)], capsys)["test"]
    assert (again["n"], again["traces"], len(again["sources"])) == (sum(found["n"] for found in again["sources"].values()), 28, 1)
    assert len(again["metrics"]["auroc"]["seeds"]) == 2 and 0 <= again["base_rate"] <= 1
    tested = trained["notes"]["stability"]["test_votes"]
    assert tested["n"] == sum(next(row for row in trained["rows"] if row["target"] == "compression")["test_n"])
    assert 0 <= tested["that_a_shift_can_flip"]["0.05"] <= tested["that_a_shift_can_flip"]["0.5"] <= 1
    as_in_the_paper = ["--replicas", "1", "--layer", "final", "--hint", "faithful", "--heads", str(tmp_path / "final")]
    final = run(["train", *common, *as_in_the_paper], capsys)
    heads = HeadSet.load(tmp_path / "final")
    assert (heads.layer, heads.hint, heads.facts["teacher"]["layer"]) == ("final", "faithful", "final")
    assert "--hint faithful" in final["command"]
    for wrong in (["--layer", "block_99"], ["--contexts", "recent"]):
        assert main(["train", *common, *wrong, "--device", "cpu"]) == 2
        said = capsys.readouterr().err
        assert wrong[1] in said and "tokens" not in said, "refused before any feature is read"
    assert {row["kind"] for row in list_studies(workspace)} == {"layerwise", "controls", "train"}
    assert main(["layerwise", *common, "--device", "cpu"]) == 0
    assert "AUROC" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["layerwise", "{few}"], "7"),
        (["controls", "nowhere.jsonl"], "nowhere.jsonl"),
        (["train", "nowhere.jsonl", "--seeds", "one"], "--seeds"),
        (["train", "nowhere.jsonl", "--seeds", "0,1,0"], "--seeds"),
        (["layerwise", "nowhere.jsonl", "--seeds", "4294967296"], "4294967296"),
        (["layerwise", "nowhere.jsonl", "--seeds=-1"], "-1"),
        (["controls", "nowhere.jsonl", "--seeds", ",".join(map(str, range(21)))], "20"),
        (["compact", "nowhere.jsonl", "--replicas=-1"], "--replicas"),
        (["annotate", "{few}"], "chat"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    few = write_corpus(tmp_path / "few.jsonl", 3)
    assert main([word.replace("{few}", str(few)) for word in arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert re.search(rf"(?<![\w/-]){re.escape(reason)}(?!\w)", error)
    assert "\n" not in error


def test_first_replicas_keeps_the_order_and_zero_keeps_all(tmp_path: Path) -> None:
    from pamer_lab import read_traces

    traces = read_traces(write_corpus(tmp_path / "corpus.jsonl", 3))
    assert first_replicas(traces, 0) == traces
    assert [trace.question_id for trace in first_replicas(traces, 1)] == ["q0", "q1", "q2"]


def test_a_study_takes_files_ids_and_the_whole_workspace_each_trace_once(workspace: Workspace, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl", 2)
    with pytest.raises(InputError, match="label"):
        find_traces(["@workspace"], workspace)
    import_paths([corpus], workspace)
    ids = [row["trace_id"] for row in workspace.trace_rows()]
    assert [trace.trace_id for trace in find_traces(["@workspace"], workspace)] == ids
    assert [trace.trace_id for trace in find_traces([ids[2]], workspace)] == [ids[2]]
    assert [trace.trace_id for trace in find_traces([str(corpus), "@workspace", ids[0]], workspace)] == ids
    with pytest.raises(InputError, match="t-gone"):
        find_traces(["t-gone"], workspace)


def test_a_trace_given_twice_counts_once_and_one_id_with_other_labels_is_refused(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    corpus = write_corpus(folder / "corpus.jsonl", 2)
    once = find_traces([str(corpus)], workspace)
    assert find_traces([str(corpus), str(folder), str(corpus)], workspace) == once
    assert re.search(r"\b8\b", capsys.readouterr().err)
    copied = tmp_path / "copy.jsonl"
    copied.write_bytes(corpus.read_bytes())
    assert len(find_traces([str(corpus), str(copied)], workspace)) == len(once)
    side = tmp_path / "labels.json"
    side.write_text(json.dumps({"pamer_lab_labels": 1, "traces": [{"index": 0, "labels": [{"t": 2, "target": "recall"}]}]}))
    import_paths([corpus], workspace, labels=side)
    with pytest.raises(InputError, match="messages, labels"):
        find_traces([str(corpus), "@workspace"], workspace)


def test_a_layer_is_named_in_either_spelling_and_an_unknown_one_is_answered_with_those_there_are() -> None:
    model = SimpleNamespace(layers=3)
    assert [layer_name(model, text) for text in ("block:2", "block_3", "final")] == ["block_2", "block_3", "final"]  # type: ignore[arg-type]
    for wrong in ("block_4", "all", "", "preferred"):
        with pytest.raises(InputError, match="block_1, block_2, block_3, final"):
            layer_name(model, wrong)  # type: ignore[arg-type]


@pytest.mark.server
def test_annotate_asks_a_real_server_counts_usage_and_writes_labelled_traces(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(text: str) -> dict[str, Any]:
        return CHAT | {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}

    good = json.dumps({"compression": True, "recall": False, "steps": [], "reason": "settled"})
    corpus, out, file = write_corpus(tmp_path / "corpus.jsonl", 1), tmp_path / "labelled.jsonl", tmp_path / "judge.toml"
    long = (400, '{"error": {"message": "maximum context length exceeded"}}')
    with serving(500, answer("I am not sure."), long, answer(f"<think>so</think>{good}"), answer(good)) as server:
        file.write_text(f'[chat]\nkind = "openai"\nmodel = "judge"\nbase_url = "{server.url}"\nattempts = 3\n')
        options = ["annotate", str(corpus), "--profile", str(file), "--out", str(out), "--json"]
        assert main(options) == 2 and not server.requests, "a server that nobody confirmed gets nothing"
        assert server.url in capsys.readouterr().err
        assert main([*options, "--trust-profile"]) == 0
        first = json.loads(capsys.readouterr().out)
        assert main(options) == 0
        second = json.loads(capsys.readouterr().out)
    with serving(401) as closed:
        file.write_text(f'[chat]\nkind = "openai"\nmodel = "other"\nbase_url = "{closed.url}"\n')
        assert main([*options, "--trust-profile"]) == 1
        assert len(closed.requests) == 1
    assert "401" in capsys.readouterr().err
    assert [row["t"] for row in first["refused"]] == [1]
    assert [row["t"] for row in first["failed"]] == [2]
    assert "maximum context length" in first["failed"][0]["reason"]
    assert first["usage"] == {"asked": 10, "kept": 0, "input_tokens": 63, "output_tokens": 27, "kind": "recorded"}
    assert (second["usage"]["asked"], second["usage"]["kept"], second["refused"], second["failed"]) == (2, 8, [], [])
    assert "w0" in server.requests[1]["messages"][1]["content"]
    assert "w1" not in server.requests[1]["messages"][1]["content"]
    assert (first["future"], first["origin"]) == ("none", "judge")
    labels = [
        label for trace in map(json.loads, out.read_text().splitlines()) for label in trace["labels"] if label.get("origin") == "judge"
    ]
    assert sum(label["target"] == "compression" for label in labels) == 10
    assert {label["t"] for label in labels if label["target"] == "recall"} == {3, 4, 5}


@pytest.mark.server
def test_annotate_shows_the_next_action_on_request_and_names_its_labels_so(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.dumps({"compression": True, "recall": False, "steps": [], "reason": "settled"})
    answer = CHAT | {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": good}}]}
    corpus, out, file = write_corpus(tmp_path / "corpus.jsonl", 1), tmp_path / "labelled.jsonl", tmp_path / "judge.toml"
    with serving(answer) as server:
        file.write_text(f'[chat]\nkind = "openai"\nmodel = "judge"\nbase_url = "{server.url}"\n')
        options = ["annotate", str(corpus), "--profile", str(file), "--out", str(out), "--json", "--trust-profile", "--future"]
        results = []
        for future in ("action", "action", "none"):
            assert main([*options, future]) == 0
            results.append(json.loads(capsys.readouterr().out))
    assert [(one["usage"]["asked"], one["usage"]["kept"], one["origin"]) for one in results] == [
        (10, 0, "judge+action"),
        (0, 10, "judge+action"),
        (10, 0, "judge"),
    ]
    shown = server.requests[0]["messages"][1]["content"]
    assert "w1" in shown.partition("[next action]")[2] and "w2" not in shown
    origins = {label.get("origin") for trace in map(json.loads, out.read_text().splitlines()) for label in trace["labels"]}
    assert "judge" in origins and "judge+action" not in origins
