"""Heads survive the disk, refuse what does not belong together, and say what to do."""

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from pamer_lab.errors import InputError, ModelError, ProbeError
from pamer_lab.probes.artefact import FACTS, WEIGHTS, HeadSet
from pamer_lab.probes.readout import HeadStack, logit, sigmoid
from pamer_lab.probes.registry import register, remove


def heads(capacity: str = "mlp", width: int = 12) -> HeadSet:
    rng = np.random.default_rng(0)
    inner = 256 if capacity == "mlp" else width

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    hidden = {"hidden_weight": draw(5, inner, width), "hidden_bias": draw(5, inner)} if capacity == "mlp" else {}
    stack = HeadStack(draw(5, width), np.abs(draw(5, width)) + 0.5, draw(5, inner), draw(5), **hidden)
    return HeadSet(stack, (0.3, 0.4, 0.5, 0.6, 0.7), "Some-Model", "block_3", seeds=(0, 1, 2, 3, 4), facts={"corpus": "abc"})


@pytest.mark.parametrize("capacity", ["linear", "mlp"])
def test_saved_heads_come_back_the_same(tmp_path: Path, capacity: str) -> None:
    before = heads(capacity)
    after = HeadSet.load(before.save(tmp_path / "heads"))
    vector = np.random.default_rng(1).normal(size=12).astype(np.float32)
    assert np.array_equal(before.logits(vector), after.logits(vector))
    assert (after.thresholds, after.layer, after.seeds, after.facts) == (before.thresholds, before.layer, before.seeds, before.facts)
    assert after.stack.capacity == capacity


def test_heads_that_cannot_reach_the_disk_leave_the_older_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = heads().save(tmp_path / "heads")
    sha256 = HeadSet.load(older).sha256
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(InputError, match="Input/output error"):
        heads("linear").save(older)
    assert HeadSet.load(older).sha256 == sha256


def test_the_numpy_readout_is_the_torch_readout() -> None:
    import torch

    ours = heads()
    vector = np.random.default_rng(2).normal(size=12).astype(np.float32)
    stack = {name: torch.from_numpy(value) for name, value in ours.stack.tensors().items()}
    for number in range(5):
        standard = (torch.from_numpy(vector) - stack["mean"][number]) / stack["scale"][number]
        hidden = torch.nn.functional.gelu(stack["hidden_weight"][number] @ standard + stack["hidden_bias"][number])
        expected = float(stack["weight"][number] @ hidden + stack["bias"][number])
        assert ours.logits(vector)[number] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_a_head_votes_yes_exactly_at_its_threshold() -> None:
    ours = heads()
    at = ours.threshold_logits
    assert ours.votes(at) == (True,) * 5
    assert ours.votes(at - 1e-9) == (False,) * 5
    assert np.allclose(sigmoid(at), ours.thresholds)
    assert np.isneginf(logit(0.0))


def test_a_vector_that_is_not_finite_or_has_another_width_is_refused() -> None:
    ours = heads()
    with pytest.raises(ProbeError, match="NaN"):
        ours.logits(np.full(12, np.nan, dtype=np.float32))
    with pytest.raises(ProbeError, match="width 12"):
        ours.logits(np.zeros(13, dtype=np.float32))


def test_heads_of_another_model_are_refused_and_the_message_says_how_to_train() -> None:
    ours = heads()
    assert ours.require("Some-Model", 12) is ours
    with pytest.raises(InputError, match=r"Some-Model.*Other.*pamer-lab train"):
        ours.require("Other", 12)
    with pytest.raises(InputError, match="pamer-lab train"):
        ours.require("Some-Model", 13)


def test_heads_of_a_model_with_the_same_name_but_other_weights_are_refused() -> None:
    ours = replace(heads(), model_fingerprint="aaaa")
    assert ours.require("Some-Model", 12, "aaaa") is ours
    with pytest.raises(InputError, match="pamer-lab train"):
        ours.require("Some-Model", 12, "bbbb")


def test_the_hash_of_heads_changes_with_every_vote_and_not_with_how_they_were_made(tmp_path: Path) -> None:
    ours = heads()
    assert HeadSet.load(ours.save(tmp_path)).sha256 == ours.sha256 == replace(ours, facts={"command": "another"}, folder="x").sha256
    changed = {"thresholds": tuple(value / 2 for value in ours.thresholds), "layer": "block_9", "probe_system_prompt": "Think."}
    assert len({replace(ours, **{key: value}).sha256 for key, value in changed.items()} | {ours.sha256}) == 4  # type: ignore[arg-type]


def test_damaged_files_are_refused_with_their_name(tmp_path: Path) -> None:
    folder = heads().save(tmp_path)
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match=r"heads\.safetensors.*SHA-256"):
        HeadSet.load(folder)
    (folder / WEIGHTS).write_bytes(whole)
    facts = json.loads((folder / FACTS).read_text())
    for key in ("thresholds", "layer"):
        (folder / FACTS).write_text(json.dumps({name: value for name, value in facts.items() if name != key}))
        with pytest.raises(InputError, match=r"heads\.json.*pamer-lab train"):
            HeadSet.load(folder)
    (folder / FACTS).write_text(json.dumps(facts | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        HeadSet.load(folder)
    with pytest.raises(InputError, match="nowhere"):
        HeadSet.load(tmp_path / "nowhere")


def rewritten(folder: Path, tensors: dict[str, np.ndarray | None], **facts: object) -> Path:
    """The heads of a folder with other tensors and facts, and the SHA-256 that goes with them; None leaves a tensor out."""
    own = load((folder / WEIGHTS).read_bytes()) | tensors
    weights = save({name: value for name, value in own.items() if value is not None})
    (folder / WEIGHTS).write_bytes(weights)
    (folder / FACTS).write_text(
        json.dumps(json.loads((folder / FACTS).read_text()) | facts | {"sha256": hashlib.sha256(weights).hexdigest()})
    )
    return folder


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.float32)


@pytest.mark.parametrize(
    ("tensors", "facts", "reason"),
    [
        ({"mean": zeros(12)}, {}, r"heads\.safetensors.*\bmean\b.*\(12,\)"),
        ({"scale": zeros(5, 13)}, {}, r"heads\.safetensors.*\bscale\b"),
        ({"weight": zeros(5, 12)}, {}, r"heads\.safetensors.*\bweight\b"),
        ({"bias": zeros(4)}, {}, r"heads\.safetensors.*\bbias\b"),
        ({"hidden_weight": zeros(5, 256, 11)}, {}, r"heads\.safetensors.*\bhidden_weight\b"),
        ({"hidden_bias": None}, {}, "hidden_weight.*hidden_bias"),
        ({"more": zeros(1)}, {}, "more"),
        ({"scale": zeros(5, 12)}, {}, "scale.*zero"),
        ({"bias": np.full(5, np.nan, dtype=np.float32)}, {}, "bias.*finite"),
        ({}, {"width": 13}, r"heads\.json.*width 13.*width 12"),
        ({}, {"capacity": "linear"}, r"heads\.json.*capacity 'linear'"),
        ({}, {"thresholds": [0.5] * 4}, r"heads\.json.*5.*thresholds"),
        ({}, {"thresholds": [0.5] * 4 + [1.0]}, r"heads\.json.*0.*1"),
        ({}, {"seeds": [0]}, r"heads\.json.*5.*seeds"),
        ({}, {"hint": "loud"}, r"heads\.json.*hint.*none, faithful"),
        ({}, {"pooling": "first"}, r"heads\.json.*pooling.*last, mean"),
        ({}, {"target": "both"}, r"heads\.json.*target.*compression, recall"),
    ],
)
def test_heads_whose_parts_do_not_fit_together_are_refused(tmp_path: Path, tensors: dict, facts: dict, reason: str) -> None:
    with pytest.raises(InputError, match=f"{reason}.*pamer-lab train"):
        HeadSet.load(rewritten(heads().save(tmp_path), tensors, **facts))


def test_thresholds_must_fit_the_heads() -> None:
    stack = heads().stack
    with pytest.raises(ModelError, match="5 thresholds"):
        HeadSet(stack, (0.5,), "m", "final")
    with pytest.raises(ModelError, match=r"\b0\b.*\b1\b"):
        HeadSet(stack, (0.5, 0.5, 0.5, 0.5, 1.0), "m", "final")


def header(text: str, length: int | None = None) -> bytes:
    """A weights file with this header and 64 bytes of numbers."""
    return struct.pack("<Q", len(text) if length is None else length) + text.encode() + bytes(64)


def tensor(name: str, shape: list[int], end: int) -> str:
    return json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}})


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        header("{}", 2**63),
        header("{}", 2**31),
        header(tensor("mean", [2**40, 2**40], 64)),
        header(tensor("mean", [5, 12], 2**50)),
        header(tensor("../../planted", [16], 64)),
        header(tensor("__class__", [16], 64)),
        header("[" * 60_000),
        header('{"a": ' * 60_000),
        header(json.dumps({"mean": {"dtype": "F32", "shape": [10**400], "data_offsets": [0, 64]}})),
        b"\x80\x04cposix\nsystem\n(S'false'\ntR.",
    ],
    ids=[
        "empty",
        "header of exabytes",
        "header of 2 GB",
        "shape",
        "offsets",
        "path",
        "attribute",
        "deep list",
        "deep object",
        "digits",
        "pickle",
    ],
)
def test_weights_of_a_stranger_are_refused_with_their_name(tmp_path: Path, weights: bytes) -> None:
    folder = heads().save(tmp_path / "heads")
    (folder / WEIGHTS).write_bytes(weights)
    facts = json.loads((folder / FACTS).read_text()) | {"sha256": hashlib.sha256(weights).hexdigest()}
    (folder / FACTS).write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"heads\.safetensors.*pamer-lab train"):
        HeadSet.load(folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["heads", WEIGHTS, FACTS])


@pytest.mark.parametrize("name", ["../planted", "/etc/planted", "a/b", "..", ".", "", "a\0b", "x" * 65, "\u202egpj"])
def test_no_name_of_heads_leaves_their_folder(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "ws"
    for refused in (lambda: register(heads(), name, workspace), lambda: remove(name, workspace)):
        with pytest.raises(InputError):
            refused()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "facts", ["[" * 100_000, '{"a":' * 100_000, '{"format": ' + "9" * 5_000 + "}", "null", '{"format": 1, "sha256": {}}']
)
def test_facts_of_a_stranger_are_one_sentence(tmp_path: Path, facts: str) -> None:
    folder = heads().save(tmp_path)
    (folder / FACTS).write_text(facts)
    with pytest.raises(InputError, match="pamer-lab train"):
        HeadSet.load(folder)
