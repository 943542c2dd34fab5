"""AdamW in its plain form (decoupled weight decay, bias correction), for tensors that all probes share.

The same update as `torch.optim.AdamW` with its defaults, which a test compares; written out because that class imports torch's
compiler on its first step, four seconds that a small study does not have.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class AdamW:
    """One optimiser for a list of tensors with gradients."""

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
