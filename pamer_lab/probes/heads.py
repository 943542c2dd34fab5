"""Batched heads in training: all probes of a tile as one set of tensors (torch).

`LinearHeads` and `MlpHeads` differ only in their forward pass. Standardisation is folded into the first layer, so that probes of
different seeds read the same rows: w . (x - m) / s = (w / s) . x - (w / s) . m. Initial weights depend only on the seed and the shapes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pamer_lab.probes.readout import Capacity

if TYPE_CHECKING:
    from torch import Tensor


class Heads(Protocol):
    """F feature sets x C columns of probes."""

    mean: "Tensor"
    """[F, C, d]"""
    scale: "Tensor"
    """[F, C, d]"""
    parameters: list["Tensor"]
    best: list["Tensor"]
    """The kept weights, in the order of `HeadStack`: output weight, output bias, and for the MLP hidden weight and bias."""

    def logits(self, rows: "Tensor", *, best: bool = False) -> "Tensor":
        """[F, B, d] -> [F, C, B]."""
        ...

    def keep(self, which: "Tensor") -> None:
        """Keep the present weights of the probes marked in [F, C]."""
        ...


class _Base:
    def __init__(self, mean: "Tensor", scale: "Tensor", start: list["Tensor"]) -> None:
        self.mean, self.scale = mean, scale
        self.parameters = [part.expand(mean.shape[0], *part.shape).contiguous().to(mean.device).requires_grad_() for part in start]
        self.best = [part.detach().clone() for part in self.parameters]

    def keep(self, which: "Tensor") -> None:
        for kept, now in zip(self.best, self.parameters, strict=True):
            mask = which.reshape(*which.shape, *([1] * (now.dim() - which.dim())))
            kept.copy_(now.detach().where(mask, kept))


class LinearHeads(_Base):
    """One weight per feature."""

    def logits(self, rows: "Tensor", *, best: bool = False) -> "Tensor":
        weight, bias = self.best if best else self.parameters  # [F, C, d], [F, C]
        folded = weight / self.scale
        offset = bias - (folded * self.mean).sum(-1)
        return folded @ rows.transpose(1, 2) + offset[..., None]


class MlpHeads(_Base):
    """One hidden layer with GELU."""

    def logits(self, rows: "Tensor", *, best: bool = False) -> "Tensor":
        import torch

        weight, bias, hidden_weight, hidden_bias = self.best if best else self.parameters
        folded = hidden_weight / self.scale[:, :, None]  # [F, C, w, d]
        offset = hidden_bias - (folded @ self.mean[..., None])[..., 0]  # [F, C, w]
        inner = folded.flatten(1, 2) @ rows.transpose(1, 2)  # [F, C * w, B]
        inner = torch.nn.functional.gelu(inner.view(*offset.shape, -1) + offset[..., None])
        return (weight[:, :, None] @ inner)[:, :, 0] + bias[..., None]


def make_heads(capacity: Capacity, mean: "Tensor", scale: "Tensor", seeds: Sequence[int], width: int) -> Heads:
    """Heads with initial weights: uniform within 1 / sqrt(inputs), as torch initialises a linear layer."""
    import torch

    inputs = mean.shape[-1]

    def start(seed: int) -> list["Tensor"]:
        draw = torch.Generator().manual_seed(seed)

        def uniform(fan_in: int, *shape: int) -> "Tensor":
            drawn: Tensor = (torch.rand(shape, generator=draw) * 2 - 1) / fan_in**0.5
            return drawn

        if capacity == "linear":
            return [uniform(inputs, inputs), uniform(inputs)]
        hidden = [uniform(inputs, width, inputs), uniform(inputs, width)]
        return [uniform(width, width), uniform(width), *hidden]

    known = {seed: start(seed) for seed in set(seeds)}
    stacked = [torch.stack(parts) for parts in zip(*(known[seed] for seed in seeds), strict=True)]
    return LinearHeads(mean, scale, stacked) if capacity == "linear" else MlpHeads(mean, scale, stacked)
