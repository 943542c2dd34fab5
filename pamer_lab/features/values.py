"""What extraction takes and gives: requests, points and the finished set. Pure values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamer_lab.features.contexts import Context
from pamer_lab.features.serialise import Hint
from pamer_lab.jobs import Progress
from pamer_lab.trajectory.recorded import History, Recorded, recorded_of
from pamer_lab.trajectory.values import Message, Tool, Trace


@dataclass(frozen=True)
class Request:
    """Some decision points of one conversation, in one context."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    points: Sequence[int] | None = None
    """Decision points of a recorded conversation; None: `messages` are themselves the input of one decision."""
    context: Context = "full"
    hint: Hint = "none"
    name: str = ""
    """The trace's id, or any name to find the request's points by."""
    active_tokens: int | None = None
    """For `faithful` hints: tokens of the active request, where the caller knows them; else recorded or counted."""
    probe_prompt: str = ""
    """A saved probe system prompt; it goes before the trace's own system text."""
    recorded: Recorded | None = None
    """Memory operations to apply: contexts and explicit indices then refer to what the agent had; None: to all messages."""


@dataclass(frozen=True)
class Point:
    """One row of a feature set."""

    name: str
    t: int
    """The decision point; -1 where the messages were given as they are."""
    context: str
    tokens: int
    """Length of the input the model read, after truncation."""
    left_out: int = 0
    """Tokens cut from the middle of an input that is over the model's limit."""


@dataclass(frozen=True)
class Estimate:
    """What an extraction would compute."""

    inputs: int
    """Different inputs."""
    cached: int
    """Those of them that need no computing."""
    tokens: int
    """Tokens to compute, shared beginnings once."""
    tokens_naive: int
    """Tokens of one forward pass per missing input."""
    missing: frozenset[str]
    """Content hashes of the inputs to compute."""
    depth: int
    """Blocks that each token goes through."""


OnProgress = Callable[[Progress], None]
Cancel = Callable[[], bool]


@dataclass(frozen=True)
class FeatureSet:
    """Vectors of many decision points."""

    vectors: npt.NDArray[np.float32]
    """[points, layers, poolings, width]."""
    layers: tuple[str, ...]
    """`block_1` to `block_L`, and `final`: the state after the final norm."""
    poolings: tuple[str, ...]
    points: tuple[Point, ...]
    keys: tuple[str, ...]
    """Content hash of each point's input."""
    tokens_computed: int
    """Tokens that went through the model in this run."""
    tokens_naive: int
    """Tokens that one forward pass per missing point would have needed."""
    seconds: float
    cache_hits: int
    """Points whose vectors were in the store."""

    def of(self, layer: str = "final", pooling: str = "last") -> npt.NDArray[np.float32]:
        """One layer and pooling: [points, width]."""
        chosen: npt.NDArray[np.float32] = self.vectors[:, self.layers.index(layer), self.poolings.index(pooling)]
        return chosen

    def rows(self, context: str) -> list[int]:
        """Row numbers of one context."""
        return [number for number, point in enumerate(self.points) if point.context == context]


def trace_requests(
    traces: Sequence[Trace], contexts: Sequence[Context], hint: Hint, probe_prompt: str = "", history: History = "full"
) -> list[Request]:
    """All decision points of some traces in some contexts."""
    return [
        Request(
            trace.messages,
            trace.tools,
            range(trace.turns),
            context,
            hint,
            trace.trace_id,
            probe_prompt=probe_prompt,
            recorded=recorded_of(trace, history),
        )
        for trace in traces
        for context in contexts
    ]
