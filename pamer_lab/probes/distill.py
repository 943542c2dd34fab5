"""Teachers, students and the tables around them: capacity x hint, Full Context reference, distillation, the heads we ship.

The teacher is the Full Context MLP with faithful hint; a student reads a compact context and learns from labels and from
the teacher of its own seed. What always holds: the teacher is used in training only, and a student's thresholds come from its
own validation rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.bank import Bank
from pamer_lab.probes.decisions import TARGETS, Decisions
from pamer_lab.probes.grid import GridResult
from pamer_lab.probes.intervals import RESAMPLES
from pamer_lab.probes.layerwise import fit_probes, preferred_of
from pamer_lab.probes.readout import Capacity, Floats, sigmoid
from pamer_lab.probes.split import TEST, Split
from pamer_lab.probes.tables import Row, compare, make_row, thresholds_of

CAPACITIES: tuple[Capacity, ...] = ("linear", "mlp")


@dataclass(frozen=True)
class Fitted:
    """Probes of one setting, read at one layer."""

    name: str
    layer: str
    features: Floats
    """[n, d]"""
    grid: GridResult
    """With one feature set."""

    @property
    def logits(self) -> Floats:
        """[T, S, n]"""
        only: Floats = self.grid.logits[0]
        return only


@dataclass(frozen=True)
class Lab:
    """The decisions, splits and device that all probes of a study share."""

    decisions: Decisions
    splits: tuple[Split, ...]
    device: str = "cpu"
    resamples: int = RESAMPLES

    def preferred(self, bank: Bank, target: int = 0) -> str:
        """The layer whose linear last-token probes have the best mean validation AUROC for the target."""
        last = np.ascontiguousarray(bank.vectors[:, bank.poolings.index("last")])
        fitted = fit_probes(self.decisions, self.splits, last, device=self.device)
        return preferred_of(self.decisions, self.splits, target, fitted.logits[:, target], bank.layers)

    def fit(self, name: str, bank: Bank, layer: str, capacity: Capacity, teacher: Fitted | None = None) -> Fitted:
        """Probes on the last token of one layer; with a teacher, its students."""
        features = bank.of(layer)
        scores = None if teacher is None else sigmoid(teacher.logits).astype(np.float32)
        grid = fit_probes(self.decisions, self.splits, features[None], capacity, teacher=scores, device=self.device)
        return Fitted(name, layer, features, grid)

    def rows(self, fitted: Fitted, teacher: Fitted | None = None, **names: Any) -> list[Row]:
        """One row per target; with a teacher, the agreement of decisions on test rows too."""
        made = []
        for target in range(len(TARGETS)):
            named = {"name": fitted.name, "layer": fitted.layer, **names}
            row = make_row(self.decisions, self.splits, target, fitted.logits[target], named, resamples=self.resamples)
            if teacher is not None:
                row["agreement"] = agreement(self.decisions, self.splits, target, fitted.logits[target], teacher.logits[target])
            made.append(row)
        return made


def agreement(decisions: Decisions, splits: Sequence[Split], target: int, candidate: Floats, teacher: Floats) -> dict[str, Any]:
    """Share of test decisions on which two sets of probes agree, each at its own thresholds."""
    cuts = [thresholds_of(decisions, splits, target, logits) for logits in (candidate, teacher)]
    values = []
    for number, split in enumerate(splits):
        rows = split.rows(TEST) & decisions.counts[target]
        said = [logits[number, rows] >= cut[number] for logits, cut in zip((candidate, teacher), cuts, strict=True)]
        values.append(float((said[0] == said[1]).mean()))
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, "seeds": values}


def capacity_rows(lab: Lab, banks: Mapping[str, Bank], layers: Mapping[str, str]) -> tuple[list[Row], dict[tuple[str, str], Fitted]]:
    """Capacity x hint on the full context: `banks` by hint, `layers` by a name for the place that is read."""
    rows: list[Row] = []
    fits: dict[tuple[str, str], Fitted] = {}
    for place, layer in layers.items():
        for hint, bank in banks.items():
            for capacity in CAPACITIES:
                words = f"{'No hint' if hint == 'none' else 'Faithful hint'}, {'linear' if capacity == 'linear' else 'MLP'}"
                fitted = lab.fit(f"{words} ({place})", bank, layer, capacity)
                rows += lab.rows(fitted, context="full", hint=hint, capacity=capacity, place=place)
                if hint == "faithful" and capacity == "mlp":
                    fits[place, hint] = fitted
    return rows, fits


def student_rows(lab: Lab, bank: Bank, layer: str, teacher: Fitted, words: str) -> tuple[list[Row], list[Row], Fitted]:
    """A compact context with and without distillation: rows, paired comparisons, and the students."""
    plain = lab.fit(words, bank, layer, "mlp")
    student = lab.fit(f"{words} + decision KD", bank, layer, "mlp", teacher)
    names = {"context": bank.context, "hint": bank.hint, "capacity": "mlp"}
    without, taught = (lab.rows(fitted, teacher, **names) for fitted in (plain, student))
    compared = [compare(one, other, metric) for one, other in zip(taught, without, strict=True) for metric in ("auroc", "f1")]
    return [*without, *taught], compared, student


def make_heads(lab: Lab, student: Fitted, bank: Bank, model_name: str, facts: dict[str, Any], target: int = 0) -> HeadSet:
    """The students of one target as the set of heads the controller votes with."""
    cuts = thresholds_of(lab.decisions, lab.splits, target, student.logits[target])
    return HeadSet(
        stack=student.grid.parameters[0][target],
        thresholds=tuple(float(cut) for cut in sigmoid(cuts)),
        model_name=model_name,
        layer=student.layer,
        context=bank.context,
        hint=bank.hint,
        target=TARGETS[target],
        seeds=tuple(split.seed for split in lab.splits),
        facts=facts,
    )
