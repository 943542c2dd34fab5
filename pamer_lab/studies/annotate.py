"""Labels by a language model: one question per decision point, one strict answer, everything stored for audit.

The model sees what `questions.py` shows, and its answer must be exactly the JSON object of `rubric.txt`; labels are made from nothing
else. Every answer is stored unchanged, so that a stopped run can resume: accepted answers are reused, other points are asked again, and
earlier answers are kept. A point that the model cannot answer is stored with the reason and the run continues; a server that is down or
refuses the key ends the run.
On disk: table `annotation_answers`, one row per question (a hash of rubric, question and annotator) and attempt, so that a trace finds its
answers again even if it is read from another file or has new labels. Labels made with the next action in view have a separate origin, so
that they are never mistaken for causal ones.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pyarrow as pa

from pamer_lab.counts import counted
from pamer_lab.models.answers import without_thinking
from pamer_lab.models.attempts import Unanswered
from pamer_lab.models.chat import UsageKind
from pamer_lab.models.usage import usage_of
from pamer_lab.storage import TableSpec, is_in
from pamer_lab.studies.questions import FUTURES, HISTORY_CHARACTERS, Future, Questions
from pamer_lab.trajectory.labels import INFORMED_MARK
from pamer_lab.trajectory.recorded import History, recorded_of
from pamer_lab.trajectory.values import Label, Trace
from pamer_lab.workspace import Workspace

FLUSH = 20
"""Answers stored per commit."""

Outcome = Literal["accepted", "refused", "failed"]
"""`accepted`: labels were made from the answer. `refused`: the answer is not the required JSON object. `failed`: there is no answer,
because the model cannot answer this question."""

ANNOTATIONS = TableSpec(
    name="annotation_answers",
    key=("question", "attempt"),
    schema=pa.schema(
        [
            ("question", pa.string()),
            ("attempt", pa.int64()),
            ("trace_id", pa.string()),
            ("t", pa.int64()),
            ("model", pa.string()),
            ("outcome", pa.string()),
            ("reason", pa.string()),
            ("raw", pa.large_string()),
            ("input_tokens", pa.int64()),
            ("output_tokens", pa.int64()),
            ("usage_kind", pa.string()),
            ("created", pa.string()),
        ]
    ),
)


@dataclass(frozen=True)
class Reply:
    """What a model answered."""

    text: str
    """Unchanged, including thinking."""
    input_tokens: int = 0
    output_tokens: int = 0
    usage_kind: UsageKind = "recorded"


Ask = Callable[[str, str], Reply]
"""(system text, user text) -> reply; raises `Unanswered` if the model cannot answer this question."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The required form of an answer."""

    compression: bool
    recall: bool
    steps: list[int]
    reason: str


@dataclass
class Annotation:
    """The result of an annotation run."""

    labels: dict[str, list[Label]] = field(default_factory=dict)
    """Labels by trace id: positives and negatives of both targets."""
    asked: int = 0
    kept: int = 0
    """Answers reused from an earlier run."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Trace, decision point and why its answer was refused."""
    failed: list[dict[str, Any]] = field(default_factory=list)
    """Trace, decision point and why there is no answer."""
    input_tokens: int = 0
    output_tokens: int = 0
    """`input_tokens` and `output_tokens` count only this run."""
    usage_kind: str = ""
    """Where these numbers come from; empty if nothing was answered."""


def annotate(
    traces: Sequence[Trace],
    ask: Ask,
    model: str,
    workspace: Workspace,
    *,
    say: Callable[[str], None] = lambda text: None,
    limit: int | None = None,
    history: int = HISTORY_CHARACTERS,
    future: Future = "none",
    state: History = "full",
) -> Annotation:
    """Label every decision point from 1 on; `limit` bounds the questions of this run, `history` the characters of history in each."""
    result, origin = Annotation(), origin_of(model, future)
    for trace in traces:
        asking = Questions(trace, future, recorded_of(trace, state), history)
        questions = {t: asking.text(t) for t in range(1, trace.turns)}
        keys = {t: question_key(asking.rubric, text, origin) for t, text in questions.items()}
        known = _known(workspace, keys.values())
        rows: list[dict[str, Any]] = []
        try:
            for t, text in questions.items():
                row = known.get(keys[t])
                if row is None or row["outcome"] != "accepted":
                    if limit is not None and result.asked >= limit:
                        continue
                    attempt = row["attempt"] + 1 if row else 1
                    place = {"question": keys[t], "attempt": attempt, "trace_id": trace.trace_id, "t": t, "model": origin}
                    row = place | _asked(asking, t, text, ask, result)
                    rows.append(row)
                    if len(rows) >= FLUSH:
                        workspace.database.upsert(ANNOTATIONS, rows)
                        rows = []
                else:
                    result.kept += 1
                _take(result, asking, t, row, origin)
        finally:
            if rows:
                workspace.database.upsert(ANNOTATIONS, rows)
        counts = f"{result.asked} asked, {len(result.refused)} refused, {len(result.failed)} failed"
        say(f"{trace.trace_id}: {counted(len(result.labels.get(trace.trace_id, ())), 'label')}, {counts}")
    return result


def origin_of(model: str, future: Future = "none") -> str:
    """The origin of labels by this model: the model's name, with a mark if it saw the next action."""
    return model if future == "none" else f"{model}{INFORMED_MARK}"


def question_key(rubric: str, text: str, origin: str) -> str:
    """The hash that names a question to an annotator."""
    return hashlib.sha256("\0".join((rubric, text, origin)).encode()).hexdigest()


def parse_answer(text: str, older: Collection[int]) -> Answer:
    """The answer without thinking, for a state with these older steps; `ValueError` says what is wrong with it."""
    try:
        answer = msgspec.json.decode(without_thinking(text).encode(), type=Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"not the expected JSON object: {error}") from error
    wrong = [step for step in answer.steps if step not in older]
    if wrong:
        raise ValueError(f"steps {wrong} are not older steps (there are {len(older)})")
    if len(set(answer.steps)) != len(answer.steps):
        raise ValueError("a step is named twice")
    if answer.recall != bool(answer.steps):
        raise ValueError("recall is true without steps" if answer.recall else "steps are named although recall is false")
    return answer


def _asked(asking: Questions, t: int, text: str, ask: Ask, result: Annotation) -> dict[str, Any]:
    result.asked += 1
    try:
        reply = ask(asking.rubric, text)
    except Unanswered as error:
        spent = usage_of(error)
        result.input_tokens += spent.input_tokens
        result.output_tokens += spent.output_tokens
        return _row("failed", str(error), Reply(""))
    result.input_tokens += reply.input_tokens
    result.output_tokens += reply.output_tokens
    result.usage_kind = reply.usage_kind
    try:
        parse_answer(reply.text, asking.older(t))
    except ValueError as error:
        return _row("refused", str(error), reply)
    return _row("accepted", "", reply)


def _row(outcome: Outcome, reason: str, reply: Reply) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "reason": reason,
        "raw": reply.text,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "usage_kind": reply.usage_kind,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _take(result: Annotation, asking: Questions, t: int, row: dict[str, Any], origin: str) -> None:
    trace_id, older = asking.trace.trace_id, asking.older(t)
    if row["outcome"] != "accepted":
        missing = result.failed if row["outcome"] == "failed" else result.refused
        missing.append({"trace_id": trace_id, "t": t, "reason": row["reason"]})
        return
    answer = parse_answer(row["raw"], older)
    own = result.labels.setdefault(trace_id, [])
    own.append(Label(t, "compression", answer.compression, origin))
    if older:
        own.append(Label(t, "recall", answer.recall, origin, tuple(answer.steps)))


def _known(workspace: Workspace, keys: Collection[str]) -> dict[str, dict[str, Any]]:
    """The newest answer to each question."""
    if not keys or not workspace.path.exists() or not workspace.database.exists(ANNOTATIONS):
        return {}
    rows = workspace.database.rows(ANNOTATIONS, where=is_in("question", list(keys)))
    return {row["question"]: row for row in sorted(rows, key=lambda row: int(row["attempt"]))}


def labelled(traces: Sequence[Trace], result: Annotation, model: str) -> Iterator[Trace]:
    """The traces with this model's labels in place of its earlier ones, whichever `future` they used; other origins stay."""
    own = {origin_of(model, future) for future in FUTURES}
    for trace in traces:
        kept = [label for label in trace.labels if label.origin not in own]
        yield msgspec.structs.replace(trace, labels=(*kept, *result.labels.get(trace.trace_id, ())))
