"""The forward pass of fitted heads in numpy: a linear map, or one hidden GELU layer, on a standardised vector.

Needs no torch, because the controller uses it at every turn.
Invariant: a head stack computes the same function that the grid trained, with the training split's mean and scale applied first.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

Capacity = Literal["linear", "mlp"]
"""`linear`: one weight per feature. `mlp`: one hidden layer of width 256 with GELU."""

MLP_WIDTH = 256


@dataclass(frozen=True)
class HeadStack:
    """Several heads of one capacity that read the same vector."""

    mean: Floats
    """[heads, d], of the training split."""
    scale: Floats
    """[heads, d], of the training split; never zero."""
    weight: Floats
    """Linear: [heads, d]. MLP: [heads, width], the output layer."""
    bias: Floats
    """[heads]."""
    hidden_weight: Floats | None = None
    """MLP only: [heads, width, d]."""
    hidden_bias: Floats | None = None
    """MLP only: [heads, width]."""

    @property
    def capacity(self) -> Capacity:
        return "linear" if self.hidden_weight is None else "mlp"

    @property
    def count(self) -> int:
        return int(self.mean.shape[0])

    @property
    def width(self) -> int:
        """Width of the vector the heads read."""
        return int(self.mean.shape[1])

    def logits(self, vectors: npt.NDArray[Any]) -> Floats:
        """[d] -> [heads], or [n, d] -> [n, heads]."""
        standard = (vectors.astype(np.float32)[..., None, :] - self.mean) / self.scale  # [..., heads, d]
        if self.hidden_weight is None:
            inner = standard
        else:
            assert self.hidden_bias is not None
            inner = gelu(np.einsum("...hd,hwd->...hw", standard, self.hidden_weight, optimize=True) + self.hidden_bias)
        return np.asarray((inner * self.weight).sum(-1) + self.bias, dtype=np.float32)

    def fault(self) -> str:
        """What is wrong with the tensors, in words; empty if they are valid heads."""
        if self.mean.ndim != 2 or not self.mean.size:
            return f"mean has the shape {self.mean.shape}, not (heads, width)"
        if (self.hidden_weight is None) != (self.hidden_bias is None):
            return "hidden_weight and hidden_bias must come together"
        inner = (self.width,) if self.hidden_weight is None else self.hidden_weight.shape[1:2]
        wanted = {"scale": self.mean.shape, "weight": (self.count, *inner), "bias": (self.count,)}
        wanted |= {"hidden_weight": (self.count, *inner, self.width), "hidden_bias": (self.count, *inner)}
        for name, value in self.tensors().items():
            if value.shape != wanted.get(name, self.mean.shape):
                return f"{name} has the shape {value.shape}, and {self.count} heads of width {self.width} need {wanted[name]}"
            if not np.isfinite(value).all():
                return f"{name} holds values that are not finite"
        return "" if (self.scale > 0).all() else "scale holds values that are not above zero"

    def tensors(self) -> dict[str, Floats]:
        """The tensors by name, as the artefact stores them."""
        named = {"mean": self.mean, "scale": self.scale, "weight": self.weight, "bias": self.bias}
        if self.hidden_weight is not None and self.hidden_bias is not None:
            named |= {"hidden_weight": self.hidden_weight, "hidden_bias": self.hidden_bias}
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in named.items()}


def gelu(value: Floats) -> Floats:
    """GELU by the error function, as torch computes it by default."""
    from scipy.special import erf

    return np.asarray(0.5 * value * (1.0 + erf(value / np.float32(np.sqrt(2.0)))), dtype=np.float32)


def sigmoid(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Probabilities without overflow at either end."""
    wide = np.asarray(logits, dtype=np.float64)
    small = np.exp(-np.abs(wide))
    return np.asarray(np.where(wide >= 0, 1.0, small) / (1.0 + small), dtype=np.float64)


def logit(probability: npt.NDArray[Any] | float) -> npt.NDArray[np.float64]:
    """Log odds; 0 and 1 give minus and plus infinity."""
    with np.errstate(divide="ignore"):
        wide = np.asarray(probability, dtype=np.float64)
        return np.asarray(np.log(wide) - np.log1p(-wide), dtype=np.float64)
