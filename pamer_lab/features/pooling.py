"""Pooling inside forward hooks: a long input's hidden states are never stored, only sums and single rows.

For each forward pass the caller names its marks: a mark is a row whose state is wanted (`last`) together with the rows to sum (`mean`, as
a running sum). A hook on each wanted block and on the final norm multiplies the marks' 0/1 matrix with the block's output and drops the
output. The model is not run past the deepest wanted block. Sums are at least float32, whatever the model computes in.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.models.frozen import FrozenModel

Sums = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
POOLINGS = ("last", "mean")
"""The last token's state, and the mean over all of the input."""


class Enough(Exception):
    """The deepest wanted block has been read: the pass needs no more of the model."""


class Pooler:
    """Hooks on a model's blocks, in place while it is used as a context manager."""

    def __init__(self, model: FrozenModel, layers: Sequence[int]) -> None:
        self._model = model
        self._layers = list(layers)
        """Block numbers from 0; the number of blocks means the final norm."""
        self._handles: list[Any] = []
        self._last: Any = None
        self._member: Any = None
        self._found: dict[int, tuple[Any, Any]] = {}

    def __enter__(self) -> "Pooler":
        modules = [*self._model.blocks, self._model.norm]
        for layer in self._layers:
            self._handles.append(modules[layer].register_forward_hook(self._hook(layer)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def expect(self, last: Sequence[int], member: npt.NDArray[np.bool_]) -> None:
        """Name the marks of the coming pass: row numbers [m], and which rows each mark adds up [m, rows]."""
        import torch

        device = self._model.device
        self._found = {}
        self._last = torch.as_tensor(np.asarray(last, dtype=np.int64), device=device)
        self._member = torch.as_tensor(member.astype(np.float32), device=device)

    def collect(self) -> tuple[Rows, Sums]:
        """States and sums of the marks of the last pass: [m, layers, width] each."""
        import torch

        last = torch.stack([self._found[layer][0] for layer in self._layers], dim=1)
        sums = torch.stack([self._found[layer][1] for layer in self._layers], dim=1)
        self._found = {}
        return last.cpu().numpy(), sums.cpu().numpy().astype(np.float64)

    def _hook(self, layer: int) -> Any:
        deepest = max(self._layers)

        def pool(module: Any, inputs: Any, output: Any) -> None:
            hidden = (output[0] if isinstance(output, tuple) else output)[0].float()  # [rows, width]
            self._found[layer] = (hidden[self._last], self._member @ hidden)
            if layer == deepest < len(self._model.blocks) - 1:
                raise Enough

        return pool
