"""`bench hindsight PATH...`: the step router and the extractive summary on recorded traces, against labels by hindsight.

Memories are laid out as in `bench selection`. A point needs steps where its action used evidence that only older blocks hold. Chosen steps
are compared with the labelled ones and, because several blocks may hold the same evidence, by the share of needed identifiers that the
chosen steps hold (`evidence`). `summary` and `index` are the shares of those identifiers that the summaries' texts, and the detail lines,
still hold; `*_repeated` counts only identifiers that the trace uses more than once.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pamer_lab.bench.measure import say
from pamer_lab.bench.selection import RECENT, Case, Routed, cases
from pamer_lab.blocks import MessageTokens
from pamer_lab.controller.router_embedded import EmbeddedRouter
from pamer_lab.errors import InputError
from pamer_lab.memory.summary import block_text
from pamer_lab.models.embedder import load_embedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.runs.evidence import Use
from pamer_lab.runs.hindsight import Rule, counted_uses, hindsight_labels, labelled
from pamer_lab.runs.identifiers import holds
from pamer_lab.runs.timeline import lay_out
from pamer_lab.trajectory import Trace, iter_traces
from pamer_lab.trajectory.values import Message

HELP = "the step router and the extractive summary on real traces, against labels by hindsight"
LEAST_TURNS = 8
SAY_SECONDS = 10.0
"""Time between two lines of progress."""


class Kept:
    """How much of the needed evidence something holds."""

    def __init__(self) -> None:
        self.needed: Counter[str] = Counter()
        self.held: Counter[str] = Counter()

    def add(self, name: str, held: bool) -> None:
        self.needed[name] += 1
        self.held[name] += held

    def shares(self) -> dict[str, float]:
        return {name: self.held[name] / count for name, count in self.needed.items()}


def run(paths: Sequence[Path], least_turns: int = LEAST_TURNS, count: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """All traces with at least `least_turns` turns, or the `count` shortest of them."""
    uses: dict[str, dict[int, list[Use]]] = {}
    found = {item.trace_id: item for item in iter_traces(paths) if isinstance(item, Trace) and item.turns >= least_turns}
    traces = list(_labelled(sorted(found.values(), key=_size)[:count], uses))
    if not traces:
        raise InputError(f"no trace below these paths has {least_turns} turns; give files or folders of longer ones")
    raw: dict[str, Sequence[Message]] = {}
    embedder = load_embedder(load_profile("embedded"))
    index = Routed(EmbeddedRouter(embedder))
    kept = Kept()
    repeated = {trace_id: _repeated(own) for trace_id, own in uses.items()}
    for case in _with_progress(cases(traces, raw), traces):
        assert isinstance(case.trace, Trace)
        needed = [use for use in uses[case.trace.trace_id].get(case.t, ()) if max(use.blocks) < case.t - RECENT]
        chosen = set(index.route(case).steps)
        covered = [block for memory in case.query.memory.memories for block in memory.blocks if block.step in chosen]
        texts = [block_text(raw[block.raw_hash]) for block in covered]
        for use in needed:
            kept.add("evidence", any(holds(text, use.value) for text in texts))
        _survival(case, needed, repeated[case.trace.trace_id], kept)
    details = {
        "traces": len(traces),
        "decision_points": index.score.points,
        "needed_steps": index.score.needed,
        "needed_identifiers": kept.needed["summary"],
        "labels": "hindsight",
        "rule": Rule().facts(),
        "index": index.details(),
    }
    return index.ratios() | kept.shares(), details


def _size(trace: Trace) -> int:
    return sum(len(message.content) for message in trace.messages)


def _with_progress(found: Iterator[Case], traces: Sequence[Trace]) -> Iterator[Case]:
    """The cases, with a progress line now and then."""
    points = sum(label.target == "recall" and label.t > RECENT for trace in traces for label in trace.labels)
    said = time.monotonic()
    for number, case in enumerate(found):
        if time.monotonic() - said > SAY_SECONDS:
            said = time.monotonic()
            say(f"{number:,} of {points:,} decision points of {len(traces):,} traces")
        yield case


def _labelled(traces: Sequence[Trace], uses: dict[str, dict[int, list[Use]]]) -> Iterator[Trace]:
    """The traces with hindsight labels only; `uses` is filled with what each of their turns used."""
    tokens = MessageTokens(embedded_counter())
    for item in traces:
        timeline = lay_out(item, tokens)
        own = uses.setdefault(item.trace_id, {})
        for use in counted_uses(timeline):
            own.setdefault(use.t, []).append(use)
        yield labelled(Trace(item.trace_id, item.question_id, item.format, item.messages, item.tools), hindsight_labels(timeline))


def _repeated(uses: dict[int, list[Use]]) -> set[str]:
    count = Counter(use.value for own in uses.values() for use in own)
    return {value for value, number in count.items() if number > 1}


def _survival(case: Case, needed: Sequence[Use], repeated: set[str], kept: Kept) -> None:
    for use in needed:
        holding = [(memory, block) for memory in case.query.memory.memories for block in memory.blocks if block.step in use.blocks]
        found = {
            "summary": any(holds(memory.summary, use.value) for memory, _ in holding),
            "index": any(holds(block.detail, use.value) for _, block in holding),
        }
        for name, held in found.items():
            kept.add(name, held)
            if use.value in repeated:
                kept.add(f"{name}_repeated", held)
