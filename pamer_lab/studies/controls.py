"""Compares hidden states with what can be observed without a model: the controls of Appendix A.4, shuffled labels, and rules.

All rows use the same splits. Linear probes read the hidden state of the full context without hint: the final state, and the layer that
validation prefers for the target. Controls are logistic regressions trained to convergence (an underfitted control would flatter the
probe), with the same class weights; the penalty is chosen by validation label loss.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.blocks import MessageTokens
from pamer_lab.models.embedder import Embedder
from pamer_lab.probes.circle import States
from pamer_lab.probes.grid import train_grid
from pamer_lab.probes.metrics import RESAMPLES
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import TRAIN, VALIDATION, Split
from pamer_lab.probes.training import GridData, class_weight, weighted_bce
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.decisions import TARGETS, Decisions
from pamer_lab.studies.layerwise import fit_probes, preferred_of, shuffled_labels
from pamer_lab.studies.observables import RULES, observe, one_hot, recent2_embeddings, recent2_texts, triggers
from pamer_lab.studies.tables import Row, make_row
from pamer_lab.trajectory.values import Trace

PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""scikit-learn's C; larger means less penalty."""
WORDS = 20_000
"""Maximum vocabulary size of the TF-IDF control."""


def fit_columns(decisions: Decisions, splits: Sequence[Split], features: Floats) -> Floats:
    """Logits [T, S, n] of a control with dense columns, standardised on each training split."""

    def prepare(train: npt.NDArray[np.bool_]) -> Any:
        from sklearn.preprocessing import StandardScaler

        return StandardScaler().fit(features[train]).transform(features)

    return _fit(decisions, splits, prepare)


def fit_text(decisions: Decisions, splits: Sequence[Split], texts: Sequence[str]) -> Floats:
    """Logits [T, S, n] of a TF-IDF control; vocabulary and weights come from each training split."""

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


RULE_CUT = 0.5
"""Threshold of a rule, which fires (1) or does not (0); nothing is fitted."""


def observable_rows(
    traces: Mapping[str, Trace],
    decisions: Decisions,
    splits: Sequence[Split],
    tokens: MessageTokens,
    embedder: Embedder,
    resamples: int = RESAMPLES,
) -> list[Row]:
    """The six controls of the paper."""
    seen = observe(traces, decisions, tokens)
    plain = np.stack([seen.length, seen.turn], 1)
    tools = one_hot(seen.tools)
    logits = {
        "Length + turn": fit_columns(decisions, splits, plain),
        "Last tool type": fit_columns(decisions, splits, tools),
        "Last action type": fit_columns(decisions, splits, one_hot(seen.actions)),
        "Length + turn + tool type": fit_columns(decisions, splits, np.concatenate([plain, tools], 1)),
        "Recent2 TF-IDF": fit_text(decisions, splits, recent2_texts(traces, decisions)),
        "Recent2 text embedding": fit_columns(decisions, splits, recent2_embeddings(traces, decisions, embedder)),
    }
    return [
        make_row(decisions, splits, target, own[target], {"name": name, "kind": "control"}, resamples=resamples)
        for target in range(len(TARGETS))
        for name, own in logits.items()
    ]


def rule_rows(traces: Mapping[str, Trace], decisions: Decisions, splits: Sequence[Split], resamples: int = RESAMPLES) -> list[Row]:
    """The three rule triggers, as scores of zero and one."""
    fired = {trace_id: triggers(traces[trace_id]) for trace_id in {trace_id for trace_id, _ in decisions.keys}}
    values = np.array([fired[trace_id][t] for trace_id, t in decisions.keys], dtype=np.float32)  # [n, rules]
    scores = np.repeat(values.T[:, None], len(splits), 1)  # [rules, S, n]
    return [
        make_row(decisions, splits, target, scores[rule], {"name": name, "kind": "rule"}, threshold=RULE_CUT, resamples=resamples)
        for target in range(len(TARGETS))
        for rule, name in enumerate(RULES)
    ]


def hidden_rows(
    decisions: Decisions, splits: Sequence[Split], bank: Bank, *, device: str = "cpu", resamples: int = RESAMPLES
) -> tuple[list[Row], dict[str, str]]:
    """Rows for the final hidden state, each target's preferred layer, and shuffled labels; and those layers."""
    fitted = fit_probes(decisions, splits, bank.sets(poolings=["last"]), device=device)
    chosen: dict[str, str] = {
        name: preferred_of(decisions, splits, target, fitted.logits[:, target], bank.layers) for target, name in enumerate(TARGETS)
    }
    rows: list[Row] = []
    for target, name in enumerate(TARGETS):
        for layer, label in ((bank.layers[-1], "Hidden state, final (linear)"), (chosen[name], "Hidden state, preferred layer (linear)")):
            logits = fitted.logits[bank.layers.index(layer), target]
            rows.append(make_row(decisions, splits, target, logits, {"name": label, "kind": "hidden", "layer": layer}, resamples=resamples))
        rows.append(shuffled_row(decisions, splits, target, bank.sets([chosen[name]], ["last"]), chosen[name], device, resamples))
    return rows, chosen


def shuffled_row(
    decisions: Decisions,
    splits: Sequence[Split],
    target: int,
    features: Floats | States,
    layer: str,
    device: str = "cpu",
    resamples: int = RESAMPLES,
) -> Row:
    """The same probes on labels shuffled per seed: what the protocol finds when there is no signal."""
    labels = shuffled_labels(decisions, splits, target)
    data = GridData(features, labels[None], decisions.counts[target][None], tuple(splits))
    logits = train_grid(data, "linear", device=device).logits[0, 0]
    names = {"name": "Shuffled labels", "kind": "shuffled", "layer": layer}
    return make_row(decisions, splits, target, logits, names, labels=labels, resamples=resamples)
