"""Traces -> the rows of a study: decision points with their questions and labels; and a seeded sample of them, stratified by question.

Decision point 0 is left out (it has no history). Recall counts only if external memory can exist: with full history from decision
point 3 on, when a block is older than Recent2; with recorded history after the trace's first memory operation. A trace without any label
for a target is not used for that target. If a trace has negatives or a model's answers, only its labelled points count; if it has only
positives, every other point is negative, as in the paper. The same seed and corpus give the same sample on any machine.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError
from pamer_lab.probes.split import SEEDS, LeakCheck, Split, check_leak, require_both_classes, split_by_question
from pamer_lab.trajectory.labels import INFORMED_MARK, POSITIVES_ENOUGH, by_hindsight
from pamer_lab.trajectory.recorded import History, memory_from, recorded_of
from pamer_lab.trajectory.values import Target, Trace

TARGETS: tuple[Target, ...] = ("compression", "recall")
FIRST = {"compression": 1, "recall": 3}
"""The first decision point at which each target counts, unless the trace records when its memory began."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Decisions:
    """Decision points of labelled traces, row by row."""

    keys: tuple[tuple[str, int], ...]
    """(trace id, t) of each row."""
    questions: tuple[str, ...]
    labels: Bools
    """[T, n], in the order of `TARGETS`."""
    counts: Bools
    """[T, n]: whether the row counts for the target."""
    corpus: str
    """SHA-256 of traces and labels, so that results identify their corpus."""
    history: History = "full"
    """The history from which states are rebuilt; `full` if no trace records memory operations."""
    recorded_traces: int = 0
    """Number of traces whose memory operations are applied; the others use their full history."""
    groups: tuple[str, ...] = ()
    """The source of each row, if splits keep sources rather than questions together; otherwise empty."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def question_numbers(self) -> npt.NDArray[np.int64]:
        """[n]: the index of each row's question among all questions, sorted."""
        place = {question: number for number, question in enumerate(sorted(set(self.questions)))}
        return np.array([place[question] for question in self.questions], dtype=np.int64)

    def facts(self) -> dict[str, object]:
        """A study's facts about its corpus."""
        positives = {target: int((self.labels[row] & self.counts[row]).sum()) for row, target in enumerate(TARGETS)}
        asked = {target: int(self.counts[row].sum()) for row, target in enumerate(TARGETS)}
        rebuilt = {"history": self.history, "recorded_traces": self.recorded_traces} if self.history == "recorded" else {}
        return rebuilt | {
            "corpus": self.corpus,
            "traces": len({trace for trace, _ in self.keys}),
            "questions": len(set(self.questions)),
            **({"sources": sorted(set(self.groups))} if self.groups else {}),
            "decision_points": len(self),
            "asked": asked,
            "positives": positives,
        }


def with_origin(traces: Iterable[Trace], origin: str) -> list[Trace]:
    """The traces with the labels of one origin only; if there are none, the error lists the known origins."""
    known = list(traces)
    kept = [msgspec.structs.replace(trace, labels=tuple(label for label in trace.labels if label.origin == origin)) for trace in known]
    if not any(trace.labels for trace in kept):
        origins = sorted({label.origin for trace in known for label in trace.labels})
        raise InputError(f"no label has the origin {origin!r}; there are: {', '.join(origins) or 'none'}")
    return kept


def decisions_of(
    traces: Iterable[Trace], history: History = "full", sources: Mapping[str, str] | None = None, *, by_source: bool = False
) -> Decisions:
    """All decision points of the labelled traces; a trace without labels is left out.

    With `sources` (by trace id), equal question ids of two sources are different questions; with `by_source`, splits keep each source
    together.
    """
    keys: list[tuple[str, int]] = []
    questions: list[str] = []
    rows: list[list[tuple[bool, bool]]] = []
    digest = hashlib.sha256()
    rebuilt = 0
    known = list(traces)
    _refuse_two_futures(known)
    _refuse_mixed_hindsight(known)
    groups: list[str] = []
    for trace in sorted(known, key=lambda trace: (trace.question_id, trace.trace_id)):
        if not trace.labels:
            continue
        recorded = recorded_of(trace, history)
        rebuilt += recorded is not None
        first = FIRST if recorded is None else FIRST | {"recall": max(1, memory_from(trace))}
        of_target = [_of_target(trace, target, first[target]) for target in TARGETS]
        source = sources[trace.trace_id] if sources else ""
        for t in range(1, trace.turns):
            if any(t in values for values in of_target):
                keys.append((trace.trace_id, t))
                questions.append(f"{source}/{trace.question_id}" if sources else trace.question_id)
                groups.append(source)
                rows.append([(values.get(t, False), t in values) for values in of_target])
        digest.update(f"{trace.trace_id}/{trace.question_id}/{[(label.t, label.target, label.value) for label in trace.labels]}".encode())
        if recorded is not None:
            digest.update(f"/{[(event.before_message, event.replaced, event.summary, event.text) for event in recorded.events]}".encode())
    if not rows:
        raise InputError("these traces have no labels; give labelled traces, or label them: pamer-lab annotate TRACE... or label TRACE...")
    packed = np.array(rows, dtype=bool)  # [n, T, 2]
    return Decisions(
        tuple(keys),
        tuple(questions),
        packed[..., 0].T.copy(),
        packed[..., 1].T.copy(),
        digest.hexdigest(),
        "recorded" if rebuilt else "full",
        rebuilt,
        tuple(groups) if by_source else (),
    )


def _refuse_two_futures(traces: Sequence[Trace]) -> None:
    """Refuse to mix labels of annotators that saw the next action with labels of others: they answer different questions."""
    origins = {label.origin for trace in traces for label in trace.labels if not by_hindsight(label)} - POSITIVES_ENOUGH
    informed = sorted(origin for origin in origins if origin.endswith(INFORMED_MARK))
    causal = sorted(origins.difference(informed))
    if informed and causal:
        raise InputError(
            f"these traces mix labels made with the next action ({informed[0]}) and without it ({causal[0]}); "
            "annotate all of them with the same --future"
        )


def _refuse_mixed_hindsight(traces: Sequence[Trace]) -> None:
    """Refuse to mix origins if one is hindsight: those labels say what a rule found, others what a source or annotator meant."""
    labels = [label for trace in traces for label in trace.labels]
    origins = sorted({label.origin for label in labels})
    if any(map(by_hindsight, labels)) and len(origins) > 1:
        raise InputError(f"these traces have labels of several origins ({', '.join(origins)}); choose one with --labels")


def make_splits(decisions: Decisions, seeds: Sequence[int] = SEEDS) -> tuple[tuple[Split, ...], tuple[LeakCheck, ...]]:
    """The splits of all seeds, checked: both classes in every part, no question in two parts."""
    for row, target in enumerate(TARGETS):
        if not decisions.counts[row].any():
            raise InputError(
                f"these traces have no {target} label at decision point {FIRST[target]} or later, and a study needs both targets; "
                f"add traces that have some, or label these: pamer-lab annotate TRACE..."
            )
    groups, words = (decisions.groups, "sources") if decisions.groups else (decisions.questions, "questions")
    splits = tuple(split_by_question(groups, seed, words) for seed in seeds)
    for split in splits:
        for row, target in enumerate(TARGETS):
            require_both_classes(split, decisions.labels[row], decisions.counts[row], target)
    return splits, tuple(check_leak(split, groups, words) for split in splits)


def _of_target(trace: Trace, target: Target, first: int) -> dict[int, bool]:
    """The label of each decision point that counts for the target; if origins disagree, it is positive."""
    own = [label for label in trace.labels if label.target == target]
    given: dict[int, bool] = {}
    for label in own:
        given[label.t] = given.get(label.t, False) or label.value
    throughout = bool(own) and all(label.value and label.origin in POSITIVES_ENOUGH for label in own)
    asked = {t: given.get(t, False) for t in range(trace.turns)} if throughout else given
    return {t: value for t, value in asked.items() if t >= first}


def sample(decisions: Decisions, count: int, seed: int = 0) -> Decisions:
    """A sample of about `count` decision points; a `count` of zero, or of more than there are, keeps all."""
    if count < 0:
        raise InputError(f"the size of a sample must be positive, or 0 for all decision points, not {count}")
    if not count or count >= len(decisions):
        return decisions
    rows = sample_rows(decisions, count, seed)
    return replace(
        decisions,
        keys=tuple(decisions.keys[row] for row in rows),
        questions=tuple(decisions.questions[row] for row in rows),
        groups=tuple(decisions.groups[row] for row in rows) if decisions.groups else (),
        labels=np.ascontiguousarray(decisions.labels[:, rows]),
        counts=np.ascontiguousarray(decisions.counts[:, rows]),
    )


def sample_rows(decisions: Decisions, count: int, seed: int = 0) -> list[int]:
    """Row numbers of the sample, ascending."""
    of_question: dict[str, list[int]] = defaultdict(list)
    for row, question in enumerate(decisions.questions):
        of_question[question].append(row)
    chosen: list[int] = []
    for question, quota in _quotas({name: len(rows) for name, rows in of_question.items()}, count).items():
        rows = sorted(of_question[question], key=lambda row: (_stratum(decisions, row), lot(seed, *decisions.keys[row])))
        start = lot(seed, question, -1)
        chosen += [rows[int((number + start) * len(rows) / quota)] for number in range(quota)]
    return sorted(chosen)


def _quotas(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Points per question, in proportion to its size: at least one each, the largest remainders rounded up."""
    total = sum(sizes.values())
    exact = {name: count * size / total for name, size in sizes.items()}
    quotas = {name: max(1, int(share)) for name, share in exact.items()}
    # By remaining deficit: a question whose only point is in the sample is above its share and has no second point.
    for name in sorted(exact, key=lambda name: (quotas[name] - exact[name], name)):
        if sum(quotas.values()) >= count:
            break
        quotas[name] += 1
    return quotas


def _stratum(decisions: Decisions, row: int) -> tuple[int, ...]:
    """The stratum of a row: its labels and the targets it counts for."""
    return tuple(int(value) for value in (*decisions.labels[:, row], *decisions.counts[:, row]))


def lot(*parts: str | int) -> float:
    """A number in [0, 1) that depends only on the arguments."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
