"""The paper's configuration from end to end on a small real thing: a model with its own tokenizer, heads and server."""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pamer_lab import read_traces
from pamer_lab.cli import main
from pamer_lab.workspace import Workspace
from tests.own_model import save_own_qwen, served
from tests.pages.conftest import Visit, texts

pytestmark = pytest.mark.server
DEMO = Path(__file__).resolve().parents[2] / "sample_traces" / "demo" / "service-handover.json"
TURNS = 24
PROFILE = """base = "paper"
probe_system_prompt = "Watch the memory."
[frozen_model]
model = "{model}"
[embedding]
kind = "hashing"
model = "words"
dimensions = 64
[chat]
model = "{model}"
base_url = "{url}"
attempts = 1
"""


def lab(*words: str) -> dict[str, Any]:
    """A command's JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--json"])
    assert code == 0, words
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.fixture
def own(tmp_path: Path, workspace: Workspace) -> Iterator[Path]:
    """A corpus, a model that learned its tokenizer from it, the server, and the profile that names them."""
    lab("generate", "--questions", "12", "--replicas", "1", "--seed", "3", "--out", str(tmp_path / "corpus"))
    said = [message.content for trace in read_traces(tmp_path / "corpus" / "traces.jsonl") for message in trace.messages]
    model = save_own_qwen(tmp_path / "own-qwen", said)
    with served(model) as url:
        (tmp_path / "own.toml").write_text(PROFILE.format(model=model, url=url))
        yield tmp_path


def test_a_model_with_its_own_tokenizer_goes_from_training_to_the_share_file(own: Path, visit: Visit) -> None:
    profile = str(own / "own.toml")
    trained = lab("train", str(own / "corpus"), "--profile", profile, "--heads", "own-heads", "--trust-profile")
    assert (trained["settings"]["layer"], trained["settings"]["hint"]) == ("final", "faithful")
    listed = {row["name"]: row for row in lab("heads", "list")["heads"]}["own-heads"]
    assert (listed["model"], listed["layer"], listed["hint"], listed["source"]) == ("own-qwen", "final", "faithful", "workspace")
    assert listed["probe_system_prompt"] == "Watch the memory." and listed["sha256"] == trained["heads"]["sha256"]

    policies = "base,pamer:vote=1:minimum=200,pamer+:vote=1:minimum=200"
    replayed = lab("replay", str(DEMO), "--policy", policies, "--profile", profile, "--heads", "own-heads", "--turn-limit", str(TURNS))
    base, pamer, plus = replayed["runs"]
    assert {run["tokenizer"] for run in replayed["runs"]} == {"own-qwen"} and not replayed["failed"]
    assert base["heads"] == {} and pamer["heads"] == plus["heads"] == {
        key: listed[key] for key in ("name", "sha256", "model", "layer", "hint")
    }
    assert all(len(turn["logits"]) == 5 for turn in pamer["turns"][3:])
    spent = [entry for run in (pamer, plus) for turn in run["turns"] for entry in turn["auxiliary"]]
    assert {entry["model"] for entry in spent if entry["operation"] == "features"} == {"own-qwen final last"}
    asked = [entry for entry in spent if entry["operation"] == "summary"]
    assert asked and all(entry["input_tokens"] > 0 and not entry.get("local") for entry in asked)
    assert "smollm" not in json.dumps(replayed).lower()

    trace_id = base["trace_id"]
    app = visit("pages/replay.py", trace=trace_id, profile="own", heads="own-heads", policies="pamer:vote=1:minimum=200")
    assert not app.exception
    assert "own-heads" in texts(app) and "own-qwen" in texts(app) and "SmolLM2" not in texts(app)

    shared = lab("report", *(run["run_id"] for run in replayed["runs"]), "--out", str(own / "share.html"))
    page = Path(shared["path"]).read_text()
    assert "own-qwen" in page and "smollm" not in page.lower()


def test_heads_and_models_that_do_not_fit_are_one_sentence_each(
    tmp_path: Path, workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.toml").write_text(f'[frozen_model]\nmodel = "{tmp_path / "absent"}"\n')
    (tmp_path / "key.toml").write_text("probe_limt = 3\n")
    empty = tmp_path / "no-tokenizer"
    empty.mkdir()
    (empty / "config.json").write_text('{"model_type": "llama"}')
    cases = {
        ("--profile", f"hf:{empty}"): "tokenizer",
        ("--profile", "hf:some-one/no-such-model"): "hf download some-one/no-such-model",
        ("--profile", str(tmp_path / "key.toml")): "probe_limt",
        ("--profile", str(tmp_path / "own.toml")): "absent",
        ("--heads", "nothing"): "smollm2-generated",
        ("--policy", "pamer:vote=9"): "9",
    }
    for words, expected in cases.items():
        assert main(["replay", str(DEMO), "--policy", "pamer", "--turn-limit", "3", *words]) == 2, words
        said = capfd.readouterr().err.strip()
        assert expected in said and "\n" not in said and "Traceback" not in said
