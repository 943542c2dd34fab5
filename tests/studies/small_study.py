"""A small labelled corpus with made-up features, and a study's probes computed a second time: plain torch and scikit-learn.

Nothing is read from a file: both sides are computed when a test runs, so that a wrong sign, split, class weight, pooling or layer
in the package makes them differ.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from pamer_lab.probes.margins import unpack
from pamer_lab.probes.split import TEST, TRAIN, VALIDATION, Split
from pamer_lab.probes.training import GridData, Training, window_size, windows
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.values import Label, Message, ToolCall, Trace

TURNS = 9
WIDTH = 48


def corpus() -> dict[str, Trace]:
    """Compression is due where the last tool was `close`; recall follows nothing that can be seen."""
    rng = np.random.default_rng(5)
    traces = {}
    for number in range(40):
        messages = [Message("user", f"task {number}")]
        labels: list[Label] = []
        for step in range(TURNS):
            closing = rng.random() < 0.35
            tool = "close" if closing else str(rng.choice(["search", "read_file"]))
            messages.append(Message("assistant", "", (ToolCall("c", tool, f'{{"query": "word{step}"}}'),)))
            messages.append(Message("tool", "result " * int(rng.integers(1, 30)), tool_call_id="c"))
            if step + 1 < TURNS:
                labels.append(Label(step + 1, "compression", bool(closing)))
                if step + 1 >= 3:
                    labels.append(Label(step + 1, "recall", bool(rng.random() < 0.3)))
        traces[f"t{number}"] = Trace(f"t{number}", f"q{number // 2}", "test", tuple(messages), labels=tuple(labels))
    return traces


def bank(decisions: Decisions, clear: float = 1.0, *, context: str = "full", hint: str = "none") -> Bank:
    """Two layers, the second of which carries both labels at the last token."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, 2, len(decisions), WIDTH)).astype(np.float32)
    vectors[1, 0] += clear * np.repeat(decisions.labels.T, WIDTH // 2, 1)
    return Bank(context, hint, ("block_1", "final"), ("last", "mean"), vectors, 100)


def grid_data(decisions: Decisions, splits: tuple[Split, ...], features: np.ndarray, teacher: np.ndarray | None = None) -> GridData:
    """One feature set [n, d] for both targets and all seeds."""
    return GridData(features[None], np.repeat(decisions.labels[:, None], len(splits), 1), decisions.counts, splits, teacher)


def train_alone(
    data: GridData, target: int, seed: int, capacity: str, training: Training | None = None, chosen: int = 0
) -> tuple[np.ndarray, int]:
    """Logits of one probe by plain torch and the epoch kept: standardise, AdamW on the same windows, best validation epoch."""
    training = training or Training()
    rows = np.flatnonzero(data.counts[target])
    rows = rows[np.random.default_rng(training.order_seed).permutation(len(rows))]
    part, y = data.splits[seed].part[rows], data.labels[target, seed, rows].astype(np.float64)
    train, valid = part == TRAIN, part == VALIDATION
    own = data.features[chosen, rows[train]].astype(np.float64)
    x, every = (torch.tensor((data.features[chosen, pick].astype(np.float64) - own.mean(0)) / own.std(0)) for pick in (rows, slice(None)))
    rho = torch.tensor((1 - y[train]).sum() / y[train].sum())
    loss_of, label = torch.nn.functional.binary_cross_entropy_with_logits, torch.tensor(y)
    net = _net(x.shape[1], capacity, training.width, data.splits[seed].seed)
    optimiser = torch.optim.AdamW(net.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay)
    size, best, kept, at = window_size(len(rows), training), np.inf, np.zeros(0), 0
    for epoch, starts in enumerate(windows(len(rows), training), start=1):
        for start in starts:
            picked = np.array([place % len(rows) for place in range(start, start + size)])
            picked = picked[train[picked]]
            z = net(x[picked])[:, 0]
            loss = loss_of(z, label[picked], pos_weight=rho)
            if data.teacher is not None:
                loss = loss + 0.5 * loss_of(z, torch.tensor(data.teacher[target, seed, rows[picked]].astype(np.float64)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            value = float(loss_of(net(x[valid])[:, 0], label[valid], pos_weight=rho))
            if value < best:
                best, kept, at = value, net(every)[:, 0].numpy().copy(), epoch
    return kept, at


def _net(inputs: int, capacity: str, width: int, seed: int) -> torch.nn.Sequential:
    draw = torch.Generator().manual_seed(seed)

    def layer(inputs: int, outputs: int) -> torch.nn.Linear:
        made = torch.nn.Linear(inputs, outputs).double()
        made.weight.data = ((torch.rand(outputs, inputs, generator=draw) * 2 - 1) / inputs**0.5).double()
        made.bias.data = ((torch.rand(outputs, generator=draw) * 2 - 1) / inputs**0.5).double()
        return made

    deep = [layer(inputs, width), torch.nn.GELU()] if capacity == "mlp" else []
    return torch.nn.Sequential(*deep, layer(width if deep else inputs, 1))


@dataclass(frozen=True)
class Measured:
    """One seed of a row, by brute force and scikit-learn."""

    threshold: float
    auroc: float
    auprc: float
    f1: float
    margins: np.ndarray
    """Logit minus threshold on the test rows: positives, then negatives."""


def measure(decisions: Decisions, split: Split, target: int, logits: np.ndarray) -> Measured:
    """The threshold of the best validation F1, and the metrics of the test rows."""
    asked, y = decisions.counts[target], decisions.labels[target]
    valid, test = (np.flatnonzero(split.rows(part) & asked) for part in (VALIDATION, TEST))
    falling = np.sort(logits[valid])[::-1]
    cuts = [*((one + other) / 2 for one, other in pairwise(falling)), falling[-1]]
    threshold = max(cuts, key=lambda cut: (f1_score(y[valid], logits[valid] >= cut), cut))
    margins = logits[test] - threshold
    return Measured(
        threshold,
        float(roc_auc_score(y[test], logits[test])),
        float(average_precision_score(y[test], logits[test])),
        float(f1_score(y[test], logits[test] >= threshold)),
        np.concatenate([margins[y[test]], margins[~y[test]]]),
    )


def differences(row: dict[str, Any], number: int, expected: Measured) -> dict[str, float]:
    """How far one seed of a row is from what was measured here; all near zero where the row is right."""
    kept = unpack(row)[number]
    margins = np.concatenate([kept.positive, kept.negative]).astype(np.float64)
    found = {"threshold": row["thresholds"][number] - expected.threshold}
    found |= {name: row["metrics"][name]["seeds"][number] - getattr(expected, name) for name in ("auroc", "auprc", "f1")}
    return found | {"margins": float(np.abs(margins - expected.margins).max()) if len(margins) == len(expected.margins) else np.inf}
