"""Labels by a language model: one question per decision point, one strict answer, everything kept for audit.

The model sees the task and all steps before the decision, numbered, and never the action that follows. Its answer must be
exactly the JSON object of `rubric.txt`; anything else is refused and no label is made from it. Every answer is stored as it
came, so that a run can be stopped and goes on where it was: accepted answers are not asked for again, refused ones are.
On disk: table `annotations`, one row per trace, decision point, model and rubric.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from pamer_lab.blocks import Cut, cut
from pamer_lab.blocks.render import render_message
from pamer_lab.storage import TableSpec, equals
from pamer_lab.trajectory.values import Label, Trace
from pamer_lab.workspace import Workspace

RUBRIC = (Path(__file__).parent / "rubric.txt").read_text(encoding="utf-8")
RETAINED = 2
"""Newest steps that count as active."""
MESSAGE_CHARACTERS = 6_000
"""A longer message keeps its beginning and end."""
HISTORY_CHARACTERS = 60_000
"""A longer history leaves out its oldest steps' text, but keeps their numbers."""
FLUSH = 20
"""Answers stored per commit."""

ANNOTATIONS = TableSpec(
    name="annotations",
    key=("trace_id", "t", "model", "rubric"),
    schema=pa.schema(
        [
            ("trace_id", pa.string()),
            ("t", pa.int64()),
            ("model", pa.string()),
            ("rubric", pa.string()),
            ("outcome", pa.string()),
            ("reason", pa.string()),
            ("raw", pa.large_string()),
            ("input_tokens", pa.int64()),
            ("output_tokens", pa.int64()),
            ("created", pa.string()),
        ]
    ),
)


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


Ask = Callable[[str, str], Reply]
"""(system text, user text) -> reply."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agreed answer."""

    compression: bool
    recall: bool
    steps: list[int]
    reason: str


@dataclass
class Annotation:
    """What an annotation run came to."""

    labels: dict[str, list[Label]] = field(default_factory=dict)
    """By trace id; positives and negatives of both targets."""
    asked: int = 0
    kept: int = 0
    """Answers that were there from an earlier run."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Trace, decision point and why its answer was refused."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Of this run."""


def annotate(
    traces: Sequence[Trace],
    ask: Ask,
    model: str,
    workspace: Workspace,
    *,
    say: Callable[[str], None] = lambda text: None,
    limit: int | None = None,
) -> Annotation:
    """Label every decision point from 1 on; `limit` bounds the questions of this run."""
    result = Annotation()
    rubric = hashlib.sha256(RUBRIC.encode()).hexdigest()[:12]
    for trace in traces:
        pieces = cut(trace.messages)
        known = _known(workspace, trace.trace_id, model, rubric)
        rows: list[dict[str, Any]] = []
        try:
            for t in range(1, trace.turns):
                row = known.get(t)
                if row is None or row["outcome"] != "accepted":
                    if limit is not None and result.asked >= limit:
                        break
                    row = _asked(trace, pieces, t, ask, model, rubric, result)
                    rows.append(row)
                    if len(rows) >= FLUSH:
                        workspace.database.upsert(ANNOTATIONS, rows)
                        rows = []
                else:
                    result.kept += 1
                _take(result, trace, t, row, model)
        finally:
            if rows:
                workspace.database.upsert(ANNOTATIONS, rows)
        say(f"{trace.trace_id}: {len(result.labels.get(trace.trace_id, ()))} labels, {result.asked} asked, {len(result.refused)} refused")
    return result


def question(trace: Trace, t: int, pieces: Cut | None = None) -> str:
    """What the model is shown at a decision point: the task and the steps before it."""
    pieces = pieces or cut(trace.messages)
    task = "".join(_short(render_message(message)) for message in trace.messages[: pieces.prefix_end])
    steps = [
        f"[step {block.index}{', active' if block.index >= t - RETAINED else ''}]\n"
        + "".join(_short(render_message(message)) for message in block.of(trace.messages))
        for block in pieces.before(t)
    ]
    room = HISTORY_CHARACTERS - len(task)
    shown: list[str] = []
    for number in range(len(steps) - 1, -1, -1):
        room -= len(steps[number])
        shown.append(steps[number] if room >= 0 else f"[step {number}] (left out: too long)\n")
    return f"{task}\n{''.join(reversed(shown))}\nWhat does the state before the next action need? Answer with the JSON object."


def parse_answer(text: str, t: int) -> Answer:
    """The answer, if it is exactly what was agreed; otherwise a `ValueError` that says what is wrong."""
    try:
        answer = msgspec.json.decode(text.strip().encode(), type=Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"not the agreed JSON object: {error}") from error
    older = max(0, t - RETAINED)
    wrong = [step for step in answer.steps if not 0 <= step < older]
    if wrong:
        raise ValueError(f"steps {wrong} are not older steps (there are {older})")
    if len(set(answer.steps)) != len(answer.steps):
        raise ValueError("a step is named twice")
    if answer.recall != bool(answer.steps):
        raise ValueError("recall is true without steps" if answer.recall else "steps are named although recall is false")
    return answer


def _asked(trace: Trace, pieces: Cut, t: int, ask: Ask, model: str, rubric: str, result: Annotation) -> dict[str, Any]:
    reply = ask(RUBRIC, question(trace, t, pieces))
    result.asked += 1
    result.input_tokens += reply.input_tokens
    result.output_tokens += reply.output_tokens
    outcome, reason = "accepted", ""
    try:
        parse_answer(reply.text, t)
    except ValueError as error:
        outcome, reason = "refused", str(error)
    return {
        "trace_id": trace.trace_id,
        "t": t,
        "model": model,
        "rubric": rubric,
        "outcome": outcome,
        "reason": reason,
        "raw": reply.text,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _take(result: Annotation, trace: Trace, t: int, row: dict[str, Any], model: str) -> None:
    if row["outcome"] != "accepted":
        result.refused.append({"trace_id": trace.trace_id, "t": t, "reason": row["reason"]})
        return
    answer = parse_answer(row["raw"], t)
    own = result.labels.setdefault(trace.trace_id, [])
    own.append(Label(t, "compression", answer.compression, model))
    if t > RETAINED:
        own.append(Label(t, "recall", answer.recall, model, tuple(answer.steps)))


def _known(workspace: Workspace, trace_id: str, model: str, rubric: str) -> dict[int, dict[str, Any]]:
    if not workspace.path.exists() or not workspace.database.exists(ANNOTATIONS):
        return {}
    where = " AND ".join((equals("trace_id", trace_id), equals("model", model), equals("rubric", rubric)))
    return {row["t"]: row for row in workspace.database.rows(ANNOTATIONS, where=where)}


def labelled(traces: Sequence[Trace], result: Annotation, model: str) -> Iterator[Trace]:
    """The traces with this model's labels in place of its earlier ones; other origins stay."""
    for trace in traces:
        kept = [label for label in trace.labels if label.origin != model]
        yield msgspec.structs.replace(trace, labels=(*kept, *result.labels.get(trace.trace_id, ())))


def _short(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    half = MESSAGE_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
