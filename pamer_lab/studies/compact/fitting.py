"""A representation -> logits of all targets and seeds, fitted once and kept in the workspace; the recurrent conditions by a GRU (torch).

On disk: table `condition_logits`, one row per fit; the key is a hash of everything the fit depends on (representation, labels, splits,
teacher, training), so that a study that was stopped continues where it was and a changed input finds nothing. The GRU follows
the grid's protocol; a trace goes through it once and serves all its rows. Invariant: validation and test traces never enter a gradient.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pamer_lab.probes.readout import Floats, sigmoid
from pamer_lab.probes.split import TRAIN, VALIDATION, Split
from pamer_lab.probes.training import Training, class_weight
from pamer_lab.storage import Database, TableSpec, equals
from pamer_lab.studies.compact.values import Columns, Representation, Steps
from pamer_lab.studies.decisions import Bools, Decisions
from pamer_lab.studies.distill import Lab
from pamer_lab.studies.layerwise import fit_probes

if TYPE_CHECKING:
    from torch import Tensor


def fit_steps(
    decisions: Decisions, splits: Sequence[Split], steps: Steps, *, training: Training | None = None, device: str = "cpu"
) -> Floats:
    """Logits [T, S, n] of one network per target and seed."""
    training = training or Training()
    found = np.zeros((len(decisions.labels), len(splits), len(decisions)), dtype=np.float32)
    for target in range(len(decisions.labels)):
        for number, split in enumerate(splits):
            asked = decisions.counts[target]
            found[target, number] = _fit(steps, decisions.labels[target], asked, split, training, device)
    return found


@dataclass(frozen=True)
class _Data:
    """One seed's tensors."""

    sequences: "Tensor"
    """[traces, longest, d], standardised, zeros after the end."""
    features: "Tensor"
    """[n, d']"""
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, steps: Steps, train: Bools, device: str) -> "_Data":
        import torch

        own = np.unique(steps.places[train, 0])
        mean, scale = _statistics(np.concatenate([steps.sequences[number] for number in own]))
        longest = max(len(sequence) for sequence in steps.sequences)
        padded = np.zeros((len(steps.sequences), longest, steps.sequences[0].shape[1]), dtype=np.float32)
        for number, sequence in enumerate(steps.sequences):
            padded[number, : len(sequence)] = (sequence - mean) / scale
        centre, spread = _statistics(steps.features[train])
        features = torch.from_numpy(((steps.features - centre) / spread).astype(np.float32)).to(device)
        return cls(torch.from_numpy(padded).to(device), features, steps.places)


class _Network:
    """The GRU and the MLP behind it; start weights depend on the seed alone."""

    def __init__(self, steps: Steps, seed: int, training: Training, device: str) -> None:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.gru = torch.nn.GRU(steps.sequences[0].shape[1], steps.width, batch_first=True).to(device)
            inner = torch.nn.Linear(steps.width + steps.features.shape[1], training.width)
            self.head = torch.nn.Sequential(inner, torch.nn.GELU(), torch.nn.Linear(training.width, 1)).to(device)
        self.parameters = [*self.gru.parameters(), *self.head.parameters()]

    def logits(self, data: _Data, rows: npt.NDArray[np.int64]) -> "Tensor":
        """[rows]"""
        import torch

        traces, local = np.unique(data.places[rows, 0], return_inverse=True)
        states, _ = self.gru(data.sequences[torch.from_numpy(traces)])  # [traces, longest, width]
        own = states[torch.from_numpy(local), torch.from_numpy(data.places[rows, 1] - 1)]  # [rows, width]
        found: Tensor = self.head(torch.cat([own, data.features[torch.from_numpy(rows)]], 1))[:, 0]
        return found


def _fit(steps: Steps, labels: Bools, asked: Bools, split: Split, training: Training, device: str) -> Floats:
    import torch

    train, validation = (split.rows(part) & asked for part in (TRAIN, VALIDATION))
    data = _Data.of(steps, train, device)
    network = _Network(steps, split.seed, training, device)
    optimiser = torch.optim.AdamW(network.parameters, lr=training.learning_rate, weight_decay=training.weight_decay)
    y = torch.from_numpy(labels.astype(np.float32)).to(device)
    rho = class_weight(labels[train])
    order = np.random.default_rng([training.order_seed, split.seed])
    checked = np.flatnonzero(validation)
    best, kept = float("inf"), _copy(network.parameters)
    for _ in range(training.epochs):
        for rows in _batches(steps.places[:, 0], np.flatnonzero(train), training.batch, order):
            optimiser.zero_grad()
            _loss(network.logits(data, rows), y[torch.from_numpy(rows)], rho).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        with torch.no_grad():
            loss = float(_loss(network.logits(data, checked), y[torch.from_numpy(checked)], rho))
        if loss < best:
            best, kept = loss, _copy(network.parameters)
    with torch.no_grad():
        for parameter, value in zip(network.parameters, kept, strict=True):
            parameter.copy_(value)
        return np.asarray(network.logits(data, np.arange(len(labels))).cpu().numpy(), dtype=np.float32)


def _loss(z: "Tensor", y: "Tensor", rho: float) -> "Tensor":
    import torch

    return ((rho * y + 1.0 - y) * torch.nn.functional.softplus(z) - rho * y * z).mean()


def _batches(trace_of: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], size: int, order: Any) -> list[npt.NDArray[np.int64]]:
    """Training rows in equal batches of about `size`, complete traces together, in a new order each epoch."""
    traces = order.permutation(np.unique(trace_of[rows]))
    count = max(1, round(len(rows) / size))
    parts = [part for part in np.array_split(traces, count) if len(part)]
    return [rows[np.isin(trace_of[rows], part)] for part in parts]


def _statistics(values: Floats) -> tuple[Floats, Floats]:
    mean, scale = values.mean(0, dtype=np.float64), values.std(0, dtype=np.float64)
    return mean.astype(np.float32), np.where(scale > 1e-5, scale, 1.0).astype(np.float32)


def _copy(parameters: Sequence["Tensor"]) -> list["Tensor"]:
    return [parameter.detach().clone() for parameter in parameters]


VERSION = 1
"""Raised whenever fitting changes, so that kept logits of another way are not reused."""

LOGITS = TableSpec(
    name="condition_logits",
    key=("key",),
    schema=pa.schema([("key", pa.string()), ("condition", pa.string()), ("logits", pa.large_binary())]),
)


@dataclass
class Fitter:
    """Fits representations on one study's decisions and splits."""

    lab: Lab
    database: Database | None = None
    training: Training | None = None
    hits: int = 0
    """Fits that were in the workspace."""

    def fit(self, name: str, representation: Representation, teacher: Floats | None = None) -> Floats:
        """Logits [T, S, n]; `teacher` is used where the representation is taught."""
        taught = isinstance(representation, Columns) and representation.taught
        scores = sigmoid(teacher).astype(np.float32) if taught and teacher is not None else None
        key = self._key(representation, scores)
        shape = (len(self.lab.decisions.labels), len(self.lab.splits), len(self.lab.decisions))
        if self.database is not None and self.database.exists(LOGITS):
            found = self.database.rows(LOGITS, where=equals("key", key))
            if found:
                self.hits += 1
                return np.frombuffer(found[0]["logits"], dtype="<f4").astype(np.float32).reshape(shape)
        logits = self._fit(representation, scores)
        if self.database is not None:
            self.database.upsert(LOGITS, [{"key": key, "condition": name, "logits": logits.astype("<f4").tobytes()}])
        return logits

    def _fit(self, representation: Representation, scores: Floats | None) -> Floats:
        lab = self.lab
        match representation:
            case Columns():
                rows = np.ascontiguousarray(representation.features[None])
                fitted = fit_probes(lab.decisions, lab.splits, rows, "mlp", teacher=scores, training=self.training, device=lab.device)
                only: Floats = fitted.logits[0]
                return only
            case Steps():
                return fit_steps(lab.decisions, lab.splits, representation, training=self.training, device=lab.device)

    def _key(self, representation: Representation, scores: Floats | None) -> str:
        decisions = self.lab.decisions
        training = (self.training or Training()).model_dump_json()
        digest = hashlib.sha256(f"{VERSION}|{type(representation).__name__}|{training}|".encode())
        digest.update(repr([split.seed for split in self.lab.splits]).encode())
        for part in (decisions.labels, decisions.counts, *(split.part for split in self.lab.splits), representation.features):
            digest.update(np.ascontiguousarray(part).tobytes())
        if isinstance(representation, Steps):
            digest.update(str(representation.width).encode())
            for sequence in representation.sequences:
                digest.update(np.ascontiguousarray(sequence).tobytes())
            digest.update(representation.places.tobytes())
        if scores is not None:
            digest.update(scores.tobytes())
        return digest.hexdigest()
