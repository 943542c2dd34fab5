"""Trees of tokens -> pooled states: the forward passes, each token through the model once.

A run is processed in chunks on a cache of keys and values, with causal attention and no mask. What forks off a run is a branch: short
branches of an attention model are packed into one masked pass after the finished run, each seeing the run only up to its own fork; long
ones follow one by one, deepest first, on the cache truncated to their fork. Layers with a recurrent state cannot be truncated, so there
the chunk ends at the fork, the state is copied, the branch runs, and the copy is restored.
Invariant: the states equal those of one forward pass per input, within float tolerance.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pamer_lab.features.pooling import Enough, Pooler, Rows, Sums
from pamer_lab.features.tree import Run, Tokens
from pamer_lab.models.attention import is_plain, without_mask
from pamer_lab.models.frozen import FrozenModel

PACKED_BRANCH = 96
"""Longest branch, in tokens, that is packed with others."""
PACKED_ROWS = 1024
"""Maximum tokens in a pack: its mask has up to this many rows."""

Emit = Callable[[int, Rows, Rows], None]
"""Receives an input's number, its last states and its means: [layers, width] each."""


@dataclass(frozen=True)
class Beginning:
    """What a model keeps of tokens that many inputs begin with."""

    tokens: Tokens
    saved: list[dict[str, Any]]
    """The cache after them, as `save` gives it."""
    sums: Sums


@dataclass
class Walk:
    """Runs one tree through the model and reports the tokens that were computed."""

    model: FrozenModel
    pooler: Pooler
    emit: Emit
    step: Callable[[int], None]
    """Called after each pass with the tokens it computed; may raise to stop."""
    chunk: int
    recurrent: bool
    cache: Any = field(default=None)

    def tree(self, root: Run) -> None:
        """Compute a tree from its root."""
        alone = not root.forks and len(root.tokens) <= self.chunk
        self.cache = None if alone else self.model.new_cache()
        try:
            self._run(root, np.zeros((1, 1), dtype=np.float64))
        finally:
            self.cache = None

    def beginning(self, tokens: Tokens) -> Beginning:
        """Compute tokens that other inputs begin with."""
        self.cache = self.model.new_cache()
        sums = self._run(Run(0, tokens), np.zeros((1, 1), dtype=np.float64))
        return Beginning(tokens, save(self.cache), sums)

    def after(self, beginning: Beginning, tokens: Tokens) -> None:
        """Compute one input, of which only what follows its beginning is run."""
        start = len(beginning.tokens)
        self.cache = self.model.new_cache()
        restore(self.cache, beginning.saved)
        self._run(Run(start, tokens[start:], [(len(tokens), 0)]), beginning.sums)

    def _run(self, run: Run, base: Sums) -> Sums:
        """Compute a run and what forks off it; the running sums at the run's end."""
        sums = {run.start: base}
        stops = sorted({fork.start for fork in run.forks})
        if self.recurrent and run.start in stops:
            self._branch_now(run, run.start, base)
        place = run.start
        while place < run.end:
            end = min(place + self.chunk, run.end)
            if self.recurrent:
                end = min([end, *(stop for stop in stops if stop > place)])
            self._pass(run, place, end, [stop for stop in stops if place < stop <= end], sums)
            if self.recurrent and end in stops:
                self._branch_now(run, end, sums[end])
            place = end
        if run.forks and not self.recurrent:
            self._branches(run, sums)
        return sums[run.end]

    def _pass(self, run: Run, start: int, end: int, forks: Sequence[int], sums: dict[int, Sums]) -> None:
        """One chunk of a run; records the running sums at its end and at the forks in it."""
        outputs = [(length, index) for length, index in run.ends if start < length <= end]
        marks = sorted({end, *forks, *(length for length, _ in outputs)})
        rows = np.arange(start, end)
        member = rows[None, :] < np.asarray(marks)[:, None]
        last, found = self._forward(run.tokens[start - run.start : end - run.start], rows, [mark - start - 1 for mark in marks], member)
        base = sums[start]
        for mark, row, total in zip(marks, last, found, strict=True):
            sums[mark] = base + total
            for length, index in outputs:
                if length == mark:
                    self.emit(index, row, (sums[mark] / mark).astype(np.float32))
        if start not in (run.start, *(fork.start for fork in run.forks)):
            del sums[start]
        self.step(end - start)

    def _branch_now(self, run: Run, place: int, base: Sums) -> None:
        """All branches at a fork of a run with recurrent layers."""
        saved = save(self.cache)
        for fork in run.forks:
            if fork.start == place:
                self._run(fork, base)
                restore(self.cache, saved)

    def _branches(self, run: Run, sums: dict[int, Sums]) -> None:
        short = [fork for fork in run.forks if not fork.forks and len(fork.tokens) <= PACKED_BRANCH]
        long = [fork for fork in run.forks if fork.forks or len(fork.tokens) > PACKED_BRANCH]
        pack: list[Run] = []
        for fork in [*short, None]:
            if pack and (fork is None or sum(len(item.tokens) for item in pack) + len(fork.tokens) > min(PACKED_ROWS, self.chunk)):
                self._pack(pack, run.end, sums)
                pack = []
            if fork is not None:
                pack.append(fork)
        for fork in sorted(long, key=lambda item: -item.start):
            crop(self.cache, fork.start)
            self._run(fork, sums[fork.start])

    def _pack(self, branches: Sequence[Run], length: int, sums: dict[int, Sums]) -> None:
        """Several branches in one pass after a finished run of `length` tokens."""
        owner = np.concatenate([np.full(len(item.tokens), number) for number, item in enumerate(branches)])
        positions = np.concatenate([np.arange(item.start, item.end) for item in branches])
        starts = np.asarray([item.start for item in branches])[owner]
        same = (owner[:, None] == owner[None, :]) & (positions[:, None] >= positions[None, :])
        mask = np.concatenate([np.arange(length)[None, :] < starts[:, None], same], axis=1)
        marks = [(number, stop, index) for number, item in enumerate(branches) for stop, index in item.ends]
        member = np.stack([(owner == number) & (positions < stop) for number, stop, _ in marks])
        rows = [int(np.flatnonzero(chosen)[-1]) for chosen in member]
        last, found = self._forward(np.concatenate([item.tokens for item in branches]), positions, rows, member, mask)
        crop(self.cache, length)
        for (number, stop, index), row, total in zip(marks, last, found, strict=True):
            self.emit(index, row, ((sums[branches[number].start] + total) / stop).astype(np.float32))
        self.step(len(owner))

    def _forward(self, tokens: Any, positions: Any, last: Sequence[int], member: Any, mask: Any = None) -> tuple[Rows, Sums]:
        import torch

        model = self.model
        self.pooler.expect(last, member)
        given = {}
        if mask is not None:
            dtype = getattr(torch, model.dtype)
            allowed = torch.as_tensor(mask, device=model.device)
            given["attention_mask"] = torch.zeros(mask.shape, dtype=dtype, device=model.device).masked_fill_(
                ~allowed, torch.finfo(dtype).min
            )[None, None]
        plain = mask is None and is_plain(model.decoder.config)
        with torch.inference_mode(), suppress(Enough), without_mask(model.decoder.config) if plain else nullcontext():
            model.decoder(
                input_ids=torch.as_tensor(np.asarray(tokens, dtype=np.int64), device=model.device)[None],
                position_ids=torch.as_tensor(np.asarray(positions, dtype=np.int64), device=model.device)[None],
                past_key_values=self.cache,
                use_cache=self.cache is not None,
                **given,
            )
        return self.pooler.collect()


def crop(cache: Any, length: int) -> None:
    """Cut an attention cache back to its first tokens; layers that no pass has reached are empty."""
    for layer in cache.layers:
        if layer.get_seq_length():
            layer.crop(min(0, length - layer.get_seq_length()))


def save(cache: Any) -> list[dict[str, Any]]:
    """The state of every layer, which can be restored many times."""
    return [_copied(vars(layer)) for layer in cache.layers]


def restore(cache: Any, saved: list[dict[str, Any]]) -> None:
    """Put a saved state back."""
    for layer, state in zip(cache.layers, saved, strict=True):
        vars(layer).clear()
        vars(layer).update(_copied(state))


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    """Recurrent layers keep their tensors in dictionaries and change them in place, so those are copied; keys and values of
    attention layers are replaced, never changed, so a reference is enough."""
    return {
        name: {key: item.clone() if hasattr(item, "clone") else item for key, item in value.items()} if isinstance(value, dict) else value
        for name, value in state.items()
    }
