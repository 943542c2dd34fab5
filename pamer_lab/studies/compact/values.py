"""The interface of this package: what a condition is, its group, what it reads at a decision point, and what it gives to a probe.

Pure values and Protocols. A group defines heading, look and panel once; a condition with its own group defines it in its own file.
Invariant: `read` sees one `DecisionPoint` and `Resources`, never a label; `represent` sees the rows of a study in order and returns one
representation per row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError
from pamer_lab.features.serialise import Hint
from pamer_lab.looks import MarkLook
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.rows import Rows

Panel = Literal["both", "recent", "recovered"]
"""Side of the trade-off figure: recent context, recovered history, or both."""


@dataclass(frozen=True)
class Group:
    """Conditions that are grouped in tables and share a mark in charts."""

    name: str
    """Its name on the command line."""
    heading: str
    look: MarkLook
    panel: Panel = "recovered"
    more_than_text: bool = False
    """Whether probes get, or learn from, more than the text that is read."""


FULL = Group("full", "Full Context", MarkLook("black", "star"), "both")
RECENT = Group("recent", "Recent context", MarkLook("blue", "circle"), "recent")
STATE = Group("state", "Scalar state and decision distillation", MarkLook("sky", "square"), "recent", more_than_text=True)
RAW = Group("raw", "Recovered raw evidence", MarkLook("vermilion", "diamond"))
EMBEDDING = Group("embedding", "Recovered by embedding", MarkLook("green", "triangle-up"))
CONTROLS = Group("controls", "Retrieval controls", MarkLook("grey", "x"))
HIDDEN = Group("hidden", "Hidden and recurrent memory", MarkLook("purple", "cross"), more_than_text=True)
BUDGET = Group("budget", "Evidence budget", MarkLook("brown", "hexagon"))


Need = Literal["embedder", "states"]
"""`embedder`: choosing the text needs an embedding model. `states`: the representation adds stored block states."""


@dataclass(frozen=True)
class Evidence:
    """One older block that was brought back."""

    block: int
    score: float
    """The selector's score; comparable only within one decision point."""


@dataclass(frozen=True)
class Reading:
    """The text that one condition shows the model at one decision point: the prefix and these blocks."""

    blocks: tuple[int, ...]
    """All blocks, in their order."""
    evidence: tuple[Evidence, ...] = ()
    """The recalled ones among them, best first."""
    hint: Hint = "none"


@dataclass
class Resources:
    """What conditions may use to choose their text."""

    counts: Counts
    embed: Callable[[Sequence[str]], npt.NDArray[np.float32]] | None = None
    """Texts -> unit vectors, one row per text; None if no embedding model is available."""
    memo: dict[Any, Any] = field(default_factory=dict)
    """Cache of what selectors have computed."""

    def embeddings(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.embed is None:
            raise InputError("this condition needs an embedding model; pass one, or choose another condition")
        return self.embed(texts)


@dataclass(frozen=True)
class Columns:
    """One vector per row, for the MLP probe that all conditions share."""

    features: Rows
    """[n, d]"""
    taught: bool = False
    """Learns from the Full Context teacher of its seed as well as from labels."""


@dataclass(frozen=True)
class Blocks:
    """The state each block had when it was the last one, trace after trace."""

    states: Rows
    """[blocks of all traces, d]"""
    starts: npt.NDArray[np.int64]
    """[traces + 1]: the first block of each trace, and where the last one ends."""
    places: npt.NDArray[np.int64]
    """[n, 2]: the trace of each row of the study, and how many of its blocks come before the decision."""

    @property
    def longest(self) -> int:
        """Blocks of the longest trace."""
        return int(np.diff(self.starts).max())

    def of(self, trace: int) -> npt.NDArray[np.int64]:
        """Numbers of a trace's blocks."""
        return np.arange(self.starts[trace], self.starts[trace + 1])


@dataclass(frozen=True)
class Steps:
    """One vector per row, and the blocks that a recurrent network reads up to the row."""

    features: Rows
    """[n, d]"""
    blocks: Blocks
    width: int
    """Units of the recurrent state."""


Representation = Columns | Steps


class Material(Protocol):
    """The input of `represent`: a study's rows, and the states of what conditions read."""

    @property
    def points(self) -> tuple[DecisionPoint, ...]: ...

    @property
    def counts(self) -> Counts: ...

    def vectors(self, condition: "Condition") -> Rows:
        """[n, d]: the state of what a condition reads, row by row."""
        ...

    def stored(self) -> Blocks:
        """States of all blocks of the traces."""
        ...


class Condition(Protocol):
    """One row of the table."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    @property
    def label(self) -> str:
        """Its name in tables."""
        ...

    @property
    def group(self) -> Group: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        """The text at a decision point."""
        ...

    def represent(self, material: Material) -> Representation:
        """The probe's input."""
        ...
