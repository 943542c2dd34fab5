"""The training loop of the grid, for as many feature sets as fit in the cache together (torch).

Knows columns (targets x seeds), rows that count, and coefficients; does not know what the feature sets are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.circle import Circle
from pamer_lab.probes.heads import Heads, make_heads
from pamer_lab.probes.readout import Capacity, Floats, HeadStack
from pamer_lab.probes.split import TRAIN, VALIDATION
from pamer_lab.probes.training import Bools, GridData, Training, class_weight, soft_target, window_size, windows

if TYPE_CHECKING:
    from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class Plan:
    """Coefficients of one group of targets: columns are targets x seeds, rows those that count."""

    kept: npt.NDArray[np.int64]
    """[m]: rows that count, in the shared order."""
    rows: int
    """Number of all rows, including those that do not count."""
    seeds: tuple[int, ...]
    split_of: npt.NDArray[np.int64]
    """[C]: the place in `seeds` of each column."""
    train: Bools
    """[S, m]"""
    validation: Bools
    """[S, m]"""
    push: Floats
    """[C, m]: `a` of the loss, zero outside the training part."""
    pull: Floats
    """[C, m]: `c` of the loss, zero outside the training part."""
    label_push: Floats
    """[C, m]: `a` of the label loss alone, zero outside the validation part."""
    label_pull: Floats
    """[C, m]: `c` of the label loss alone, zero outside the validation part."""

    @classmethod
    def of(cls, data: GridData, targets: Sequence[int], training: Training) -> "Plan":
        rows = np.flatnonzero(data.counts[targets[0]])
        kept = rows[np.random.default_rng(training.order_seed).permutation(len(rows))]
        parts = np.stack([split.part[kept] for split in data.splits])  # [S, m]
        train, validation = parts == TRAIN, parts == VALIDATION
        columns: list[list[npt.NDArray[Any]]] = []
        for target in targets:
            for seed in range(len(data.splits)):
                y = data.labels[target, seed, kept].astype(np.float64)
                q = None if data.teacher is None else data.teacher[target, seed, kept].astype(np.float64)
                rho = class_weight(y[train[seed]])
                loss, label = soft_target(y, q, rho, training.kd_weight), soft_target(y, None, rho)
                columns.append([*(part * train[seed] for part in loss), *(part * validation[seed] for part in label)])
        coefficients = [np.stack(part).astype(np.float32) for part in zip(*columns, strict=True)]
        split_of = np.tile(np.arange(len(data.splits)), len(targets))
        return cls(kept, data.counts.shape[1], tuple(split.seed for split in data.splits), split_of, train, validation, *coefficients)


@dataclass(frozen=True)
class Fitted:
    """One tile's results."""

    logits: Floats
    """[F, C, n]"""
    epochs: npt.NDArray[np.int64]
    """[F, C]"""
    losses: Floats
    """[F, C]"""
    mean: Floats
    """[F, C, d], in the units of the features."""
    scale: Floats
    weights: tuple[Floats, ...]
    """In the order of `Heads.best`."""

    def stack(self, feature_set: int, columns: slice) -> HeadStack:
        own = [weight[feature_set, columns] for weight in self.weights]
        return HeadStack(self.mean[feature_set, columns], self.scale[feature_set, columns], *own)


def train_tile(circle: Circle, plan: Plan, capacity: Capacity, training: Training, device: str) -> Fitted:
    """Train with AdamW over the windows; each epoch keeps the weights of probes with a new lowest validation loss."""
    import torch

    count = len(plan.kept)
    size = window_size(count, training)
    member, push, pull = (_wrap(part, size, device) for part in (plan.train.astype(np.float32), plan.push, plan.pull))
    mean, scale = circle.statistics(member[:, :count])  # [F, S, d]
    columns = torch.from_numpy(plan.split_of).to(device)
    heads = make_heads(capacity, mean[:, columns], scale[:, columns], [plan.seeds[place] for place in plan.split_of], training.width)
    optimiser = AdamW(heads.parameters, training.learning_rate, training.weight_decay)
    check = _Checkpoint(circle, plan, device)
    member = member[columns]  # [C, m + size]
    for epoch, starts in enumerate(windows(count, training), start=1):
        for start in starts:
            own = slice(start, start + size)
            z = heads.logits(circle.window(start, size))  # [F, C, B]
            with torch.no_grad():
                share = member[:, own].sum(-1, keepdim=True).clamp(min=1.0)  # [C, 1]
                slope = (push[:, own] * torch.sigmoid(z) - pull[:, own]) / share
            # As a scalar: with an explicit gradient, `backward` would first import a computer algebra system.
            (z * slope).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        heads.keep(check.improved(heads, epoch))
    return Fitted(
        logits=_all_logits(circle, plan.rows, heads),
        epochs=check.epoch.cpu().numpy(),
        losses=check.loss.cpu().numpy(),
        mean=heads.mean.cpu().numpy() * circle.spread[:, None] + circle.centre[:, None],
        scale=heads.scale.cpu().numpy() * circle.spread[:, None],
        weights=tuple(weight.cpu().numpy() for weight in heads.best),
    )


class _Checkpoint:
    """Tracks each probe's lowest validation label loss and its epoch."""

    def __init__(self, circle: Circle, plan: Plan, device: str) -> None:
        import torch

        asked = np.flatnonzero(plan.validation.any(0))
        self._parts = circle.parts(asked)
        self._push, self._pull = (torch.from_numpy(part[:, asked]).to(device) for part in (plan.label_push, plan.label_pull))
        self._count = torch.from_numpy(plan.validation.sum(1)[plan.split_of].astype(np.float32)).to(device)  # [C]
        shape = (len(circle.centre), len(plan.split_of))
        self.loss = torch.full(shape, float("inf"), device=device)
        self.epoch = torch.zeros(shape, dtype=torch.int64, device=device)

    def improved(self, heads: Heads, epoch: int) -> "Tensor":
        import torch

        with torch.no_grad():
            total = torch.zeros_like(self.loss)
            for own, rows in self._parts:
                z = heads.logits(rows)  # [F, C, v]
                total += (self._push[:, own] * torch.nn.functional.softplus(z) - self._pull[:, own] * z).sum(-1)
            loss = total / self._count
            better: Tensor = loss < self.loss
            self.loss = torch.where(better, loss, self.loss)
            self.epoch = torch.where(better, epoch, self.epoch)
            return better


def _all_logits(circle: Circle, count: int, heads: Heads) -> Floats:
    """Logits of the kept weights for every row, including those that do not count."""
    import torch

    logits = np.empty((*heads.mean.shape[:2], count), dtype=np.float32)
    with torch.no_grad():
        for numbers, rows in circle.everything():
            logits[..., numbers] = heads.logits(rows, best=True).cpu().numpy()
    return logits


def _wrap(part: Floats, size: int, device: str) -> "Tensor":
    """[..., m] -> [..., m + size], closing the circle of rows."""
    import torch

    return torch.from_numpy(np.concatenate([part, part[..., :size]], -1)).to(device)


class AdamW:
    """AdamW in its plain form (decoupled weight decay, bias correction), for tensors that all probes share.

    The same update as `torch.optim.AdamW` with its defaults, as a test verifies; written out because that class imports
    torch's compiler on its first step, which takes four seconds, too long for a small study.
    """

    def __init__(self, parameters: Sequence["Tensor"], learning_rate: float, weight_decay: float) -> None:
        import torch

        self._parameters = list(parameters)
        self._rate, self._decay = learning_rate, weight_decay
        self._mean = [torch.zeros_like(part) for part in self._parameters]
        self._square = [torch.zeros_like(part) for part in self._parameters]
        self._steps = 0

    def step(self) -> None:
        """Move every tensor by its gradient, and forget the gradient."""
        import torch

        self._steps += 1
        corrections = [1.0 - beta**self._steps for beta in BETAS]
        with torch.no_grad():
            for part, mean, square in zip(self._parameters, self._mean, self._square, strict=True):
                assert part.grad is not None
                mean.lerp_(part.grad, 1.0 - BETAS[0])
                square.mul_(BETAS[1]).addcmul_(part.grad, part.grad, value=1.0 - BETAS[1])
                part.mul_(1.0 - self._rate * self._decay)
                part.addcdiv_(mean, square.sqrt().div_(corrections[1] ** 0.5).add_(EPSILON), value=-self._rate / corrections[0])
                part.grad = None
