"""Turns -> totals: every token counted once, and the saving explained block by block.

`T = main input + main output + auxiliary input + auxiliary output` (Appendix D.2); cached input is part of main input, and
features, embeddings and whatever a rule did without a model (extractive summaries) are local work, which is counted separately.
`if_called` estimates the totals with those rules' reading and writing billed as calls. The amortised saving of Appendix C.5,
`base - total = sum_j m_j L_j - A_add`, is checked for every run: `m_j` counts the requests that block `j` was left out of, and
`A_add` is the text put into requests plus the auxiliary tokens.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from pamer_lab.decisions import Item, shared_start
from pamer_lab.runs.ledger import LedgerError
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Trace

COMPUTATION = ("features", "embedding", "pruning")
"""Local work that no language model would be billed for."""


def totals(timeline: Timeline, turns: Sequence[Turn]) -> dict[str, Any]:
    """The totals of a run, or of the turns it has so far."""
    main_input = sum(turn.active_tokens for turn in turns)
    main_output = sum(turn.output_tokens for turn in turns)
    operations, local = _spent(turns)
    aux_input = sum(row["input"] for row in operations.values())
    aux_output = sum(row["output"] for row in operations.values())
    base_total = sum(turn.raw_tokens for turn in turns) + main_output
    total = main_input + main_output + aux_input + aux_output
    cached = sum(turn.cached_tokens for turn in turns)
    left_out, added = _saving(timeline, turns)
    if base_total - total != left_out - added - aux_input - aux_output:
        raise LedgerError(
            f"the saving does not add up: {base_total} - {total} tokens, but {left_out} left out and {added + aux_input + aux_output} added"
        )
    return {
        "main_input": main_input,
        "main_output": main_output,
        "aux_input": aux_input,
        "aux_output": aux_output,
        "total": total,
        "base_total": base_total,
        "peak_active": max((turn.active_tokens for turn in turns), default=0),
        "reduction_pct": 100 * (1 - total / base_total) if base_total else 0.0,
        "cached_input": cached,
        "uncached_input": main_input - cached,
        "if_called": _if_called(local, total, base_total),
        "auxiliary": operations,
        "local_work": local,
        "saving": {"left_out": left_out, "added": added, "auxiliary": aux_input + aux_output, "saved": base_total - total},
        "prefix": prefix_facts(turns),
        "actions": {name: sum(turn.action == name for turn in turns) for name in ("pass", "compress", "recall", "fallback")},
        "recorded": recorded_usage(timeline.trace, len(turns)),
        "tokenizer": timeline.tokenizer,
        "kind": timeline.kind,
    }


def prefix_facts(turns: Sequence[Turn]) -> dict[str, int]:
    """How often a request does not begin with the previous one: all `breaks`, and `violations`, those without a compression or fallback."""
    pairs = pairwise(turns)
    breaks = [(before, now) for before, now in pairs if now.cached_tokens < before.active_tokens]
    edits = [now.action in ("compress", "fallback") or before.action == "fallback" for before, now in breaks]
    return {"breaks": len(breaks), "violations": len(breaks) - sum(edits)}


def _if_called(local: dict[str, dict[str, Any]], total: int, base_total: int) -> dict[str, Any]:
    """The total if a model had done what rules did here: an estimate, since a model would word things its own way."""
    rules = [row for name, row in local.items() if name not in COMPUTATION]
    more = sum(row["input"] + row["output"] for row in rules)
    reduction = 100 * (1 - (total + more) / base_total) if base_total else 0.0
    return {"kind": "estimated", "auxiliary": more, "total": total + more, "reduction_pct": reduction}


def recorded_usage(trace: Trace, turns: int) -> dict[str, Any] | None:
    """Usage that the source itself recorded for these turns, never mixed with our counts; None if there is none."""
    said = [message.usage for message in trace.messages if message.role == "assistant"][:turns]
    known = [usage for usage in said if usage is not None]
    if known:
        return {
            "kind": "recorded",
            "input": sum(usage.input_tokens for usage in known),
            "output": sum(usage.output_tokens for usage in known),
            "cached": sum(usage.cached_tokens for usage in known),
            "turns_with_usage": len(known),
        }
    if trace.usage is None:
        return None
    whole = trace.usage
    return {
        "kind": "recorded",
        "input": whole.input_tokens,
        "output": whole.output_tokens,
        "cached": whole.cached_tokens,
        "whole_run": True,
    }


def _spent(turns: Sequence[Turn]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Auxiliary and local work by operation."""
    auxiliary: dict[str, dict[str, Any]] = {}
    local: dict[str, dict[str, Any]] = {}
    for turn in turns:
        for spent in turn.spent:
            table = local if spent.local else auxiliary
            row = table.setdefault(spent.operation, {"input": 0, "output": 0, "calls": defaultdict(int)})
            row["input"] += spent.input_tokens
            row["output"] += spent.output_tokens
            row["calls"][spent.model or "unnamed"] += spent.calls
            if spent.unknown:
                row["unknown_calls"] = row.get("unknown_calls", 0) + spent.unknown
    return _plain(auxiliary), _plain(local)


def _plain(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: row | {"calls": dict(row["calls"])} for name, row in sorted(table.items())}


def _saving(timeline: Timeline, turns: Sequence[Turn]) -> tuple[int, int]:
    """`sum_j m_j L_j` from the ledger's letters, and the tokens of text that was put into requests."""
    states = [np.frombuffer(turn.states.encode(), dtype=np.uint8) for turn in turns]
    avoided = np.zeros(len(timeline.pieces.blocks), dtype=np.int64)
    for letters in states:
        avoided[: len(letters)] += letters != ord("A")
    left_out = int(avoided @ np.asarray(timeline.block_tokens, dtype=np.int64))
    return left_out, sum(_added(turns))


def _added(turns: Sequence[Turn]) -> Iterator[int]:
    """Tokens of text that was put into each request; the start it shares with the previous request is summed only once."""
    before: tuple[Item, ...] = ()
    sums = [0]
    for turn in turns:
        same = shared_start(before, turn.items)
        del sums[same + 1 :]
        sums += [*accumulate((item.tokens if item.text else 0 for item in turn.items[same:]), initial=sums[-1])][1:]
        yield sums[-1]
        before = turn.items
