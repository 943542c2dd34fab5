"""The real probe: the frozen model's state before the next action, and the trained heads' votes on it.

States are cached in the workspace's feature store, so that policies with the same context, and a replay that continues after a crash,
compute each state once; `read_ahead` computes those of a recorded trace together.
Invariant: heads read only the model they were trained on, and only heads trained for the controller's question vote.
"""

from collections.abc import Sequence
from dataclasses import replace

from pamer_lab.controller.probe import Votes
from pamer_lab.errors import InputError
from pamer_lab.features.serialise import Hint
from pamer_lab.features.states import StateReader
from pamer_lab.features.store import FeatureStore, layer_names
from pamer_lab.features.values import Cancel, OnProgress, Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.artefact import TRAIN, HeadSet
from pamer_lab.trajectory.values import Message, Tool

CONTEXT = "recent2"
"""What the controller shows the heads: the prefix and the two newest complete blocks."""


class HeadsProbe:
    """Five heads on one hidden state."""

    def __init__(self, model: FrozenModel, heads: HeadSet, store: FeatureStore | None = None) -> None:
        self._heads = _require(heads, model)
        self.states = StateReader(model, heads.layer.replace(":", "_"), heads.pooling, store)
        self.name = f"{model.name} {heads.layer} {heads.pooling}"

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        heads = self._heads
        hint: Hint = "faithful" if heads.hint == "faithful" else "none"
        state = self.states.read(Request(messages, tools, hint=hint, active_tokens=active_tokens, probe_prompt=heads.probe_system_prompt))
        return Votes(tuple(float(value) for value in heads.logits(state)), heads.thresholds)

    def read_ahead(self, request: Request, progress: OnProgress | None = None, cancel: Cancel | None = None) -> None:
        """Compute the states of these decision points of a recorded trace together.

        Does nothing for heads that read the context hint: it states the size of the request, which depends on earlier decisions.
        """
        if self._heads.hint != "faithful" and request.points:
            self.states.read_ahead(replace(request, probe_prompt=self._heads.probe_system_prompt), progress, cancel)


def _require(heads: HeadSet, model: FrozenModel) -> HeadSet:
    """These heads, if the controller can vote with them on this model."""
    heads.require(model.name, model.width, model.fingerprint)
    layers = layer_names(model)
    needed = {"target": ("compression",), "context": (CONTEXT,), "layer": layers}
    found = {"target": heads.target, "context": heads.context, "layer": heads.layer.replace(":", "_")}
    for name, known in needed.items():
        if found[name] not in known:
            words = f"{layers[0]} to {layers[-2]} and {layers[-1]}" if name == "layer" else known[0]
            raise InputError(
                f"these heads have {name} {found[name]!r}, but {words} is needed; train heads for it: {TRAIN}", path=heads.folder
            )
    return heads
