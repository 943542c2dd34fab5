"""A small layerwise study that is really computed, on states made by hand, for tests of charts and pages."""

from typing import Any

from pamer_lab.studies.decisions import TARGETS, decisions_of, make_splits
from pamer_lab.studies.layerwise import layerwise, preferred_layer
from pamer_lab.studies.study import Study
from tests.studies.test_tables import bank, corpus


def layer_study(**changed: Any) -> Study:
    """Two layers of a made-up model, of which the second carries both labels at its last token; two seeds."""
    decisions = decisions_of(corpus().values())
    splits, checks = make_splits(decisions, (0, 1))
    rows = layerwise(decisions, splits, bank(decisions, 0.6), resamples=20)
    values: dict[str, Any] = {
        "kind": "layerwise",
        "name": "Layers, made",
        "command": "pamer-lab layerwise made --seeds 0,1",
        "model": "made",
        "corpus": decisions.facts(),
        "settings": {"layers": "all", "context": "full", "hint": "none", "seeds": "0,1", "replicas": 0},
        "rows": rows,
        "notes": {
            "splits": [f"seed {split.seed}: {check.sentence}" for split, check in zip(splits, checks, strict=True)],
            "preferred_layer": {target: preferred_layer(rows, target) for target in TARGETS},
            "features": [{"inputs": "full with hint none", "tokens_computed": 50_000, "cache_hits": 0, "seconds": 100.0}],
        },
    }
    return Study(**(values | changed))


def control_study(**changed: Any) -> Study:
    """Controls of the same corpus, without the part that needs a model."""
    from pamer_lab.blocks import EstimatedCounter, MessageTokens
    from pamer_lab.models.embedder import HashingEmbedder
    from pamer_lab.studies.controls import observable_rows, rule_rows

    traces = corpus()
    decisions = decisions_of(traces.values())
    splits, _ = make_splits(decisions, (0, 1))
    tokens = MessageTokens(EstimatedCounter())
    rows = [
        *observable_rows(traces, decisions, splits, tokens, HashingEmbedder(), resamples=20),
        *rule_rows(traces, decisions, splits, resamples=20),
    ]
    values: dict[str, Any] = {
        "kind": "controls",
        "name": "Controls, made",
        "command": "pamer-lab controls made --seeds 0,1",
        "model": "made",
        "corpus": decisions.facts(),
        "settings": {"seeds": "0,1"},
        "rows": rows,
    }
    return Study(**(values | changed))
