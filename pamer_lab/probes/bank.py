"""Feature sets lined up with the rows of a study.

Knows extraction and decisions; computes nothing itself. What always holds: row `i` of a bank is the state at
`decisions.keys[i]`, and asking for a bank a second time costs no model pass, because the workspace keeps vectors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pamer_lab.features.extract import extract_traces
from pamer_lab.features.serialise import Hint
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.decisions import Decisions
from pamer_lab.probes.readout import Floats
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace


@dataclass(frozen=True)
class Bank:
    """Vectors of one context and hint at the decisions of a study."""

    context: str
    hint: str
    layers: tuple[str, ...]
    poolings: tuple[str, ...]
    vectors: Floats
    """[layers, poolings, n, width]"""
    tokens: int
    """Tokens of all inputs of this bank together."""

    def of(self, layer: str, pooling: str = "last") -> Floats:
        """[n, width]"""
        found: Floats = self.vectors[self.layers.index(layer), self.poolings.index(pooling)]
        return found


@dataclass
class BankMaker:
    """Gets banks from the workspace, computing what is missing."""

    traces: Mapping[str, Trace]
    decisions: Decisions
    model: FrozenModel
    workspace: Workspace | None
    say: Callable[[str], None] = lambda text: None
    costs: list[dict[str, Any]] = field(default_factory=list)
    """What each bank took: tokens computed, seconds, cache hits."""

    def get(
        self, context: str, hint: Hint = "none", layers: str | Sequence[str] = "all", poolings: Sequence[str] = ("last", "mean")
    ) -> Bank:
        """The vectors of one context and hint."""
        wanted = list(dict.fromkeys(trace_id for trace_id, _ in self.decisions.keys))
        self.say(f"features of {context}, hint {hint}: {len(self.decisions)} decision points of {len(wanted)} traces")
        found = extract_traces(
            [self.traces[trace_id] for trace_id in wanted],
            self.model,
            [context],
            hint,
            layers=layers,
            poolings=poolings,
            workspace=self.workspace,
            progress=lambda progress: self.say(progress.sentence),
        )
        self.costs.append(
            {
                "context": context,
                "hint": hint,
                "tokens_computed": found.tokens_computed,
                "cache_hits": found.cache_hits,
                "seconds": round(found.seconds, 3),
            }
        )
        place = {(point.name, point.t): number for number, point in enumerate(found.points)}
        rows = [place[key] for key in self.decisions.keys]
        vectors = np.ascontiguousarray(found.vectors[rows].transpose(1, 2, 0, 3))
        return Bank(context, hint, found.layers, found.poolings, vectors, sum(found.points[row].tokens for row in rows))
