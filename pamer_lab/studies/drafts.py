"""Fits Probing-RAG's probe: the frozen model drafts the next action at labelled decision points; the probe learns which need memory.

The recall gate uses the same drafts (`drafted`). Labels are the traces' `recall` labels, whatever their origin.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from pamer_lab.blocks import cut, split
from pamer_lab.blocks.render import query_text, task_text
from pamer_lab.models.draft import States, drafted_states, next_action
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.usage import ChatUsage
from pamer_lab.probes.draft_probe import DraftProbe, Examples, fit, layers_of
from pamer_lab.studies.decisions import TARGETS, decisions_of
from pamer_lab.trajectory.values import Trace

DRAFT_TOKENS = 16
"""Maximum length of a draft, in tokens."""
DRAFT_CHARACTERS = 1_500
"""Characters of task and recent blocks from which a draft is written; the last ones are used."""
RETAINED = 2
"""Newest complete blocks that a draft is written from when a probe is fitted, as in the controller."""

SEED = 0
MOST = 60
"""Maximum number of drafted points per class: a draft takes about as long as reading its few hundred tokens."""


def drafted(model: FrozenModel, text: str, layers: list[int]) -> tuple[States, ChatUsage]:
    """States of the model's draft of the next action, given task and recent blocks."""
    return drafted_states(model, next_action(text), DRAFT_TOKENS, layers)


def fit_draft_probe(
    traces: Iterable[Trace], model: FrozenModel, source: str, progress: Callable[[int, int], None] = lambda done, count: None
) -> DraftProbe:
    """The probe for one model, fitted on decision points with recall labels."""
    known = {trace.trace_id: trace for trace in traces}
    decisions = decisions_of(known.values())
    row = TARGETS.index("recall")
    asked = balanced(decisions.counts[row], decisions.labels[row])
    layers = layers_of(model.layers)
    states = []
    for done, place in enumerate(asked):
        trace_id, t = decisions.keys[place]
        states.append(drafted(model, _recent(known[trace_id], t), layers)[0])
        progress(done + 1, len(asked))
    questions = [decisions.questions[place] for place in asked]
    shape = (0, len(layers), model.width)
    weights, bias, facts = fit(Examples(np.stack(states) if states else np.zeros(shape), decisions.labels[row][asked], questions))
    facts |= {"source": source, "corpus": decisions.corpus, "draft_tokens": DRAFT_TOKENS, "draft_characters": DRAFT_CHARACTERS}
    return DraftProbe(model.name, model.fingerprint, layers, weights, bias, facts)


def balanced(counts: npt.NDArray[np.bool_], labels: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Positions of equally many points of each class, drawn with a fixed seed; Probing-RAG also balances its classes."""
    chance = np.random.default_rng(SEED)
    classes = [np.flatnonzero(counts & labels), np.flatnonzero(counts & ~labels)]
    size = min(MOST, *(len(places) for places in classes))
    return np.sort(np.concatenate([chance.choice(places, size, replace=False) for places in classes]))


def _recent(trace: Trace, t: int) -> str:
    pieces = cut(trace.messages)
    blocks = pieces.before(t)
    recent = split(blocks, RETAINED).recent
    messages = [message for number in recent for message in blocks[number].of(trace.messages)]
    return query_text(task_text(trace.messages[: pieces.prefix_end]), messages, DRAFT_CHARACTERS)
