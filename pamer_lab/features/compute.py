"""Runs one conversation's inputs through the model, in smaller chunks if memory runs out.

The chunk is then halved, for this and all later work of the model, and the conversation starts again without the
inputs that were finished. At the smallest chunk it raises a `ProbeError` with the numbers.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from pamer_lab.errors import ProbeError
from pamer_lab.features.passes import Beginning, Emit, Walk
from pamer_lab.features.pooling import Pooler, Rows
from pamer_lab.features.serialise import Tokens
from pamer_lab.features.tree import Run, build
from pamer_lab.models.frozen import FrozenModel

SMALLEST_CHUNK = 64
RECURRENT_SHARE = 16
"""Minimum number of tokens worth a snapshot of recurrent states."""
Result = TypeVar("Result")


class Computation:
    """Runs inputs through one model for some of its layers."""

    def __init__(self, model: FrozenModel, layers: Sequence[int]) -> None:
        self._model = model
        self._layers = list(layers)
        self._recurrent = model.recurrent()
        boundary = model.tokenizer.convert_tokens_to_ids("<|im_start|>")
        self._boundary = boundary if isinstance(boundary, int) else -1

    def plan(self, inputs: Sequence[Tokens]) -> int:
        """How many tokens the inputs need together."""
        return sum(run.size() for run in self._trees(inputs))

    def run(self, inputs: Sequence[Tokens], emit: Emit, step: Callable[[int], None]) -> None:
        """Compute all inputs; `emit` receives each one's number, last states and means."""
        waiting = list(range(len(inputs)))

        def attempt() -> None:
            finished: set[int] = set()
            try:
                self._attempt([inputs[number] for number in waiting], [*waiting], emit, step, finished)
            finally:
                waiting[:] = [number for number in waiting if number not in finished]

        self._halving(attempt, lambda: max(len(inputs[number]) for number in waiting))

    def beginning(self, tokens: Tokens) -> Beginning:
        """What the model keeps of tokens that many inputs begin with."""
        return self._halving(lambda: self._walked(lambda walk: walk.beginning(tokens)), lambda: len(tokens))

    def after(self, beginning: Beginning, tokens: Tokens) -> tuple[Rows, Rows]:
        """Last states and means of one input, [layers, width] each; only what follows its beginning is run."""
        found: list[tuple[Rows, Rows]] = []

        def take(number: int, last: Rows, mean: Rows) -> None:
            found.append((last, mean))

        self._halving(lambda: self._walked(lambda walk: walk.after(beginning, tokens), take), lambda: len(tokens))
        return found[-1]

    def _walked(self, work: Callable[[Walk], Result], emit: Emit = lambda number, last, mean: None) -> Result:
        with Pooler(self._model, self._layers) as pooler:
            return work(Walk(self._model, pooler, emit, lambda count: None, self._model.chunk, self._recurrent))

    def _halving(self, work: Callable[[], Result], longest: Callable[[], int]) -> Result:
        """Run `work`, again with a smaller chunk whenever memory runs out."""
        import torch

        while True:
            try:
                return work()
            except torch.OutOfMemoryError as error:
                self._smaller(error, longest())

    def _attempt(self, inputs: Sequence[Tokens], numbers: list[int], emit: Emit, step: Callable[[int], None], finished: set[int]) -> None:
        def done(number: int, last: Rows, mean: Rows) -> None:
            finished.add(numbers[number])
            emit(numbers[number], last, mean)

        with Pooler(self._model, self._layers) as pooler:
            walk = Walk(self._model, pooler, done, step, self._model.chunk, self._recurrent)
            for root in self._trees(inputs):
                walk.tree(root)

    def _trees(self, inputs: Sequence[Tokens]) -> list[Run]:
        share = RECURRENT_SHARE if self._recurrent else 1
        return build([np.asarray(tokens) for tokens in inputs], min_share=share, boundary=self._boundary)

    def _smaller(self, error: Exception, longest: int) -> None:
        import torch

        model = self._model
        if model.device.startswith("cuda"):
            torch.cuda.empty_cache()
        if model.chunk // 2 < SMALLEST_CHUNK:
            raise ProbeError(
                f"{model.name} ran out of memory on {model.device} with an input of {longest:,} tokens, even in chunks of "
                f"{model.chunk}{_memory(model.device)}; use a smaller probe_limit or another device"
            ) from error
        model.chunk //= 2


def _memory(device: str) -> str:
    import torch

    if not device.startswith("cuda") or not torch.cuda.is_available():
        return ""
    free, total = torch.cuda.mem_get_info(device)
    return f" ({free / 1e9:.1f} of {total / 1e9:.1f} GB free)"
