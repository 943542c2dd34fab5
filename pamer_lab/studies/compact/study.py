"""The compact-context study: every chosen condition on the same rows, labels and splits, compared with the Full Context teacher.

Stages, each cached in the workspace: embeddings of queries and blocks; states of all texts; probes.
Invariants: all conditions are read at one layer, chosen by validation on the Full Context only (or named by the caller), and a student's
teacher is the Full Context probe of its own seed. Two text-only conditions have equal `reads` exactly if they read the same blocks at every
point of the study.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pamer_lab.jobs import Progress, Say
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.probes.readout import Floats
from pamer_lab.studies.bank import SAY_SECONDS, streamed_sentence
from pamer_lab.studies.compact.estimate import Forecast, check_sentence, forecast
from pamer_lab.studies.compact.fitting import Fitter
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.recent import FullContext
from pamer_lab.studies.compact.registry import TEACHER
from pamer_lab.studies.compact.retrieved import ByRecency, Retrieved, texts_to_embed
from pamer_lab.studies.compact.states import Cost, Readings, States
from pamer_lab.studies.compact.values import FULL, Condition, Reading
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.distill import Lab, agreement
from pamer_lab.studies.layerwise import fit_probes, preferred_of
from pamer_lab.studies.tables import Row, compare, make_row


def overlap(condition: Condition, readings: Readings) -> dict[str, Any]:
    """A row's facts about its text: `reads`, a hash of the blocks at all points (empty if there is more than text); for retrieval
    `points_unlike_recency`, points that read other blocks than Recency with the same K; with a cap `points_cap_changed`."""
    own = readings.of(condition)
    found: dict[str, Any] = {"reads": "" if condition.group.more_than_text else fingerprint(own)}
    if isinstance(condition, Retrieved):
        found["points_unlike_recency"] = unlike(own, readings.of(Retrieved(ByRecency(), condition.k)))
        if condition.cap:
            found["points_cap_changed"] = unlike(own, readings.of(replace(condition, cap=0)))
    return found


def differences(conditions: Sequence[Condition], readings: Readings) -> dict[str, int]:
    """How many rows of each condition read a different text than Recent2; with few of them, its result says little."""
    base = next((readings.of(one) for one in conditions if one.name == "recent2"), None)
    if base is None:
        return {}
    return {one.name: unlike(readings.of(one), base) for one in conditions if one.group != FULL and not one.group.more_than_text}


def unlike(readings: Sequence[Reading], others: Sequence[Reading]) -> int:
    """Number of points at which the two read different blocks."""
    return sum(own.blocks != other.blocks for own, other in zip(readings, others, strict=True))


def fingerprint(readings: Sequence[Reading]) -> str:
    return hashlib.sha256(repr([reading.blocks for reading in readings]).encode()).hexdigest()[:16]


PREFERRED = "preferred"
PAIRS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("recent2-kd", "recent2", ("auroc", "f1")),
    ("raw-top5", "bank-recent5", ("auroc",)),
    ("recent4-kd", "recent4", ("auroc", "f1")),
    ("recent2", "full", ("auroc", "f1")),
    ("recent2", "full-no-hint", ("auroc",)),
    ("raw-top3", "recent2", ("auroc",)),
    ("embedding-top3", "recent2", ("auroc",)),
    ("raw-top3", "random-top3", ("auroc",)),
    ("embedding-top3", "random-top3", ("auroc",)),
    ("embedding-top3", "recency-top3", ("auroc",)),
    ("full", "full-no-hint", ("auroc",)),
)
"""Paired comparisons: the paper's two first, then what a reader asks next."""
Stage = Literal["embeddings", "states", "probes"]
"""`embeddings`: embed queries and older blocks. `states`: the model reads what is missing. `probes`: fit probes to choose the layer, then
for all conditions."""


@dataclass
class Bench:
    """Everything needed to compute one study."""

    states: States
    fitter: Fitter
    model: FrozenModel
    conditions: tuple[Condition, ...]
    layer: str = PREFERRED
    """`PREFERRED` until the layer is chosen, then its name."""
    embeddings: KeptEmbeddings | None = None
    """Embeddings by which conditions select text; None if no condition does."""
    say: Say = lambda what: None
    seconds: dict[Stage, float] = field(default_factory=dict)
    """Duration of each stage."""
    streamed: float = 0.0
    """Bytes of states that stay in the workspace and are read in parts."""
    _said: float = field(default=0.0)

    @property
    def lab(self) -> Lab:
        return self.fitter.lab

    def forecast(self) -> Forecast:
        """What still has to be computed. Also chooses the layer if all Full Contexts are stored; only they are stored at every layer."""
        if self.layer == PREFERRED:
            first = self.states.forecast(self._full(), "all")
            if first.missing:
                rest = [condition for condition in self.conditions if condition not in self._full()]
                return forecast([first, self.states.forecast(rest, known=first.missing)], self.model, self.states.folder)
        self._choose_layer()
        return forecast([self.states.forecast(self.conditions)], self.model, self.states.folder)

    def run(self) -> tuple[list[Row], list[Row], dict[str, Any]]:
        """Rows of both targets, paired comparisons, and notes."""
        self._embed()
        expected = self.forecast()
        self.say(expected.sentence)
        tokens = self._choose_layer()
        with self._timed("states"):
            tokens += self._computed(self.states.compute(self.conditions, self._progress))
        checked = expected.check(tokens, self.seconds["states"]) | ({"streamed_bytes": int(self.streamed)} if self.streamed else {})
        self.say(check_sentence(checked))
        with self._timed("probes"):
            logits = self._logits()
            rows = [row for condition in self.conditions for row in self._rows(condition, logits)]
        seconds = {stage: round(taken, 1) for stage, taken in self.seconds.items()}
        return rows, paired(rows), {"layer": self.layer, "cost": checked, "seconds": seconds, "fits_from_workspace": self.fitter.hits}

    def missing_embeddings(self) -> int:
        """Number of texts to embed before conditions can select by embedding."""
        return len(self.embeddings.missing(texts_to_embed(self.states.points))) if self.embeddings else 0

    def _embed(self) -> None:
        """All queries and older blocks at once, in batches that the workspace keeps."""
        if self.embeddings is None:
            return
        with self._timed("embeddings"):
            texts = texts_to_embed(self.states.points)
            done = self.embeddings.warm(texts, lambda done, total: self._progress(Progress(done=done, total=total, what="texts embedded")))
        self.say(f"embeddings: {len(texts):,} texts, {done:,} of them new")

    def _full(self) -> list[Condition]:
        """The teacher and, if requested, the full context without hint; they share everything but the hint."""
        return [TEACHER, *(one for one in self.conditions if isinstance(one, FullContext) and one != TEACHER)]

    def _choose_layer(self) -> float:
        """Set the study's layer; returns the number of tokens computed for it."""
        tokens = 0.0
        if self.layer == PREFERRED:
            with self._timed("states"):
                vectors, names, cost = self.states.all_layers(self._full(), self._progress)
            tokens = self._computed(cost)
            with self._timed("probes"):
                fitted = fit_probes(self.lab.decisions, self.lab.splits, vectors, device=self.lab.device)
                self.layer = preferred_of(self.lab.decisions, self.lab.splits, 0, fitted.logits[:, 0], names)
            self.say(f"all conditions are read at {self.layer}, selected by validation for the Full Context")
        self.states.layer = self.layer
        return tokens

    def _computed(self, cost: Cost) -> float:
        """The number of tokens computed; reports states that do not fit in memory."""
        if size := cost.get("streamed_bytes", 0.0):
            self.streamed += size
            self.say(streamed_sentence(size))
        return cost["tokens_computed"]

    def _logits(self) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        for number, condition in enumerate(self.conditions, start=1):
            representation = condition.represent(self.states)
            found[condition.name] = self.fitter.fit(condition.name, representation, found.get(TEACHER.name))
            self._progress(Progress(done=number, total=len(self.conditions), what="conditions fitted"))
        return found

    def _rows(self, condition: Condition, logits: dict[str, Floats]) -> list[Row]:
        lab, own, teacher = self.lab, logits[condition.name], logits[TEACHER.name]
        readings = self.states.readings.of(condition)
        named = {
            "name": condition.label,
            "condition": condition.name,
            "group": condition.group.heading,
            "layer": self.layer,
            "tokens_pct": token_share(self.states.points, readings, self.states.counts),
            "points": len(readings),
            "inputs_over_the_limit": self.states.over_the_limit(condition),
            **overlap(condition, self.states.readings),
        }
        if isinstance(condition, Retrieved):
            named["evidence_tokens"] = evidence_tokens(self.states.points, readings, self.states.counts)
        made = []
        for target in range(len(TARGETS)):
            row = make_row(lab.decisions, lab.splits, target, own[target], named, resamples=lab.resamples)
            same = condition.name == TEACHER.name
            row["agreement"] = None if same else agreement(lab.decisions, lab.splits, target, own[target], teacher[target])
            made.append(row)
        return made

    @contextmanager
    def _timed(self, stage: Stage) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started

    def _progress(self, progress: Progress) -> None:
        if time.monotonic() - self._said > SAY_SECONDS:
            self._said = time.monotonic()
            self.say(progress)


def paired(rows: Sequence[Row]) -> list[Row]:
    """The paired comparisons whose two conditions were both measured."""
    of = {(row["condition"], row["target"]): row for row in rows}
    return [
        compare(of[first, target], of[second, target], metric)
        for first, second, metrics in PAIRS
        for target in TARGETS
        for metric in metrics
        if (first, target) in of and (second, target) in of
    ]


def evaluated(bench: Bench) -> list[dict[str, Any]]:
    """The decision points of the study with their labels, for inspection."""
    decisions = bench.lab.decisions
    return [
        {
            "trace_id": trace_id,
            "t": t,
            "question_id": question,
            **{name: bool(decisions.labels[number, row]) for number, name in enumerate(TARGETS) if decisions.counts[number, row]},
        }
        for row, ((trace_id, t), question) in enumerate(zip(decisions.keys, decisions.questions, strict=True))
    ]


def token_share(points: Sequence[DecisionPoint], readings: Sequence[Reading], counts: Counts) -> float:
    """`B(C) = 100 * sum Tok(C_i) / sum Tok(full_i)` over the evaluated points: text input, tools included, without hint or bank."""
    read = sum(counts.context(point, reading.blocks) for point, reading in zip(points, readings, strict=True))
    return 100.0 * read / sum(counts.full(point) for point in points)


def evidence_tokens(points: Sequence[DecisionPoint], readings: Sequence[Reading], counts: Counts) -> dict[str, Any]:
    """Mean, 95th percentile and maximum of recalled tokens, over the points that have an older block to bring back."""
    sizes = [
        sum(counts.block(point, one.block) for one in reading.evidence)
        for point, reading in zip(points, readings, strict=True)
        if point.window.old
    ]
    if not sizes:
        return {"mean": 0.0, "p95": 0.0, "max": 0, "n": 0}
    return {"mean": float(np.mean(sizes)), "p95": float(np.percentile(sizes, 95)), "max": int(max(sizes)), "n": len(sizes)}
