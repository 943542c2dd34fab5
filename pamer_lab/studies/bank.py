"""Feature sets aligned with the rows of a study.

Knows extraction and decisions; computes nothing itself. The workspace caches vectors, so a repeated request needs no model pass.
Invariant: row `i` of a bank is the state at `decisions.keys[i]`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from pamer_lab.counts import counted
from pamer_lab.features.extract import extract
from pamer_lab.features.pooling import POOLINGS
from pamer_lab.features.serialise import Hint
from pamer_lab.features.store import FeatureStore, StoredStates, layer_names
from pamer_lab.features.values import FeatureSet, Request
from pamer_lab.jobs import Progress, Say
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.readout import Floats
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.recorded import recorded_of
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace

STATES_MEMORY = 4_000_000_000
SAY_SECONDS = 10.0
"""Seconds between two progress messages."""


def streamed_sentence(size: float) -> str:
    """A study's message if its states stay in the workspace; `size` in bytes."""
    return f"{size / 1e9:.3g} GB of states are more than --states-memory: probes read them in parts"


@dataclass(frozen=True)
class Bank:
    """Vectors of one context and hint at the decisions of a study."""

    context: str
    hint: str
    layers: tuple[str, ...]
    poolings: tuple[str, ...]
    vectors: Floats
    """[layers, poolings, n, width]; empty if the states are in `stored`."""
    tokens: int
    """Total tokens of this bank's inputs."""
    stored: StoredStates | None = None
    """Layers x poolings, read in parts; None if the states fit in memory."""

    def of(self, layer: str, pooling: str = "last") -> Floats:
        """[n, width]: one layer of all decisions, in memory."""
        if self.stored is not None:
            return self.stored.only([f"{layer}_{pooling}"]).read(0, np.arange(self.stored.shape[1]))
        found: Floats = self.vectors[self.layers.index(layer), self.poolings.index(pooling)]
        return found

    def sets(self, layers: Sequence[str] | None = None, poolings: Sequence[str] | None = None) -> Floats | StoredStates:
        """Feature sets [layers x poolings, n, width]; by default all of them."""
        layers, poolings = layers or self.layers, poolings or self.poolings
        if self.stored is not None:
            return self.stored.only([f"{layer}_{pooling}" for layer in layers for pooling in poolings])
        if tuple(layers) == self.layers and tuple(poolings) == self.poolings:
            return self.vectors.reshape(-1, *self.vectors.shape[2:])
        return np.stack([self.of(layer, pooling) for layer in layers for pooling in poolings])


@dataclass
class BankMaker:
    """Gets banks from the workspace, computing what is missing."""

    traces: Mapping[str, Trace]
    decisions: Decisions
    model: FrozenModel
    workspace: Workspace | None
    say: Say = lambda what: None
    probe_prompt: str = ""
    """Goes before each trace's own system text."""
    memory: int = STATES_MEMORY
    """Maximum bytes of states in memory; if a call has more, its banks leave them in the store."""
    costs: list[dict[str, Any]] = field(default_factory=list)
    """The cost of each call: tokens computed, cache hits, seconds."""
    _said: float = 0.0

    def get(self, context: str, hint: Hint = "none", layers: str | Sequence[str] = "all") -> Bank:
        """The vectors of one context and hint."""
        return self.get_all([(context, hint)], layers)[0]

    def get_all(self, pairs: Sequence[tuple[str, Hint]], layers: str | Sequence[str] = "all") -> list[Bank]:
        """Several contexts and hints in one pass over each trace, so that they share common prefixes."""
        points = {trace_id: [t for _, t in group] for trace_id, group in groupby(self.decisions.keys, key=lambda key: key[0])}
        recorded = {trace_id: recorded_of(self.traces[trace_id], self.decisions.history) for trace_id in points}
        requests = [
            Request(
                self.traces[trace_id].messages,
                self.traces[trace_id].tools,
                own,
                context,
                hint,
                trace_id,
                probe_prompt=self.probe_prompt,
                recorded=recorded[trace_id],
            )
            for trace_id, own in points.items()
            for context, hint in pairs
        ]
        words = ", ".join(f"{context} with hint {hint}" for context, hint in pairs)
        self.say(f"features of {words}: {counted(len(self.decisions), 'decision point')} of {counted(len(points), 'trace')}")
        store = FeatureStore(self.workspace.database, self.model) if self.workspace else None
        count = len(layer_names(self.model)) if layers == "all" else 1 if isinstance(layers, str) else len(layers)
        size = 4 * len(pairs) * len(self.decisions) * count * len(POOLINGS) * self.model.width
        streamed = store is not None and size > self.memory
        found = extract(requests, self.model, layers=layers, store=store, progress=self._progress, hold=not streamed)
        cost = {"tokens_computed": found.tokens_computed, "cache_hits": found.cache_hits, "seconds": round(found.seconds, 3)}
        if streamed:
            self.say(streamed_sentence(size))
            cost["streamed_bytes"] = size
        self.costs.append({"inputs": words, **cost})
        sizes = [len(own) for own in points.values()]
        kept = store if streamed else None
        return [self._bank(found, kept, number, len(pairs), sizes, *pair) for number, pair in enumerate(pairs)]

    def _bank(
        self, found: FeatureSet, store: FeatureStore | None, number: int, step: int, sizes: Sequence[int], context: str, hint: str
    ) -> Bank:
        """The rows of one pair; each trace's points are repeated for every pair, pair after pair."""
        rows: list[int] = []
        start = 0
        for size in sizes:
            rows += range(start + number * size, start + (number + 1) * size)
            start += step * size
        assert [(found.points[row].name, found.points[row].t) for row in rows] == list(self.decisions.keys)
        stored = None
        if store is not None:
            columns = tuple(f"{layer}_{pooling}" for layer in found.layers for pooling in found.poolings)
            stored = StoredStates(store, tuple(found.keys[row] for row in rows), columns, self.memory)
        vectors = np.ascontiguousarray((found.vectors if stored else found.vectors[rows]).transpose(1, 2, 0, 3))
        return Bank(context, hint, found.layers, found.poolings, vectors, sum(found.points[row].tokens for row in rows), stored)

    def _progress(self, progress: Progress) -> None:
        if time.monotonic() - self._said > SAY_SECONDS:
            self._said = time.monotonic()
            self.say(progress)
