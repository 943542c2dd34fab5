"""What every condition reads at each row of a study, and the model's states for it; each text is computed once and stored.

Inputs of one trace go through the model together, so that they share all common prefixes. Two conditions that read the same text at a
point share one vector. States that do not fit in memory stay in the workspace.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pamer_lab.errors import InputError
from pamer_lab.features.extract import estimate, extract
from pamer_lab.features.store import FeatureStore, StoredStates, layer_names
from pamer_lab.features.values import Estimate, FeatureSet, OnProgress, Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.circle import States as InParts
from pamer_lab.probes.readout import Floats
from pamer_lab.studies.bank import STATES_MEMORY
from pamer_lab.studies.compact.hidden_bank import BASE
from pamer_lab.studies.compact.points import Counts, DecisionPoint, decision_points
from pamer_lab.studies.compact.rows import Rows, taken
from pamer_lab.studies.compact.values import Blocks, Condition, Reading, Resources
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.recorded import recorded_of
from pamer_lab.trajectory.values import Trace

POOLING = "last"
"""Decisions are read at the last token."""

Cost = dict[str, float]
"""Tokens computed, inputs that were in the workspace, seconds; bytes of states that stay there and are read in parts, if any."""
Key = tuple[str, int, tuple[int, ...], str]
"""Lineage (the trace, and how often its history was rebuilt), decision point (-1 without a hint), blocks, hint."""


@dataclass
class Readings:
    """What each condition reads at each row; chosen once, before any model pass."""

    traces: Mapping[str, Trace]
    decisions: Decisions
    resources: Resources
    points: tuple[DecisionPoint, ...] = ()
    _of: dict[str, list[Reading]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted: dict[str, list[int]] = {}
        for trace_id, t in self.decisions.keys:
            wanted.setdefault(trace_id, []).append(t)
        made = {(trace_id, point.t): point for trace_id, own in wanted.items() for point in self.decision_points(trace_id, own)}
        self.points = tuple(made[key] for key in self.decisions.keys)

    def decision_points(self, trace_id: str, turns: Iterable[int]) -> list[DecisionPoint]:
        """Points of one trace, with the history that the decisions are about."""
        return decision_points(self.traces[trace_id], turns, self.decisions.history)

    def of(self, condition: Condition) -> list[Reading]:
        """What a condition reads, row by row."""
        if condition.name not in self._of:
            self._of[condition.name] = [condition.read(point, self.resources) for point in self.points]
        return self._of[condition.name]


class States:
    """The vectors of a study; a `Material` for the conditions."""

    def __init__(
        self,
        readings: Readings,
        model: FrozenModel,
        store: FeatureStore | None,
        layer: str = "final",
        probe_prompt: str = "",
        memory: int = STATES_MEMORY,
    ) -> None:
        self.readings = readings
        self.points = readings.points
        self.layer = layer
        """The layer from which states are taken."""
        self._model = model
        self._store = store
        self._probe_prompt = probe_prompt
        self._memory = memory
        """Maximum bytes of states in memory; without a store, all are."""
        self._texts: Rows = np.zeros((0, model.width), dtype=np.float32)
        self._number: dict[Key, int] = {}
        """Position of each text among these states."""
        self._cut: set[Key] = set()
        """Texts over the model's limit."""
        self._history: dict[str, list[DecisionPoint]] = {}
        """Per trace, every decision point up to its last row; each one stores the state of a block."""
        for point in self.points:
            known = self._history.setdefault(point.trace_id, [])
            if point.t > len(known):
                known += readings.decision_points(point.trace_id, range(len(known) + 1, point.t + 1))

    @property
    def counts(self) -> Counts:
        return self.readings.resources.counts

    @property
    def folder(self) -> Path | None:
        """The workspace, if states are stored in one."""
        return self._store.folder if self._store else None

    def requests(self, conditions: Sequence[Condition]) -> dict[Key, Request]:
        """One request per different text, trace by trace."""
        wanted: dict[str, dict[Key, Request]] = {trace_id: {} for trace_id in self._history}
        for condition in conditions:
            for point, reading in zip(self.points, self.readings.of(condition), strict=True):
                self._add(wanted, point, reading)
        if any("states" in condition.needs for condition in conditions):
            for history in self._history.values():
                for point in history:
                    self._add(wanted, point, BASE.read(point, self.readings.resources))
        return {key: request for of_trace in wanted.values() for key, request in of_trace.items()}

    def forecast(self, conditions: Sequence[Condition], layers: str | Sequence[str] = "", known: frozenset[str] = frozenset()) -> Estimate:
        """What computing these conditions would take; without `layers`, at the study's layer."""
        requests = list(self.requests(conditions).values())
        return estimate(requests, self._model, layers=layers or self.layer, poolings=[POOLING], store=self._store, known=known)

    def all_layers(
        self, conditions: Sequence[Condition], progress: OnProgress | None = None
    ) -> tuple[Floats | InParts, tuple[str, ...], Cost]:
        """The first condition at every layer, [layers, n, d]; the others are computed along with it and stored in the workspace."""
        requests = self.requests(conditions)
        found, states = self._extract(requests, "all", progress)
        number = {key: row for row, key in enumerate(requests)}
        return taken(states, np.array([number[key] for key in self._keys(conditions[0])])), found.layers, _cost(found, states)

    def compute(self, conditions: Sequence[Condition], progress: OnProgress | None = None) -> Cost:
        """The states of these conditions at the study's layer."""
        requests = self.requests(conditions)
        found, states = self._extract(requests, self.layer, progress)
        self._texts = states[0] if isinstance(states, np.ndarray) else states
        self._number = {key: number for number, key in enumerate(requests)}
        self._cut.update(key for key, point in zip(requests, found.points, strict=True) if point.left_out)
        return _cost(found, states)

    def _extract(
        self, requests: Mapping[Key, Request], layer: str, progress: OnProgress | None
    ) -> tuple[FeatureSet, Floats | StoredStates]:
        """The extraction's result, and the states [layers, texts, d]; `layer` may be `all`."""
        layers = layer_names(self._model) if layer == "all" else (layer,)
        store = self._store if 4 * len(requests) * len(layers) * self._model.width > self._memory else None
        found = extract(
            list(requests.values()),
            self._model,
            layers=layers,
            poolings=[POOLING],
            store=self._store,
            progress=progress,
            hold=store is None,
        )
        if store is None:
            return found, found.vectors[:, :, 0].transpose(1, 0, 2)
        return found, StoredStates(store, found.keys, tuple(f"{name}_{POOLING}" for name in found.layers), self._memory)

    def over_the_limit(self, condition: Condition) -> int:
        """Number of rows at which the model skipped the middle of a condition's text because of its input limit."""
        return sum(key in self._cut for key in self._keys(condition))

    def vectors(self, condition: Condition) -> Rows:
        keys = self._keys(condition)
        if any(key not in self._number for key in keys):
            raise InputError(f"the states of {condition.name!r} were not computed")
        return self._of(keys)

    def stored(self) -> Blocks:
        resources = self.readings.resources
        states = self._of([text_key(point, BASE.read(point, resources)) for history in self._history.values() for point in history])
        starts = np.cumsum([0, *(len(history) for history in self._history.values())])
        number = {trace_id: place for place, trace_id in enumerate(self._history)}
        return Blocks(states, starts, np.array([(number[point.trace_id], point.t) for point in self.points], dtype=np.int64))

    def _of(self, keys: Sequence[Key]) -> Rows:
        return taken(self._texts, np.array([self._number[key] for key in keys]))

    def _keys(self, condition: Condition) -> list[Key]:
        return [text_key(point, reading) for point, reading in zip(self.points, self.readings.of(condition), strict=True)]

    def _add(self, wanted: dict[str, dict[Key, Request]], point: DecisionPoint, reading: Reading) -> None:
        trace = self.readings.traces[point.trace_id]
        key = text_key(point, reading)
        if key not in wanted[point.trace_id]:
            request = Request(
                trace.messages,
                trace.tools,
                [point.t],
                point.indices(reading.blocks),
                reading.hint,
                point.trace_id,
                probe_prompt=self._probe_prompt,
                recorded=recorded_of(trace, self.readings.decisions.history),
            )
            wanted[point.trace_id][key] = request


def text_key(point: DecisionPoint, reading: Reading) -> Key:
    """The cache key of a text; without a hint it does not depend on the turn."""
    return point.lineage, -1 if reading.hint == "none" else point.t, reading.blocks, reading.hint


def _cost(found: FeatureSet, states: Floats | StoredStates) -> Cost:
    streamed = {} if isinstance(states, np.ndarray) else {"streamed_bytes": 4 * math.prod(states.shape)}
    return {"tokens_computed": found.tokens_computed, "cache_hits": found.cache_hits, "seconds": round(found.seconds, 3), **streamed}
