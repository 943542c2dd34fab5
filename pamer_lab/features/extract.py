"""Requests -> a `FeatureSet`: what the store has is read, the rest is computed, each token once.

Requests over the same conversation are computed together, so that their contexts share what they have in common. Inputs are
serialised twice, once to find their keys and once to compute what is missing, so that only one conversation's tokens are in
memory at a time. Finished vectors reach the store while the run continues, also when it is cancelled or fails.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import Cancelled, UnknownNameError
from pamer_lab.features.compute import Computation
from pamer_lab.features.contexts import Context, context_name
from pamer_lab.features.elsewhere import conversations, elsewhere
from pamer_lab.features.inputs import inputs_of, points_of, whole_inputs_of
from pamer_lab.features.pace import ENOUGH, remember, watch_of
from pamer_lab.features.pooling import POOLINGS
from pamer_lab.features.serialise import Hint, Tokens, serialiser_for, truncated
from pamer_lab.features.store import FeatureStore, Vectors, content_key, layer_names
from pamer_lab.features.values import Cancel, Estimate, FeatureSet, OnProgress, Point, Request, trace_requests
from pamer_lab.jobs import Progress
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.recorded import History
from pamer_lab.trajectory.values import Message, Tool, Trace
from pamer_lab.workspace import Workspace

FLUSH_SECONDS = 20.0
FLUSH_ROWS = 256
"""Finished vectors are stored once they are this old or this many."""


def extract(
    requests: Sequence[Request],
    model: FrozenModel,
    *,
    layers: str | Sequence[str] = "all",
    poolings: Sequence[str] = POOLINGS,
    store: FeatureStore | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
    hold: bool = True,
) -> FeatureSet:
    """Vectors of all requested points, in their order; without `hold` they are left in the store, and the set has none."""
    started = time.perf_counter()
    plan = _Plan(model, layers, poolings, requests, hold=hold or store is None)
    hits = plan.fill(store)
    work = plan.missing()
    computation = Computation(model, plan.layer_numbers)
    total = sum(computation.plan([item.tokens for item in group]) for group in plan.groups(work))
    done = naive = 0
    if store is not None and work and (place := elsewhere()) is not None:
        naive = sum(plan.points[index].tokens for index in plan.first_rows(work))
        done = place.fill(plan.asking(work), plan.layers, plan.poolings, total, progress)
        plan.fill(store)
        work = plan.missing()

    def step(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(_progress(done, max(total, done), time.perf_counter() - started, hits / len(plan.points)))
        if cancel and cancel():
            raise Cancelled("extraction was stopped; what was finished is kept")

    writer, watch = _Writer(plan, store), watch_of(model)
    try:
        for group in plan.groups(work):
            computation.run([item.tokens for item in group], partial(writer.add, group), step)
    finally:
        if store is not None and done >= ENOUGH and not naive:
            remember(store.folder, model, blocks=done * plan.depth / watch())
        writer.flush()
    return FeatureSet(
        vectors=plan.vectors,
        layers=plan.layers,
        poolings=plan.poolings,
        points=tuple(plan.points),
        keys=tuple(plan.keys),
        tokens_computed=done,
        tokens_naive=naive or sum(plan.points[index].tokens for index in plan.first_rows(work)),
        seconds=time.perf_counter() - started,
        cache_hits=hits,
    )


def _progress(done: int, total: int, seconds: float, there: float) -> Progress:
    left = (total - done) * seconds / done if done else None
    return Progress(done=done, total=total, what="tokens", seconds=seconds, seconds_left=left, there=there)


def estimate(
    requests: Sequence[Request],
    model: FrozenModel,
    *,
    layers: str | Sequence[str] = "all",
    poolings: Sequence[str] = POOLINGS,
    store: FeatureStore | None = None,
    known: frozenset[str] = frozenset(),
) -> Estimate:
    """What `extract` would compute for these requests, without the inputs in `known`."""
    plan = _Plan(model, layers, poolings, requests, hold=False)
    plan.fill(store)
    inputs, work = plan.rows.keys() - known, plan.missing() - known
    computation = Computation(model, plan.layer_numbers)
    return Estimate(
        inputs=len(inputs),
        cached=len(inputs) - len(work),
        tokens=sum(computation.plan([item.tokens for item in group]) for group in plan.groups(work)),
        tokens_naive=sum(plan.points[index].tokens for index in plan.first_rows(work)),
        missing=frozenset(work),
        depth=plan.depth,
    )


def extract_traces(
    traces: Sequence[Trace],
    model: FrozenModel,
    contexts: Sequence[Context] = ("full", "recent2"),
    hint: Hint = "none",
    *,
    layers: str | Sequence[str] = "all",
    poolings: Sequence[str] = POOLINGS,
    workspace: Workspace | str | Path | None = None,
    probe_prompt: str = "",
    history: History = "full",
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> FeatureSet:
    """All decision points of some traces; kept in the workspace if one is given."""
    place = workspace if workspace is None or isinstance(workspace, Workspace) else Workspace(workspace)
    store = FeatureStore(place.database, model) if place else None
    requests = trace_requests(traces, contexts, hint, probe_prompt, history)
    return extract(requests, model, layers=layers, poolings=poolings, store=store, progress=progress, cancel=cancel)


def state_of(
    messages: Sequence[Message],
    tools: Sequence[Tool],
    model: FrozenModel,
    hint: Hint = "none",
    layer: str = "final",
    pooling: str = "last",
    store: FeatureStore | None = None,
    *,
    active_tokens: int | None = None,
    probe_prompt: str = "",
) -> npt.NDArray[np.float32]:
    """The state of one input, as the controller needs it: [width]."""
    request = Request(messages, tools, hint=hint, active_tokens=active_tokens, probe_prompt=probe_prompt)
    found: Vectors = extract([request], model, layers=[layer], poolings=[pooling], store=store).of(layer, pooling)[0]
    return found


@dataclass(frozen=True)
class _Item:
    """One input to compute, and the key of its vectors."""

    key: str
    tokens: Tokens


class _Plan:
    """Which points there are, which columns are wanted, and where the vectors go."""

    def __init__(
        self, model: FrozenModel, layers: str | Sequence[str], poolings: Sequence[str], requests: Sequence[Request], *, hold: bool = True
    ) -> None:
        known = layer_names(model)
        listed = known if layers == "all" else (layers,) if isinstance(layers, str) else tuple(layers)
        chosen = [name.replace(":", "_") for name in listed]  # heads on disk write `block:K`
        for kind, names, valid in (("layer", chosen, known), ("pooling", poolings, POOLINGS)):
            wrong = [name for name in names if name not in valid]
            if wrong or not names:
                raise UnknownNameError(kind, wrong[0] if wrong else "", list(valid))
        self.model = model
        self.layers = tuple(chosen)
        self.layer_numbers = [known.index(name) for name in self.layers]
        self.depth = min(max(self.layer_numbers) + 1, model.layers)
        self.poolings = tuple(poolings)
        self.columns = [f"{layer}_{pooling}" for layer in self.layers for pooling in self.poolings]
        self.serialiser = serialiser_for(model)
        self.requests = list(requests)
        self.points: list[Point] = []
        self.keys: list[str] = []
        for request in self.requests:
            for t, whole in whole_inputs_of(request, model, self.serialiser):
                tokens = truncated(whole, model.limit, model.prefix_kept)
                self.points.append(Point(request.name, t, context_name(request.context), len(tokens), len(whole) - len(tokens)))
                self.keys.append(content_key(model, self.serialiser.name, tokens))
        self.hold = hold
        self.vectors: Vectors = np.zeros(
            (len(self.keys) if hold else 0, len(self.layers), len(self.poolings), model.width), dtype=np.float32
        )
        self.rows: dict[str, list[int]] = {}
        for number, key in enumerate(self.keys):
            self.rows.setdefault(key, []).append(number)

    def fill(self, store: FeatureStore | None) -> int:
        """Take from the store what it has; returns how many points that served."""
        self._done: set[str] = set()
        if store is None:
            return 0
        if self.hold:
            found, vectors = store.read(self.keys, self.columns)
            for key, rows in zip(found, vectors, strict=True):
                self.put(key, rows)
        else:
            self._done = store.complete(self.keys, self.columns)
        return sum(len(self.rows[key]) for key in self._done)

    def put(self, key: str, rows: Vectors) -> None:
        """Vectors of one input [columns, width], to every point that waits for it."""
        self._done.add(key)
        if self.hold:
            self.vectors[self.rows[key]] = rows.reshape(len(self.layers), len(self.poolings), -1)

    def missing(self) -> set[str]:
        return {key for key in self.keys if key not in self._done}

    def first_rows(self, work: set[str]) -> list[int]:
        return [self.rows[key][0] for key in work]

    def asking(self, work: set[str]) -> list[Request]:
        """The requests with missing inputs, and all other requests over the same conversation."""
        found: list[Request] = []
        number = 0
        for group in conversations(self.requests):
            count = sum(points_of(request) for request in group)
            if any(key in work for key in self.keys[number : number + count]):
                found += group
            number += count
        return found

    def groups(self, work: set[str]) -> Iterator[list[_Item]]:
        """The missing inputs, conversation by conversation; each input once."""
        seen: set[str] = set()
        number = 0
        for together in conversations(self.requests):
            group: list[_Item] = []
            for request in together:
                count = points_of(request)
                wanted = [self.keys[index] in work and self.keys[index] not in seen for index in range(number, number + count)]
                if any(wanted):
                    for offset, (_, tokens) in enumerate(inputs_of(request, self.model, self.serialiser)):
                        key = self.keys[number + offset]
                        if wanted[offset] and key not in seen:
                            seen.add(key)
                            group.append(_Item(key, tokens))
                number += count
            if group:
                yield group


class _Writer:
    """Puts finished vectors into the plan, and into the store in batches."""

    def __init__(self, plan: _Plan, store: FeatureStore | None) -> None:
        self._plan = plan
        self._store = store
        self._batch: list[tuple[_Item, Vectors]] = []
        self._since = time.perf_counter()

    def add(self, group: Sequence[_Item], number: int, last: Vectors, mean: Vectors) -> None:
        item = group[number]
        by_name = {"last": last, "mean": mean}
        rows = np.stack([by_name[pooling] for pooling in self._plan.poolings], axis=1)  # [layers, poolings, width]
        rows = rows.reshape(-1, rows.shape[-1])
        self._plan.put(item.key, rows)
        if self._store is not None:
            self._batch.append((item, rows))
            if len(self._batch) >= FLUSH_ROWS or time.perf_counter() - self._since > FLUSH_SECONDS:
                self.flush()

    def flush(self) -> None:
        if self._store is not None and self._batch:
            keys = [item.key for item, _ in self._batch]
            self._store.write(
                keys, [len(item.tokens) for item, _ in self._batch], self._plan.columns, np.stack([rows for _, rows in self._batch])
            )
        self._batch = []
        self._since = time.perf_counter()
