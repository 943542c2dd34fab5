"""`lre`: a logistic regression over features of a step decides which old steps stay verbatim, within a token budget.

Features use nothing after the step, except its relative position in the history so far; only labels look ahead. `lre.json` holds the
weights and what they were fitted on (`fit`, run by `pamer-lab policies --fit-lre`).
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pamer_lab.blocks import cut, recent_start
from pamer_lab.decisions import Decision, spans_of
from pamer_lab.errors import InputError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import block_text
from pamer_lab.memory.terms import ERROR, identifiers, words
from pamer_lab.opening import parse_json, read_text
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.trajectory.values import Message, Trace

WEIGHTS = Path(__file__).with_name("lre.json")
FEATURES = "position length digits capitals error code rare jaccard address".split()
REUSES = 3
"""Number of later steps that must use an identifier for the step that introduced it to count as needed."""
_CAPITAL = re.compile(r"\b[A-Z][a-z]+")
_CODE = re.compile(r"[{};]\s*$|\b(?:def|class|import|return|function|const)\b|=>|==", re.MULTILINE)
_ADDRESS = re.compile(r"https?://|\b[A-Za-z]+[-_]?\d")
MOST_CHARACTERS = 20_000
"""Maximum number of characters of a step that features read."""


@dataclass(frozen=True)
class Lre(PlainPolicy):
    """Verbatim selection without a query and without a language model."""

    title: ClassVar[str] = "lre"
    description: ClassVar[str] = "the newest steps stay; older ones stay verbatim by a learned score per token, within a budget"
    sources: ClassVar[tuple[str, ...]] = ("LRE, arXiv 2606.20954; NusRAT-LiA/LRE",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("note", "the last 5 steps always stay; others stay by score per token within 2,048 tokens, verbatim and in order"),
        ("note", "L2 logistic regression, C = 1, balanced classes, up to 1,000 iterations, nine causal features"),
        ("note", "a step is positive if an identifier that it introduced is reused in at least three later steps"),
        ("inferred", "rare-word density needs a list of frequencies: here, the share of words that no earlier step has"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "weights are fitted by us on the generated study corpus; the original's were not found",
        "identifiers are those of our router's index",
    )
    family: ClassVar[Family] = "method"
    look: ClassVar[LineLook] = LineLook("sky", "longdash")

    budget: int = 2_048
    """Token budget for older steps."""
    recent: int = field(default=5, metadata={"least": 1})
    """Number of newest complete blocks that are always kept."""

    def settings(self, resources: Resources) -> dict[str, Any]:
        return super().settings(resources) | {"weights": weights()["weights"], "intercept": weights()["intercept"]}

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self)


@cache
def weights() -> dict[str, Any]:
    """The fitted regression: one weight per feature, with the means and deviations that standardise them."""
    found: dict[str, Any] = parse_json(read_text(WEIGHTS))
    return found


class StepFeatures:
    """Features of a trace's steps, in order; each step is read once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._last: set[str] = set()
        self.rows: list[list[float]] = []
        """All features but the position, which changes as the history grows."""

    def add(self, messages: Sequence[Message]) -> None:
        text = block_text(messages)[:MOST_CHARACTERS]
        own = set(words(text))
        union = len(own | self._last)
        self.rows.append(
            [
                math.log1p(len(text)),
                math.log1p(sum(char.isdigit() for char in text)),
                math.log1p(len(_CAPITAL.findall(text))),
                float(bool(ERROR.search(text)) or any(message.error for message in messages)),
                float(bool(_CODE.search(text))),
                len(own - self._seen) / len(own) if own else 0.0,
                len(own & self._last) / union if union else 0.0,
                float(bool(_ADDRESS.search(text))),
            ]
        )
        self._seen |= own
        self._last = own


class _Session:
    def __init__(self, policy: Lre) -> None:
        self.policy = policy
        self._features = StepFeatures()
        self._fixed: list[float] = []
        """Each step's score without its position."""

    def turn(self, history: History) -> Decision:
        fitted = weights()
        scale = [weight / sd for weight, sd in zip(fitted["weights"], fitted["sd"], strict=True)]
        shift = fitted["intercept"] - sum(mean * factor for mean, factor in zip(fitted["mean"], scale, strict=True))
        for block in range(len(self._fixed), history.t):
            self._features.add(history.block_messages(block))
            row = self._features.rows[block]
            self._fixed.append(shift + sum(value * factor for value, factor in zip(row, scale[1:], strict=True)))
        start = recent_start(history.blocks, self.policy.recent)
        sizes = np.diff(history.cumulative[: start + 1])  # [older]
        values = np.clip(np.array(self._fixed[:start]) + scale[0] * np.arange(start) / history.t, -60.0, 60.0)
        density = 1 / (1 + np.exp(-values)) / np.maximum(sizes, 1)
        kept, left = [], self.policy.budget
        for block, size in zip(*(found.tolist() for found in _best_first(density, sizes)), strict=True):
            if size <= left:
                kept.append(block)
                left -= size
        spans = spans_of([*sorted(kept), *range(start, history.t)])
        reason = f"{len(kept)} of {start} older blocks stay within {self.policy.budget:,} tokens" if start else "no block is old enough"
        return Decision("pass", reason, (*history.head(), *history.raw(spans)))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """Scores follow from the history."""


def _best_first(density: "np.ndarray", sizes: "np.ndarray") -> tuple["np.ndarray", "np.ndarray"]:
    """Blocks by score per token (ties: older first), and their sizes."""
    order = np.argsort(-density, kind="stable")
    return order, sizes[order]


def fit(traces: Iterable[Trace], source: str) -> dict[str, Any]:
    """The regression fitted on all steps of these traces, labelled by reuse; raises `InputError` if only one class occurs."""
    from sklearn.linear_model import LogisticRegression

    rows: list[list[float]] = []
    labels: list[bool] = []
    used = 0
    for trace in traces:
        blocks = [block.of(trace.messages) for block in cut(trace.messages).blocks]
        features = StepFeatures()
        for messages in blocks:
            features.add(messages)
        rows += [[place / max(len(blocks) - 1, 1), *row] for place, row in enumerate(features.rows)]
        labels += reused(blocks)
        used += 1
    if len(set(labels)) < 2:
        raise InputError(f"{source}: {len(labels)} steps of {used} traces are all of one class; give more or longer traces")
    matrix = np.array(rows)
    mean, sd = matrix.mean(0), matrix.std(0)
    sd[sd == 0] = 1.0
    model = LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000).fit((matrix - mean) / sd, labels)
    return {
        "source": source,
        "traces": used,
        "steps": len(labels),
        "positives": int(sum(labels)),
        "label": f"an identifier that the step introduced is used in at least {REUSES} later steps",
        "features": FEATURES,
        "mean": [round(float(value), 6) for value in mean],
        "sd": [round(float(value), 6) for value in sd],
        "weights": [round(float(value), 6) for value in model.coef_[0]],
        "intercept": round(float(model.intercept_[0]), 6),
    }


def reused(blocks: Sequence[Sequence[Message]]) -> list[bool]:
    """For each step, whether an identifier that it introduced is used again in enough later steps."""
    named = [identifiers(block_text(messages)[:MOST_CHARACTERS]) for messages in blocks]
    first: dict[str, int] = {}
    again: dict[str, int] = {}
    for step, names in enumerate(named):
        for name in names:
            if name in first:
                again[name] = again.get(name, 0) + 1
            else:
                first[name] = step
    found = [False] * len(blocks)
    for name, count in again.items():
        found[first[name]] |= count >= REUSES
    return found
