"""Probing-RAG's probe: which layers, what is learned, and files that are refused."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from pamer_lab.errors import InputError
from pamer_lab.probes.draft_probe import FOLDER, LAYERS, DraftProbe, Examples, find_probe, fit, layers_of, read_probe, why_no_probe
from pamer_lab.studies.drafts import balanced

PROBE = DraftProbe("tiny", "f", [0, 2], [[1.0, 0.0], [0.0, 1.0]], [0.0, -1.0], {"points": 2})


def test_the_layers_of_gemma_2b_are_those_of_the_source() -> None:
    assert [layer + 1 for layer in layers_of(18)] == [6, 8, 10, 12, 14, 16]
    assert len(layers_of(30)) == LAYERS and max(layers_of(30)) < 30 and layers_of(1) == [0] and layers_of(2) == [0, 1]


def test_the_margin_adds_up_what_the_layers_say() -> None:
    # P - (1 - P) of a logit is tanh(logit / 2): logits 2 and 3 - 1.
    assert PROBE.margin(np.array([[2.0, 9.0], [9.0, 3.0]])) == pytest.approx(2 * np.tanh(1.0))
    assert PROBE.margin(np.array([[-2.0, 0.0], [0.0, 1.0]])) == pytest.approx(-np.tanh(1.0))


def test_a_fitted_probe_finds_what_divides_the_classes_and_says_so_on_questions_left_out() -> None:
    chance = np.random.default_rng(1)
    labels = np.arange(80) % 2 == 0
    states = chance.normal(size=(80, 2, 6))
    states[labels, :, 3] += 4.0
    weights, bias, facts = fit(Examples(states, labels, [f"q{place // 4}" for place in range(80)]))
    probe = DraftProbe("tiny", "f", [0, 1], weights, bias, facts)
    assert np.mean([(probe.margin(row) > 0) == label for row, label in zip(states, labels, strict=True)]) > 0.95
    assert facts["auroc"] > 0.95 and facts["positives"] == 40 and facts["questions"] == 20
    shuffled = fit(Examples(states, chance.permutation(labels), [f"q{place // 4}" for place in range(80)]))[2]
    assert shuffled["auroc"] < 0.8


def test_one_class_or_one_question_is_not_enough() -> None:
    states = np.ones((4, 1, 2))
    for labels, questions in (([True] * 4, ["a", "b", "c", "d"]), ([True, False] * 2, ["a"] * 4), ([], [])):
        with pytest.raises(InputError):
            fit(Examples(states[: len(labels)], np.array(labels, dtype=bool), questions))


def test_points_are_balanced_and_the_draw_is_the_same_each_time() -> None:
    counts = np.ones(50, dtype=bool)
    counts[:5] = False
    labels = np.arange(50) % 9 == 0
    chosen = balanced(counts, labels)
    assert labels[chosen].sum() * 2 == len(chosen) == 10 and chosen.min() >= 5
    assert chosen.tolist() == balanced(counts, labels).tolist()


def test_a_probe_that_is_fitted_again_replaces_the_older_one_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    PROBE.write(path)
    before = path.read_bytes()
    with path.open("rb") as reader:
        msgspec.structs.replace(PROBE, fingerprint="g").write(path)
        assert reader.read() == before != path.read_bytes()


def test_a_probe_comes_back_from_its_file_and_the_workspace_comes_first(tmp_path: Path) -> None:
    assert "tiny" in why_no_probe("tiny", tmp_path)
    with pytest.raises(InputError, match="fit-probing-rag"):
        find_probe("tiny", tmp_path)
    PROBE.write(tmp_path / FOLDER / "tiny.json")
    assert find_probe("tiny", tmp_path) == PROBE and not why_no_probe("tiny", tmp_path)


def test_the_packaged_probe_says_what_it_was_fitted_on(tmp_path: Path) -> None:
    probe = find_probe("SmolLM2-135M-Instruct", tmp_path)
    assert probe.layers == layers_of(30) and {len(row) for row in probe.weights} == {576}
    assert probe.facts["source"] == "traces.jsonl" and 0 < probe.facts["positives"] < probe.facts["points"]


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": []},
        {"layers": [0]},
        {"bias": [1.0]},
        {"weights": [[1.0], [1.0, 2.0]]},
        {"weights": [["a", "b"], [1.0, 2.0]]},
        {"more": 1},
        {"model": None},
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_name(tmp_path: Path, changes: dict[str, object]) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(msgspec.json.encode(msgspec.to_builtins(PROBE) | changes))
    with pytest.raises(InputError) as caught:
        read_probe(path)
    assert str(path) in caught.value.sentence
