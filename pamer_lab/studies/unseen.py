"""Trained heads on traces that they have never seen: ranking and votes against labels, with intervals by question."""

from typing import Any

import numpy as np

from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.metrics import RESAMPLES, Scored, auroc, summarise
from pamer_lab.probes.readout import Floats
from pamer_lab.studies.decisions import TARGETS, Decisions


def test_of(heads: HeadSet, decisions: Decisions, features: Floats, *, vote: int = 3, resamples: int = RESAMPLES) -> dict[str, Any]:
    """How the heads do at labelled decisions [n, d]; `seeds` are the heads, `vote` is what a majority of them says."""
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
    """Labelled decisions and positives of each source."""
    groups = np.array(decisions.groups or decisions.questions)
    asked, labels = decisions.counts[target], decisions.labels[target]
    return {
        str(name): {"n": int((asked & (groups == name)).sum()), "positives": int((asked & labels & (groups == name)).sum())}
        for name in sorted(set(groups.tolist()))
    }
