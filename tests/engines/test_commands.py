"""Every command that has `--engine`, on a Ray cluster and without: the same rows, byte for byte."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import msgspec
import pytest

from pamer_lab.arena.store import ArenaStore
from pamer_lab.bench.measure import save_tiny
from pamer_lab.cli import main
from pamer_lab.config import WORKSPACE_VARIABLE
from pamer_lab.engines import Engine
from pamer_lab.workspace import TRACES, Workspace
from tests.commands.labelled import write_labelled

Command = Callable[..., dict[str, Any]]
RAY = ("--engine", "ray", "--workers", "1")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in the workspace of an engine; its JSON without what names the engine."""

    def run(engine: str, *words: str) -> dict[str, Any]:
        monkeypatch.setenv(WORKSPACE_VARIABLE, str(tmp_path / engine))
        assert main([*words, *(RAY if engine == "ray" else ()), "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert found.pop("engine")["name"] == engine
        return found

    return run


def rows(folder: Path, table: Any) -> list[bytes]:
    """The stored rows as bytes, in any order."""
    return sorted(msgspec.msgpack.encode(row, enc_hook=str) for row in Workspace(folder).database.rows(table))


@pytest.mark.weights
def test_the_studies_give_the_same_rows_on_a_cluster(cluster: Engine, command: Command, tmp_path: Path) -> None:
    model = save_tiny(tmp_path / "model", "llama")
    profile = tmp_path / "tiny.toml"
    profile.write_text(f'[frozen_model]\nmodel = "{model}"\n[embedding]\nkind = "hashing"\n')
    corpus = write_labelled(tmp_path / "corpus.jsonl", 14, 5, lambda rng: f"found {rng.integers(100)}")
    common = (str(corpus), "--profile", str(profile), "--device", "cpu")
    studies = (("layerwise",), ("controls",), ("train", "--heads", "mine"), ("compact", "--conditions", "recent2"))
    for words in (("extract", "--contexts", "recent2"), *studies):
        seeds = () if words[0] == "extract" else ("--seeds", "0")
        here, there = (command(engine, words[0], *common, *words[1:], *seeds) for engine in ("local", "ray"))
        assert json.dumps(here.get("rows")) == json.dumps(there.get("rows")), words[0]
        assert here.get("rows") or here["tokens_computed"] == there["tokens_computed"] > 0, words[0]
        assert here.get("heads", {}).get("sha256") == there.get("heads", {}).get("sha256")
    weights = [sorted(file.read_bytes() for file in (tmp_path / name).rglob("*.safetensors")) for name in ("local", "ray")]
    assert weights[0] and weights[0] == weights[1]
    (states,) = {path.stem for path in (tmp_path / "local").rglob("features_*.lance")}
    kept = [lancedb.connect(tmp_path / name / "lance").open_table(states).to_arrow().sort_by("key") for name in ("local", "ray")]
    assert kept[0].num_rows and kept[0].equals(kept[1])


def test_labels_and_arenas_are_the_same_on_a_cluster(cluster: Engine, command: Command, tmp_path: Path) -> None:
    corpus = write_labelled(tmp_path / "corpus.jsonl", 4, 6, lambda rng: f"order W{rng.integers(10**6)}")
    here, there = (command(engine, "label", str(corpus), "--minimum", "0", "--horizon", "2") for engine in ("local", "ray"))
    assert here == there and here["traces"] == 4 and rows(tmp_path / "local", TRACES) == rows(tmp_path / "ray", TRACES)
    played = ("arena", "--tasks", "2", "--level", "2-1-1", "--policy", "sliding-window:2")
    here, there = (command(engine, *played) for engine in ("local", "ray"))
    assert len(here["results"]) == 2 and {**here, "tasks": 0} == {**there, "tasks": 0}
    episodes = [
        [
            msgspec.json.encode(msgspec.structs.replace(episode, seconds=0.0))
            for episode in ArenaStore(Workspace(tmp_path / name)).episodes(here["arena_id"])
        ]
        for name in ("local", "ray")
    ]
    assert len(episodes[0]) == 8 and episodes[0] == episodes[1]
