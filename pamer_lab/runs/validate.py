"""Validates the rows of a run file before they enter a workspace: they are untrusted, and pages, tables and commands will show them.

Texts of turns and memories may say anything; they are shown as text.
Invariant: an imported run has equal values in its table row and its head, known policy, counting, actions and block states, plain names,
totals if it is finished, a state for each earlier block of every turn, and every text that it refers to.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args

import msgspec
import pyarrow as pa

from pamer_lab.audit.tables import MOST_STEP, MOST_TOKENS, SELECTIONS, are_steps, check_selection
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.decisions import LETTERS, Action, Item, Span, Spent
from pamer_lab.errors import FormatError, InputError
from pamer_lab.memory.schema import MEMORIES
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.store import run_row
from pamer_lab.runs.turn_rows import TEXTS, TURNS, StoredItems, spelled
from pamer_lab.runs.values import RunInfo
from pamer_lab.workspace import RUNS

PLAIN = re.compile(r"[\w .,@+~/\\:-]{0,200}")
"""A name of a model, tokenizer or profile, folders included: no brackets, quotes or line breaks."""
PACKED = {"items": StoredItems, "stored": tuple[Span, ...], "spent": tuple[Spent, ...]}
"""Columns of a turn that hold packed values, with their types."""


HEADS = ("logits", "thresholds", "votes")
"""Columns of a turn with one value per head."""
PACKED_BYTES, HEAD_BYTES = 2_000_000, 10_000_000
"""Bytes of one packed column of a turn, and of a run's head: small values become large objects."""
ITEMS_FREE, ITEMS_PER_BLOCK = 100, 4
"""Items that any turn may have, and how many more for each block before it."""
ROWS_AT_ONCE = 1_000
COUNTS = ("raw_tokens", "active_tokens", "candidate_tokens", "output_tokens", "cached_tokens")
"""Columns of a turn that count tokens."""

_Total = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""Tokens of all requests of a run."""


class _Part(msgspec.Struct):
    input: _Total
    output: _Total
    cached: _Total = 0
    turns_with_usage: _Total = 0


class _Totals(msgspec.Struct):
    """What is read of a finished run's totals."""

    main_input: _Total
    main_output: _Total
    aux_input: _Total
    aux_output: _Total
    total: _Total
    base_total: _Total
    peak_active: _Total
    cached_input: _Total
    uncached_input: _Total
    reduction_pct: float
    auxiliary: dict[str, _Part]
    recorded: _Part | None


def admit(tables: Mapping[str, pa.Table], path: str = "") -> None:
    """Reject the file if a run, turn, selection or memory is invalid."""
    for row in _rows(tables[RUNS.name]):
        _run(row, path)
    texts = tables[TEXTS.name]
    known = set(zip(texts["run_id"].to_pylist(), texts["text_id"].to_pylist(), strict=True))
    counts: dict[tuple[str, int], tuple[list[Span], int]] = {}
    for row in _rows(tables[TURNS.name].select(["run_id", "t", "action", "states", "restored_steps", *COUNTS, *HEADS, *PACKED])):
        counts[row["run_id"], row["t"]] = _turn(row, known, path)
    for (run, t), (stayed, own) in counts.items():
        before = _number(*counts.get((run, t - 1), ([], 0)))
        inside = all(0 <= first <= last <= before for first, last in stayed)
        if not inside or _number(stayed, own) > ITEMS_FREE + ITEMS_PER_BLOCK * t:
            raise FormatError("has more items than its blocks and the previous turn allow", path=path, where=f"run {run}, turn {t}")
    for row in _rows(tables[SELECTIONS.name]):
        try:
            check_selection(row)
        except ValueError as error:
            raise FormatError(str(error), path=path, where=f"selection {str(row['audit_id'])[:60]}") from error
    for row in _rows(tables[MEMORIES.name].select(["memory_id", "sequence", "blocks"])):
        steps = [block["step"] for block in row["blocks"] or () if block is not None]
        if not are_steps(steps) or not 0 <= (row["sequence"] or 0) <= MOST_STEP:
            raise FormatError("covers steps that cannot exist", path=path, where=f"memory {str(row['memory_id'])[:60]}")


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows a few at a time: as Python values they take many times their size."""
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        yield from batch.to_pylist()


def _number(stayed: Sequence[Span], own: int) -> int:
    """Number of a turn's items: those taken from the previous turn, and its own."""
    return own + sum(last - first for first, last in stayed)


def _turn(row: dict[str, Any], texts: set[tuple[str, str]], path: str) -> tuple[list[Span], int]:
    """Checks a turn; returns the spans of items it takes from the previous turn, and how many items are its own."""
    where = f"run {row['run_id']}, turn {row['t']}"
    states = row["states"] or ""
    if row["action"] not in get_args(Action) or not set(states) <= LETTERS.keys():
        raise FormatError("has an unknown action or block state", path=path, where=where)
    t = row["t"]
    if t is None or len(states) != t or len({len(row[name] or ()) for name in HEADS}) != 1:
        raise FormatError("has the wrong number of block states or votes for the turn", path=path, where=where)
    if any(len(row[name] or b"") > PACKED_BYTES for name in PACKED):
        raise FormatError("contains more than this program writes for a turn", path=path, where=where)
    packed = {name: _decoded(row[name], kind, path, where) for name, kind in PACKED.items()}
    entries = spelled(packed["items"])
    items = [entry for entry in entries if isinstance(entry, Item)]
    spans = [*packed["stored"], *(span for item in items for span in item.spans)]
    steps = [*(row["restored_steps"] or ()), *(step for item in items for step in item.in_part)]
    if not all(0 <= first <= last <= t + 1 for first, last in spans) or not are_steps(steps, t):
        raise FormatError("refers to blocks that the turn does not have", path=path, where=where)
    if not all(0 <= count <= MOST_TOKENS for count in (*(item.tokens for item in items), *(row[name] or 0 for name in COUNTS))):
        raise FormatError("has an impossible token count", path=path, where=where)
    if any(item.text and (row["run_id"], item.text) not in texts for item in items):
        raise FormatError("refers to a text that is not in the file", path=path, where=where)
    return [entry for entry in entries if not isinstance(entry, Item)], len(items)


def _run(row: dict[str, Any], path: str) -> None:
    where = f"run {row['run_id']}"
    if len(row["head"] or b"") > HEAD_BYTES:
        raise FormatError("contains more about a run than this program writes", path=path, where=where)
    head: RunInfo = _decoded(row["head"], RunInfo, path, where)
    if head.status == "done":
        _decoded(msgspec.msgpack.encode(head.totals), _Totals, path, where)
    if run_row(head) | {"head": row["head"]} != row:
        raise FormatError("has different values for a run in its table and in its head", path=path, where=where)
    counts = (head.turns, head.trace_turns, len(head.block_tokens), *head.incomplete)
    if not all(0 <= count <= MOST_STEP for count in counts) or not all(0 <= count <= MOST_TOKENS for count in head.block_tokens):
        raise FormatError("has more turns, blocks or tokens than a trace can have", path=path, where=where)
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
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise FormatError(f"contains values of the wrong type ({error})", path=path, where=where) from error
