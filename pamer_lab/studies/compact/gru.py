"""The network of the recurrent conditions: a GRU over a trace's stored states, followed by an MLP (torch).

It follows the grid's training protocol; one pass over a trace serves all its rows. States that are not in memory are read from a
scratch file, one batch of traces at a time. Invariant: validation and test traces never enter a gradient.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pamer_lab.probes.circle import Numbers
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import TRAIN, VALIDATION, Split
from pamer_lab.probes.training import Training, class_weight
from pamer_lab.studies.compact.rows import at_hand, held, read, statistics
from pamer_lab.studies.compact.values import Steps
from pamer_lab.studies.decisions import Bools, Decisions

if TYPE_CHECKING:
    from torch import Tensor


def fit_steps(
    decisions: Decisions, splits: Sequence[Split], steps: Steps, *, training: Training | None = None, device: str = "cpu"
) -> Floats:
    """Logits [T, S, n] of one network per target and seed."""
    training = training or Training()
    steps = replace(steps, features=at_hand(steps.features), blocks=replace(steps.blocks, states=at_hand(steps.blocks.states)))
    found = np.zeros((len(decisions.labels), len(splits), len(decisions)), dtype=np.float32)
    for target in range(len(decisions.labels)):
        for number, split in enumerate(splits):
            asked = decisions.counts[target]
            found[target, number] = _fit(steps, decisions.labels[target], asked, split, training, device)
    return found


class _Data:
    """A study's rows, standardised on one seed's training rows."""

    def __init__(self, steps: Steps, train: Bools, device: str) -> None:
        self._steps, self._device = steps, device
        self.trace_of = steps.blocks.places[:, 0]
        own = np.concatenate([steps.blocks.of(trace) for trace in np.unique(self.trace_of[train])])
        self._states = statistics(steps.blocks.states, own)
        self._features = statistics(steps.features, np.flatnonzero(train))

    def features(self, rows: Numbers) -> "Tensor":
        """[rows, d']"""
        import torch

        mean, scale = self._features
        return torch.from_numpy((read(self._steps.features, rows) - mean) / scale).to(self._device)

    def sequences(self, traces: Numbers) -> "Tensor":
        """[traces, longest, d], zeros after the end."""
        import torch

        mean, scale = self._states
        blocks = self._steps.blocks
        padded = np.zeros((len(traces), blocks.longest, len(mean)), dtype=np.float32)
        for number, trace in enumerate(traces):
            own = blocks.of(trace)
            padded[number, : len(own)] = (read(blocks.states, own) - mean) / scale
        return torch.from_numpy(padded).to(self._device)

    def places(self, rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The traces of some rows; for each row, its trace's position among them and the newest block before its decision."""
        traces, local = np.unique(self.trace_of[rows], return_inverse=True)
        return traces, local, self._steps.blocks.places[rows, 1] - 1

    def parts(self, rows: Numbers) -> Iterator[Numbers]:
        """Positions in `rows`, in groups of complete traces that fit in memory."""
        blocks = self._steps.blocks
        traces = np.unique(self.trace_of[rows])
        step = max(1, min(held(blocks.states), held(self._steps.features)) // blocks.longest)
        for start in range(0, len(traces), step):
            yield np.flatnonzero(np.isin(self.trace_of[rows], traces[start : start + step]))


class _Network:
    """The GRU and its MLP; initial weights depend only on the seed."""

    def __init__(self, steps: Steps, seed: int, training: Training, device: str) -> None:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.gru = torch.nn.GRU(steps.blocks.states.shape[-1], steps.width, batch_first=True).to(device)
            inner = torch.nn.Linear(steps.width + steps.features.shape[-1], training.width)
            self.head = torch.nn.Sequential(inner, torch.nn.GELU(), torch.nn.Linear(training.width, 1)).to(device)
        self.parameters = [*self.gru.parameters(), *self.head.parameters()]

    def logits(self, data: _Data, rows: Numbers) -> "Tensor":
        """[rows]"""
        import torch

        traces, local, newest = data.places(rows)
        states, _ = self.gru(data.sequences(traces))  # [traces, longest, width]
        own = states[torch.from_numpy(local), torch.from_numpy(newest)]  # [rows, width]
        found: Tensor = self.head(torch.cat([own, data.features(rows)], 1))[:, 0]
        return found

    def said(self, data: _Data, rows: Numbers) -> "Tensor":
        """The same logits without gradients, part by part."""
        import torch

        with torch.no_grad():
            found = torch.empty(len(rows), device=self.parameters[0].device)
            for places in data.parts(rows):
                found[torch.from_numpy(places)] = self.logits(data, rows[places])
            return found


def _fit(steps: Steps, labels: Bools, asked: Bools, split: Split, training: Training, device: str) -> Floats:
    import torch

    train, validation = (split.rows(part) & asked for part in (TRAIN, VALIDATION))
    data = _Data(steps, train, device)
    network = _Network(steps, split.seed, training, device)
    optimiser = torch.optim.AdamW(network.parameters, lr=training.learning_rate, weight_decay=training.weight_decay)
    y = torch.from_numpy(labels.astype(np.float32)).to(device)
    rho = class_weight(labels[train])
    order = np.random.default_rng([training.order_seed, split.seed])
    checked = np.flatnonzero(validation)
    best, kept = float("inf"), _copy(network.parameters)
    for _ in range(training.epochs):
        for rows in _batches(data.trace_of, np.flatnonzero(train), training.batch, order):
            optimiser.zero_grad()
            _loss(network.logits(data, rows), y[torch.from_numpy(rows)], rho).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        loss = float(_loss(network.said(data, checked), y[torch.from_numpy(checked)], rho))
        if loss < best:
            best, kept = loss, _copy(network.parameters)
    with torch.no_grad():
        for parameter, value in zip(network.parameters, kept, strict=True):
            parameter.copy_(value)
    return np.asarray(network.said(data, np.arange(len(labels))).cpu().numpy(), dtype=np.float32)


def _loss(z: "Tensor", y: "Tensor", rho: float) -> "Tensor":
    import torch

    return ((rho * y + 1.0 - y) * torch.nn.functional.softplus(z) - rho * y * z).mean()


def _batches(trace_of: Numbers, rows: Numbers, size: int, order: Any) -> list[Numbers]:
    """Training rows in equal batches of about `size`, complete traces together, in a new order each epoch."""
    traces = order.permutation(np.unique(trace_of[rows]))
    count = max(1, round(len(rows) / size))
    parts = [part for part in np.array_split(traces, count) if len(part)]
    return [rows[np.isin(trace_of[rows], part)] for part in parts]


def _copy(parameters: Sequence["Tensor"]) -> list["Tensor"]:
    return [parameter.detach().clone() for parameter in parameters]
