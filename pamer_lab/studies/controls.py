"""Hidden state against what can be seen without a model: the controls of Appendix A.4, shuffled labels, and rules.

All rows carry the same splits. The hidden state is read by linear probes on the full context without hint: at its final state,
and at the layer that validation prefers for the target.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pamer_lab.blocks import MessageTokens
from pamer_lab.models.embedder import Embedder
from pamer_lab.probes.grid import train_grid
from pamer_lab.probes.intervals import RESAMPLES
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import Split
from pamer_lab.probes.training import GridData
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.decisions import TARGETS, Decisions
from pamer_lab.studies.fits import fit_columns, fit_text
from pamer_lab.studies.layerwise import fit_probes, preferred_of, shuffled_labels
from pamer_lab.studies.observables import observe, one_hot, recent2_embeddings, recent2_texts
from pamer_lab.studies.rules import RULES, triggers
from pamer_lab.studies.tables import Row, make_row
from pamer_lab.trajectory.values import Trace

RULE_CUT = 0.5
"""A rule fires or not; nothing is fitted."""


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
    """The hidden state at the final state and at each target's preferred layer, with shuffled labels; and those layers."""
    last = np.ascontiguousarray(bank.vectors[:, bank.poolings.index("last")])
    fitted = fit_probes(decisions, splits, last, device=device)
    chosen: dict[str, str] = {
        name: preferred_of(decisions, splits, target, fitted.logits[:, target], bank.layers) for target, name in enumerate(TARGETS)
    }
    rows: list[Row] = []
    for target, name in enumerate(TARGETS):
        for layer, label in ((bank.layers[-1], "Hidden state, final (linear)"), (chosen[name], "Hidden state, preferred layer (linear)")):
            logits = fitted.logits[bank.layers.index(layer), target]
            rows.append(make_row(decisions, splits, target, logits, {"name": label, "kind": "hidden", "layer": layer}, resamples=resamples))
        rows.append(shuffled_row(decisions, splits, target, bank.of(chosen[name]), chosen[name], device, resamples))
    return rows, chosen


def shuffled_row(
    decisions: Decisions,
    splits: Sequence[Split],
    target: int,
    features: Floats,
    layer: str,
    device: str = "cpu",
    resamples: int = RESAMPLES,
) -> Row:
    """The same probes on labels shuffled for each seed: what the protocol finds when there is no signal."""
    labels = shuffled_labels(decisions, splits, target)
    data = GridData(features[None], labels[None], decisions.counts[target][None], tuple(splits))
    logits = train_grid(data, "linear", device=device).logits[0, 0]
    names = {"name": "Shuffled labels", "kind": "shuffled", "layer": layer}
    return make_row(decisions, splits, target, logits, names, labels=labels, resamples=resamples)
