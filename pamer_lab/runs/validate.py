"""Validates the rows of a run file before they enter a workspace: they are untrusted, and pages, tables and commands will show them.

Texts of turns and memories may say anything; they are shown as text.
Invariant: an imported run has equal values in its table row and its head, known policy, counting, actions and block states, plain names,
totals if it is finished, a state for each earlier block of every turn, and every text that it refers to.
"""

import re
from typing import Any, get_args

import msgspec
import pyarrow as pa

from pamer_lab.blocks.tokens import CountKind
from pamer_lab.decisions import LETTERS, Action, Item, Span, Spent
from pamer_lab.errors import FormatError, InputError
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.store import run_row
from pamer_lab.runs.values import RunInfo

PLAIN = re.compile(r"[\w .,@+~/\\:-]{0,200}")
"""A name of a model, tokenizer or profile, folders included: no brackets, quotes or line breaks."""
PACKED = {"items": tuple[Item, ...], "stored": tuple[Span, ...], "spent": tuple[Spent, ...]}
"""Columns of a turn that hold packed values, with their types."""


HEADS = ("logits", "thresholds", "votes")
"""Columns of a turn with one value per head."""


class _Part(msgspec.Struct):
    input: int
    output: int
    cached: int = 0
    turns_with_usage: int = 0


class _Totals(msgspec.Struct):
    """What is read of a finished run's totals."""

    main_input: int
    main_output: int
    aux_input: int
    aux_output: int
    total: int
    base_total: int
    peak_active: int
    cached_input: int
    uncached_input: int
    reduction_pct: float
    auxiliary: dict[str, _Part]
    recorded: _Part | None


def admit(runs: pa.Table, turns: pa.Table, texts: pa.Table, path: str = "") -> None:
    """Reject the file if a run or turn is invalid."""
    for row in runs.to_pylist():
        _run(row, path)
    known = set(zip(texts["run_id"].to_pylist(), texts["text_id"].to_pylist(), strict=True))
    for row in turns.select(["run_id", "t", "action", "states", *HEADS, *PACKED]).to_pylist():
        _turn(row, known, path)


def _turn(row: dict[str, Any], texts: set[tuple[str, str]], path: str) -> None:
    where = f"run {row['run_id']}, turn {row['t']}"
    states = row["states"] or ""
    if row["action"] not in get_args(Action) or not set(states) <= LETTERS.keys():
        raise FormatError("has an unknown action or block state", path=path, where=where)
    if len(states) != row["t"] or len({len(row[name] or ()) for name in HEADS}) != 1:
        raise FormatError("has the wrong number of block states or votes for the turn", path=path, where=where)
    packed = {name: _decoded(row[name], kind, path, where) for name, kind in PACKED.items()}
    if any(item.text and (row["run_id"], item.text) not in texts for item in packed["items"]):
        raise FormatError("names a text that is not in the file", path=path, where=where)


def _run(row: dict[str, Any], path: str) -> None:
    where = f"run {row['run_id']}"
    head: RunInfo = _decoded(row["head"], RunInfo, path, where)
    if head.status == "done":
        _decoded(msgspec.msgpack.encode(head.totals), _Totals, path, where)
    if run_row(head) | {"head": row["head"]} != row:
        raise FormatError("has different values for a run in its table and in its head", path=path, where=where)
    try:
        known = parse_policy(head.policy).name == head.policy
    except InputError:
        known = False
    if not known:
        raise FormatError(f"names an unknown policy: {head.policy[:60]!r}", path=path, where=where)
    if head.tokens_kind not in get_args(CountKind):
        raise FormatError(f"has an unknown kind of token count: {head.tokens_kind[:60]!r}", path=path, where=where)
    for name, value in (("tokenizer", head.tokenizer), ("profile", head.profile), ("time", head.started)):
        if not PLAIN.fullmatch(value) or "//" in value:
            raise FormatError(f"names a {name} with invalid characters: {value[:60]!r}", path=path, where=where)


def _decoded(body: bytes | None, kind: Any, path: str, where: str) -> Any:
    try:
        return msgspec.msgpack.decode(body or b"", type=kind)
    except msgspec.MsgspecError as error:
        raise FormatError(f"holds values of another kind ({error})", path=path, where=where) from error
