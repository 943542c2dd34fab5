"""The states that heads read, one request at a time, or all of a recorded trace ahead.

A live agent's requests come one by one and begin alike: the keys and values of the prefix are kept, and only what follows is run.
A replay knows its requests beforehand: `read_ahead` computes them in one extraction, and `read` then finds them.
Invariant: a state is the same, within float tolerance, whichever way it is computed.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pamer_lab.bounded import Bounded
from pamer_lab.features.compute import Computation
from pamer_lab.features.extract import extract
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.passes import Beginning
from pamer_lab.features.serialise import Serialiser, Tokens, serialiser_for
from pamer_lab.features.store import FeatureStore, content_key, layer_names
from pamer_lab.features.tree import common_prefix
from pamer_lab.features.values import Cancel, OnProgress, Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.values import Message

State = npt.NDArray[np.float32]
STATES_KEPT = 4_096
"""States kept in memory; older ones are in the store, if there is one."""
BEGINNING_TOKENS = 8_192
"""Tokens of all beginnings whose keys and values are kept; the newest is kept whatever its length."""


class StateReader:
    """States of one layer and pooling of one model."""

    def __init__(self, model: FrozenModel, layer: str, pooling: str, store: FeatureStore | None = None) -> None:
        self.model, self._layer, self._pooling, self._store = model, layer, pooling, store
        self._states: Bounded[str, State] = Bounded(STATES_KEPT)
        self._beginnings: list[Beginning] = []
        """Oldest first."""
        self._lock = threading.Lock()
        self.tokens_computed = 0
        """Tokens that went through the model for this reader."""

    @cached_property
    def _serialiser(self) -> Serialiser:
        return serialiser_for(self.model)

    @cached_property
    def _computation(self) -> Computation:
        return Computation(self.model, [layer_names(self.model).index(self._layer)])

    def read_ahead(self, request: Request, progress: OnProgress | None = None, cancel: Cancel | None = None) -> None:
        """Compute the states of all points of a request together; what is stored already is read."""
        with self._lock:
            layers, poolings = [self._layer], [self._pooling]
            found = extract([request], self.model, layers=layers, poolings=poolings, store=self._store, progress=progress, cancel=cancel)
            self.tokens_computed += found.tokens_computed
            self._states.update(zip(found.keys, found.of(self._layer, self._pooling), strict=True))

    def read(self, request: Request) -> State:
        """The state of one request, [width]."""
        tokens = self._tokens(request)
        key = content_key(self.model, self._serialiser.name, tokens)
        with self._lock:
            return self._states.one(key, lambda: self._found(key, tokens, request))

    def _tokens(self, request: Request) -> Tokens:
        return next(tokens for _, tokens in inputs_of(request, self.model, self._serialiser))

    def _found(self, key: str, tokens: Tokens, request: Request) -> State:
        """The state from the store, or computed and put there."""
        column = f"{self._layer}_{self._pooling}"
        if self._store is not None:
            stored, vectors = self._store.read([key], [column])
            if stored:
                found: State = vectors[0, 0]
                return found
        last, mean = self._computation.after(self._beginning(tokens, request), tokens)
        state: State = (last if self._pooling == "last" else mean)[0]
        if self._store is not None:
            self._store.write([key], [len(tokens)], [column], state[None, None])
        return state

    def _beginning(self, tokens: Tokens, request: Request) -> Beginning:
        """What is kept of the request's prefix, computed if it is missing."""
        prefix = self._tokens(replace(request, messages=_prefix(request.messages), hint="none"))
        size = min(common_prefix(prefix, tokens), len(tokens) - 1)
        kept = next((each for each in self._beginnings if np.array_equal(each.tokens, tokens[:size])), None)
        self.tokens_computed += len(tokens) - (size if kept else 0)
        if kept is None:
            kept = self._computation.beginning(tokens[:size])
        self._beginnings = [*(each for each in self._beginnings if each is not kept), kept]
        while len(self._beginnings) > 1 and sum(len(each.tokens) for each in self._beginnings) > BEGINNING_TOKENS:
            self._beginnings.pop(0)
        return kept


def _prefix(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages before the first of the agent's own."""
    return messages[: next((number for number, message in enumerate(messages) if message.role == "assistant"), len(messages))]
