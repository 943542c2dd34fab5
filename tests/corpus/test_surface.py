"""Cheap readings of the committed study stay in their bands; no model is needed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pamer_lab.blocks import cut
from pamer_lab.blocks.render import render, render_message
from pamer_lab.trajectory import Trace, read_traces

STUDY = Path(__file__).resolve().parents[2] / "sample_traces" / "study"
Rows = list[tuple[str, float, int, str, bool]]
"""Question, characters before the point, turn, text of Recent2, label."""


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(read_traces(STUDY))


def _rows(traces: list[Trace], target: str) -> Rows:
    rows: Rows = []
    for trace in traces:
        pieces = cut(trace.messages)
        sizes = [len(render(trace.messages[: pieces.prefix_end], trace.tools))]
        texts = ["".join(render_message(message) for message in block.of(trace.messages)) for block in pieces.blocks]
        for text in texts:
            sizes.append(sizes[-1] + len(text))
        for label in trace.labels:
            if label.target == target:
                recent = "".join(texts[max(0, label.t - 2) : label.t])
                rows.append((trace.question_id, float(sizes[label.t]), label.t, recent, label.value))
    return rows


def _splits(rows: Rows) -> Iterator[tuple[list[int], list[int]]]:
    questions = sorted({row[0] for row in rows})
    for seed in range(3):
        kept = set(np.random.default_rng(seed).permutation(questions)[: int(len(questions) * 0.75)])
        yield [i for i, row in enumerate(rows) if row[0] in kept], [i for i, row in enumerate(rows) if row[0] not in kept]


def _auroc(features: object, rows: Rows, train: list[int], test: list[int], strength: float) -> float:
    matrix, labels = features, np.array([row[4] for row in rows])
    model = LogisticRegression(C=strength, class_weight="balanced", max_iter=300).fit(matrix[train], labels[train])  # type: ignore[index]
    return float(roc_auc_score(labels[test], model.decision_function(matrix[test])))  # type: ignore[index]


@pytest.mark.parametrize("target", ["compression", "recall"])
def test_length_and_turn_tell_something_but_not_much(traces: list[Trace], target: str) -> None:
    rows = _rows(traces, target)
    plain = np.array([[row[1] / 1000, row[2], np.log(row[1]), np.log(row[2])] for row in rows])
    plain = (plain - plain.mean(0)) / plain.std(0)
    mean = np.mean([_auroc(plain, rows, train, test, 1.0) for train, test in _splits(rows)])
    assert 0.55 <= mean <= 0.80


@pytest.mark.parametrize("target", ["compression", "recall"])
def test_words_of_the_recent_window_tell_little(traces: list[Trace], target: str) -> None:
    rows = _rows(traces, target)
    found = []
    for train, test in _splits(rows):
        words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit([rows[i][3] for i in train])
        found.append(_auroc(words.transform([row[3] for row in rows]), rows, train, test, 1.0))
    assert np.mean(found) <= 0.65
