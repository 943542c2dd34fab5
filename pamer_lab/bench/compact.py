"""`pamer-lab bench compact`: tokens computed by the recent and retrieval families, against reading every input separately.

All inputs of a 40-decision trace go through a small attention model of random weights with SmolLM2's tokenizer: how many tokens are
computed does not depend on the weights, and every vector can be compared with its own forward pass. Two decision points are
computed with SmolLM2 itself as well. `tokens_vs_sum_of_inputs` counts each condition's input at each point, including equal ones.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pamer_lab.bench.extract import generated_trace
from pamer_lab.bench.measure import save_tiny
from pamer_lab.blocks import MessageTokens
from pamer_lab.features.extract import extract
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.serialise import serialiser_for
from pamer_lab.features.values import Request
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.tokenizer import LoadedCounter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import TEACHER, choose
from pamer_lab.studies.compact.states import Readings, States, text_key
from pamer_lab.studies.compact.values import Condition, Resources
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.values import Trace

HELP = "recent and retrieval contexts: tokens computed against the sum of input lengths, equal vectors"
DECISIONS = 40
FAMILIES = "recent,raw,embedding,controls"
REAL_POINTS = (7, 8)
"""Decision points that SmolLM2 itself computes."""


def run() -> tuple[dict[str, float], dict[str, Any]]:
    conditions = [one for one in choose(FAMILIES) if one != TEACHER]
    trace = generated_trace("compact", DECISIONS)
    with tempfile.TemporaryDirectory() as folder:
        small = _measure(load_frozen(save_tiny(Path(folder), blocks=2, positions=8192), "cpu"), trace, range(1, DECISIONS), conditions)
    real = _measure(load_frozen("embedded", "cpu"), trace, REAL_POINTS, conditions)
    ratios = {
        "tokens_vs_sum_of_inputs": small["tokens_computed"] / small["sum_of_inputs"],
        "greatest_difference": small["greatest_difference"],
        "greatest_difference_smollm2": real["greatest_difference"],
    }
    return ratios, {"conditions": [one.name for one in conditions], "decisions": DECISIONS, "small": small, "smollm2": real}


def _measure(model: FrozenModel, trace: Trace, points: Sequence[int], conditions: Sequence[Condition]) -> dict[str, Any]:
    """One extraction of all inputs, compared with a separate pass for each distinct input."""
    states = _states(model, trace, points)
    requests = states.requests(conditions)
    together = extract(list(requests.values()), model, layers=["final"], poolings=["last"])
    single = np.stack([_alone(model, request) for request in requests.values()])
    apart = np.abs(together.of() - single).max(1) / np.linalg.norm(single, axis=1)
    length = {key: point.tokens for key, point in zip(requests, together.points, strict=True)}
    read = sum(
        length[text_key(point, reading)]
        for one in conditions
        for point, reading in zip(states.points, states.readings.of(one), strict=True)
    )
    return {
        "inputs": len(conditions) * len(points),
        "different_inputs": len(requests),
        "sum_of_inputs": read,
        "sum_of_different_inputs": sum(length.values()),
        "tokens_computed": together.tokens_computed,
        "greatest_difference": float(apart.max()),
    }


def _states(model: FrozenModel, trace: Trace, points: Sequence[int]) -> States:
    keys = tuple((trace.trace_id, t) for t in points)
    asked = np.ones((2, len(keys)), dtype=bool)
    decisions = Decisions(keys, (trace.question_id,) * len(keys), ~asked, asked, "")
    resources = Resources(Counts(MessageTokens(LoadedCounter(model.tokenizer, model.name))), HashingEmbedder().embed)
    return States(Readings({trace.trace_id: trace}, decisions, resources), model, None)


def _alone(model: FrozenModel, request: Request) -> Any:
    """The last token's final state of one forward pass."""
    import torch

    _, tokens = next(inputs_of(request, model, serialiser_for(model)))
    with torch.inference_mode():
        output = model.decoder(torch.as_tensor(tokens.astype(np.int64), device=model.device)[None], use_cache=False)
        return output.last_hidden_state[0, -1].numpy()
