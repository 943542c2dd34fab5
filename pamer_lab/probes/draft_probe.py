"""Probing-RAG's readout: the sum of one linear probe per layer on the states of drafted tokens.

A positive sum means that the next action needs memory. A probe is one JSON file that also describes its training data; a workspace's
probe takes precedence over the packaged one. Invariant: a probe reads only the model that it was fitted on.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError
from pamer_lab.opening import read_file
from pamer_lab.probes.metrics import auroc
from pamer_lab.storage.files import write_whole

PACKAGED = Path(__file__).parent / "drafts"
FOLDER = "drafts"
"""Folder of the probes fitted in a workspace, one file per model."""
LAYERS, FIRST, LAST = 6, 1 / 3, 8 / 9
"""Probing-RAG reads layers 6, 8, ... 16 of gemma-2b's 18; these are the same fractions for any depth."""
STRENGTH = 0.01
"""Inverse of the L2 penalty."""
FOLDS = 5
FIT = "pamer-lab policies --fit-probing-rag TRACES"

Rows = npt.NDArray[np.floating[Any]]


def layers_of(depth: int) -> list[int]:
    """The blocks whose states are read, counted from 0."""
    return sorted({round(place) - 1 for place in np.linspace(depth * FIRST, depth * LAST, LAYERS) if round(place) > 0} or {depth - 1})


class DraftProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of all layers, with their origin."""

    model: str
    fingerprint: str
    layers: list[int]
    weights: list[list[float]]
    bias: list[float]
    facts: dict[str, Any]
    """What it was fitted on, and its performance on held-out questions."""

    def margin(self, states: Rows) -> float:
        """The sum over layers of P(memory is needed) - P(it is not), for states [layers, width]."""
        logits = (np.asarray(self.weights) * states).sum(1) + np.asarray(self.bias)
        return float(np.tanh(logits / 2).sum())

    @property
    def sha256(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def write(self, path: Path) -> None:
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=0) + b"\n", parents=True)


def read_probe(path: Path) -> DraftProbe:
    """The probe in a file; `InputError` if it cannot be read or its shapes do not match."""
    try:
        found = msgspec.json.decode(read_file(path), type=DraftProbe)
    except msgspec.MsgspecError as error:
        raise InputError(f"not a probe for drafts ({error}); fit it again: {FIT}", path=str(path)) from error
    widths = {len(row) for row in found.weights}
    if not found.layers or len(widths) != 1 or {len(found.weights), len(found.bias)} != {len(found.layers)}:
        raise InputError(f"the numbers of layers, weights and biases differ; fit it again: {FIT}", path=str(path))
    return found


def probe_file(model: str, workspace: Path) -> Path:
    """The file of a model's probe: the workspace's, else the packaged one, which may not exist."""
    own = workspace / FOLDER / f"{model}.json"
    return own if own.is_file() else PACKAGED / f"{model}.json"


def why_no_probe(model: str, workspace: Path) -> str:
    """Why there is no probe for a model's drafts, as a sentence with a remedy; empty if there is one."""
    return "" if probe_file(model, workspace).is_file() else f"no probe reads drafts of {model}. Fit one: {FIT} (docs/policies.md)"


def find_probe(model: str, workspace: Path) -> DraftProbe:
    """The probe for a model; `InputError` if there is none."""
    if missing := why_no_probe(model, workspace):
        raise InputError(missing)
    path = probe_file(model, workspace)
    return _read(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: str, written: int) -> DraftProbe:
    """`written`: modification time, so that a refitted probe is read again."""
    return read_probe(Path(path))


@dataclass(frozen=True)
class Examples:
    """Drafts, labelled with whether memory was needed."""

    states: Rows
    """[n, layers, width]."""
    labels: npt.NDArray[np.bool_]
    questions: Sequence[str]


def fit(examples: Examples) -> tuple[list[list[float]], list[float], dict[str, Any]]:
    """Weights and biases per layer, and facts such as the cross-validated AUROC on held-out questions."""
    positives = int(examples.labels.sum())
    questions = len(set(examples.questions))
    if not 0 < positives < len(examples.labels) or questions < 2:
        raise InputError(
            f"{len(examples.labels)} labelled points from {questions} questions ({positives} positive) are too few to fit a probe"
        )
    weights, bias = _regressions(examples.states, examples.labels)
    facts = {"points": len(examples.labels), "positives": positives, "questions": questions, "auroc": _left_out(examples)}
    return [[_short(value) for value in row] for row in weights], [_short(value) for value in bias], facts


def _left_out(examples: Examples) -> float | None:
    """AUROC over all points, each scored by a probe that never saw its question; None if a training fold has only one class."""
    from sklearn.model_selection import GroupKFold

    count = min(FOLDS, len(set(examples.questions)))
    margins = np.zeros(len(examples.labels))
    for train, test in GroupKFold(count).split(examples.states, groups=list(examples.questions)):
        if len({*examples.labels[train]}) < 2:
            return None
        weights, bias = _regressions(examples.states[train], examples.labels[train])
        margins[test] = np.tanh(((examples.states[test] * weights).sum(2) + bias) / 2).sum(1)
    return round(float(auroc(margins[None], examples.labels)[0]), 4)


def _regressions(states: Rows, labels: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """A logistic regression per layer, with standardisation folded into its weights."""
    from sklearn.linear_model import LogisticRegression

    weights, bias = [], []
    for layer in range(states.shape[1]):
        rows = states[:, layer].astype(np.float64)
        mean, sd = rows.mean(0), rows.std(0)
        sd[sd == 0] = 1.0
        model = LogisticRegression(C=STRENGTH, max_iter=1000).fit((rows - mean) / sd, labels)
        weights.append(model.coef_[0] / sd)
        bias.append(float(model.intercept_[0]) - float(mean @ weights[-1]))
    return np.stack(weights), np.array(bias)


def _short(value: float) -> float:
    return float(f"{value:.6g}")
