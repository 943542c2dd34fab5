"""Control readouts: logistic regression by scikit-learn, fitted to the end.

Probes of hidden states follow the paper's AdamW protocol; a control with two or with twenty thousand columns would not be
done after fifty epochs of it, and an unfinished control flatters the probe. So controls are solved exactly, with
the same class weights and splits, and their one setting (the strength of the penalty) is chosen by validation label loss.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.losses import class_weight, weighted_bce
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import TRAIN, VALIDATION, Split
from pamer_lab.studies.decisions import Decisions

PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""scikit-learn's C; larger means less penalty."""
WORDS = 20_000
"""Most words a TF-IDF control may use."""


def fit_columns(decisions: Decisions, splits: Sequence[Split], features: Floats) -> Floats:
    """Logits [T, S, n] of a control with dense columns, standardised on each training split."""

    def prepare(train: npt.NDArray[np.bool_]) -> Any:
        from sklearn.preprocessing import StandardScaler

        return StandardScaler().fit(features[train]).transform(features)

    return _fit(decisions, splits, prepare)


def fit_text(decisions: Decisions, splits: Sequence[Split], texts: Sequence[str]) -> Floats:
    """Logits [T, S, n] of a TF-IDF control; words and their weights come from each training split."""

    def prepare(train: npt.NDArray[np.bool_]) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=WORDS)
        words.fit([text for text, chosen in zip(texts, train, strict=True) if chosen])
        return words.transform(texts)

    return _fit(decisions, splits, prepare)


def _fit(decisions: Decisions, splits: Sequence[Split], prepare: Any) -> Floats:
    targets = len(decisions.labels)
    logits = np.zeros((targets, len(splits), len(decisions)), dtype=np.float32)
    for number, split in enumerate(splits):
        columns = prepare(split.rows(TRAIN))
        for target in range(targets):
            asked, y = decisions.counts[target], decisions.labels[target]
            logits[target, number] = _best_fit(columns, y, split.rows(TRAIN) & asked, split.rows(VALIDATION) & asked)
    return logits


def _best_fit(columns: Any, y: npt.NDArray[np.bool_], train: npt.NDArray[np.bool_], validation: npt.NDArray[np.bool_]) -> Floats:
    from sklearn.linear_model import LogisticRegression

    rho = class_weight(y[train])
    best, kept = np.inf, np.zeros(len(y), dtype=np.float32)
    for penalty in PENALTIES:
        model = LogisticRegression(C=penalty, class_weight={False: 1.0, True: rho}, max_iter=2000).fit(columns[train], y[train])
        logits = model.decision_function(columns)
        loss = float(weighted_bce(logits[validation], y[validation].astype(float), rho).mean())
        if loss < best:
            best, kept = loss, logits.astype(np.float32)
    return kept
