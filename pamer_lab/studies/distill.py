"""Teachers, students and their tables: capacity x hint, Full Context reference, distillation, packaged heads, and tests of heads.

The teacher is the Full Context MLP with faithful hint; a student reads a compact context and learns from labels and from the teacher of
the same seed.
Invariant: the teacher is used only in training, and a student's thresholds come from its own validation rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.circle import States
from pamer_lab.probes.grid import GridResult
from pamer_lab.probes.margins import vote_margins
from pamer_lab.probes.metrics import RESAMPLES, Scored, auroc, summarise
from pamer_lab.probes.readout import Capacity, Floats, sigmoid
from pamer_lab.probes.split import TEST, Split
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.decisions import TARGETS, Decisions
from pamer_lab.studies.layerwise import fit_probes, preferred_of
from pamer_lab.studies.tables import Row, compare, make_row, thresholds_of

SHIFTS = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Logit shifts at which the stability of majorities is reported."""
CAPACITIES: tuple[Capacity, ...] = ("linear", "mlp")


@dataclass(frozen=True)
class Fitted:
    """Probes of one setting, read at one layer."""

    name: str
    layer: str
    features: Floats | States
    """[1, n, d]"""
    grid: GridResult
    """Result for this one feature set."""

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
        fitted = fit_probes(self.decisions, self.splits, bank.sets(poolings=["last"]), device=self.device)
        return preferred_of(self.decisions, self.splits, target, fitted.logits[:, target], bank.layers)

    def fit(self, name: str, bank: Bank, layer: str, capacity: Capacity, teacher: Fitted | None = None) -> Fitted:
        """Probes on the last token of one layer; with a teacher, its students."""
        features = bank.sets([layer], ["last"])
        scores = None if teacher is None else sigmoid(teacher.logits).astype(np.float32)
        grid = fit_probes(self.decisions, self.splits, features, capacity, teacher=scores, device=self.device)
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


def student_rows(lab: Lab, bank: Bank, layer: str, teacher: Fitted | None, words: str) -> tuple[list[Row], list[Row], Fitted]:
    """A compact context with and without distillation: rows, paired comparisons, and the students; without a teacher, only plain probes."""
    plain = lab.fit(words, bank, layer, "mlp")
    if teacher is None:
        return lab.rows(plain, context=bank.context, hint=bank.hint, capacity="mlp"), [], plain
    student = lab.fit(f"{words} + decision KD", bank, layer, "mlp", teacher)
    names = {"context": bank.context, "hint": bank.hint, "capacity": "mlp"}
    without, taught = (lab.rows(fitted, teacher, **names) for fitted in (plain, student))
    compared = [compare(one, other, metric) for one, other in zip(taught, without, strict=True) for metric in ("auroc", "f1")]
    return [*without, *taught], compared, student


def stability_of(lab: Lab, heads: HeadSet, features: Floats | States, target: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """For each decision, the heads' votes and how far they are from flipping; and a summary of these margins.

    Most heads were trained on any given decision; `test_votes` uses only each head's own test rows.
    """
    logits = _logits(heads, features)  # [n, heads]
    rows = []
    for (trace_id, t), label, own in zip(lab.decisions.keys, lab.decisions.labels[target], logits, strict=True):
        margins = vote_margins(own, heads.threshold_logits, needed=heads.stack.count // 2 + 1)
        said = {"logits": [round(float(value), 4) for value in own], "yes": margins.yes}
        far = {"vote_margin": round(margins.vote, 4), "majority_margin": round(margins.majority, 4)}
        rows.append({"trace_id": trace_id, "t": t, "label": bool(label), **said, **far})
    majority = np.array([row["majority_margin"] for row in rows])
    summary = {
        "median_vote_margin": float(np.median([row["vote_margin"] for row in rows])),
        "median_majority_margin": float(np.median(majority)),
        "majorities_that_a_shift_can_flip": {str(shift): float((majority <= shift).mean()) for shift in SHIFTS},
        "test_votes": _test_votes(lab, np.abs(logits - heads.threshold_logits), target),
    }
    return rows, summary


def _logits(heads: HeadSet, features: Floats | States) -> Floats:
    """[1, n, d] -> [n, heads]."""
    if isinstance(features, np.ndarray):
        return heads.stack.logits(features[0])
    step = max(1, features.held // heads.stack.count)
    rows = np.arange(features.shape[1])
    return np.concatenate([heads.stack.logits(features.read(0, rows[start : start + step])) for start in range(0, len(rows), step)])


def _test_votes(lab: Lab, margins: Floats, target: int) -> dict[str, Any]:
    """A summary of `margins` [n, heads] over each head's test rows."""
    own = np.concatenate([margins[split.rows(TEST) & lab.decisions.counts[target], number] for number, split in enumerate(lab.splits)])
    flipped = {str(shift): float((own <= shift).mean()) for shift in SHIFTS}
    return {"n": len(own), "median_margin": float(np.median(own)), "that_a_shift_can_flip": flipped}


def make_heads(
    lab: Lab, student: Fitted, bank: Bank, model: FrozenModel, probe_prompt: str, facts: dict[str, Any], target: int = 0
) -> HeadSet:
    """The students of one target as the set of heads the controller votes with."""
    # Beyond 30 a probability would be stored as 1.
    cuts = np.clip(thresholds_of(lab.decisions, lab.splits, target, student.logits[target]), -30, 30)
    return HeadSet(
        stack=student.grid.parameters[0][target],
        thresholds=tuple(float(cut) for cut in sigmoid(cuts)),
        model_name=model.name,
        model_fingerprint=model.fingerprint,
        layer=student.layer,
        context=bank.context,
        hint=bank.hint,
        probe_system_prompt=probe_prompt,
        target=TARGETS[target],
        seeds=tuple(split.seed for split in lab.splits),
        facts=facts,
    )


def test_of(heads: HeadSet, decisions: Decisions, features: Floats, *, vote: int = 3, resamples: int = RESAMPLES) -> dict[str, Any]:
    """Performance of the heads on labelled decisions [n, d]. In the result, `seeds` are the heads and `vote` is their joint decision."""
    target = TARGETS.index(heads.target)
    asked = decisions.counts[target]
    labels, questions = decisions.labels[target][asked], decisions.question_numbers[asked]
    logits = heads.stack.logits(features[asked])  # [n, heads]
    cuts = heads.threshold_logits
    scored = [Scored(logits[:, number], labels, questions, float(cuts[number])) for number in range(heads.stack.count)]
    metrics = summarise(scored, resamples)
    yes = (logits >= cuts).sum(1) >= min(vote, heads.stack.count)
    return {
        "target": heads.target,
        "n": int(asked.sum()),
        "questions": len(set(questions.tolist())),
        "base_rate": float(labels.mean()),
        "metrics": {name: {key: found[key] for key in ("mean", "sd", "seeds", "interval")} for name, found in metrics.items()},
        "mean_logit_auroc": float(auroc(logits.mean(1), labels)),
        "vote": {
            "needed": vote,
            "said_yes": float(yes.mean()),
            "precision": float(labels[yes].mean()) if yes.any() else None,
            "recall": float(yes[labels].mean()) if labels.any() else None,
        },
    }


def by_group(decisions: Decisions, target: int) -> dict[str, dict[str, int]]:
    """Labelled decisions and positives of each source, or of each question if splits do not keep sources together."""
    groups = np.array(decisions.groups or decisions.questions)
    asked, labels = decisions.counts[target], decisions.labels[target]
    return {
        str(name): {"n": int((asked & (groups == name)).sum()), "positives": int((asked & labels & (groups == name)).sum())}
        for name in sorted(set(groups.tolist()))
    }
