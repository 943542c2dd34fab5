"""A live session in numbers: what the client sent, what the model saw, what the provider billed, and what an unedited session would cost.

Billed tokens are the provider's own (`recorded`); a call without usage counts as unknown, never as zero. The comparison with passing
everything through is `simulated`: both sides are priced with the same cache model and tokenizer, on the requests that were sent.
"""

from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from pamer_lab.live.record import Answered, Asked, Record
from pamer_lab.live.usage import Billing
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.runs.cost import run_cost
from pamer_lab.runs.values import Run, RunInfo, Turn

BILLED = ("uncached", "read", "write", "output")


def sent_turns(record: Record) -> list[Turn]:
    """What the model was shown at each turn that has a request, with the output tokens that the provider reported."""
    output = dict.fromkeys((asked.t for asked in record.asked), 0)
    for asked in record.asked:
        answer = record.answers.get(asked.n)
        if answer and answer.usage:
            output[asked.t] = answer.usage.output or 0
    seen = {record.seen[asked.n].t: record.seen[asked.n] for asked in record.asked if asked.n in record.seen}
    return [structs.replace(seen[t], output_tokens=output.get(t, 0)) for t in sorted(seen)]


def run_of(record: Record, turns: list[Turn] | None = None) -> Run:
    """The session as a run: what the model saw at each turn, and why."""
    known = record.turns if turns is None else turns
    first = known[0] if known else None
    sizes = _block_tokens(record)
    head_tokens = {item.kind: item.tokens for item in first.items if item.kind in ("tools", "prefix")} if first else {}
    opened = record.opened
    head = RunInfo(
        run_id=record.run_id,
        trace_id=record.trace_id,
        question_id=f"live {record.session}",
        task_id="",
        policy=record.policy,
        profile=opened.profile,
        settings=record.settings,
        tokenizer=opened.tokenizer,
        tokens_kind=opened.tokens_kind,
        turns=len(known),
        trace_turns=len(known),
        prefix_tokens=head_tokens.get("prefix", 0),
        tools_tokens=head_tokens.get("tools", 0),
        block_tokens=(*sizes, known[-1].output_tokens) if known else (),
        status="done",
        started=datetime.fromtimestamp(opened.at, UTC).isoformat(timespec="milliseconds"),
        finished=datetime.fromtimestamp(record.last, UTC).isoformat(timespec="milliseconds"),
        heads=record.heads,
        times=_times(record, known),
    )
    return Run(head, tuple(known))


def _block_tokens(record: Record) -> list[int]:
    """Tokens of each block of the client's history except the newest; blocks between two counted turns are summed on the first one."""
    sizes: list[int] = []
    before = 0
    for t in sorted(record.raw_tokens):
        if t:
            sizes += [record.raw_tokens[t] - before, *[0] * (t - len(sizes) - 1)]
        before = record.raw_tokens[t]
    return sizes


def _times(record: Record, turns: list[Turn]) -> tuple[float, ...]:
    """Time of each turn's request, up to the last turn; a turn without a request has the time of the next request."""
    times: list[float] = []
    for asked in record.asked:
        times += [asked.at] * (asked.t + 1 - len(times))
    return tuple(times[: turns[-1].t + 1]) if turns else ()


def billed(record: Record) -> tuple[Billing, int]:
    """Usage that the provider reported for all calls, by part (None: never reported), and the number of answered calls without usage."""
    known = [answer.usage for answer in record.answers.values() if answer.usage]
    answered = sum(answer.status < 400 and answer.status != 0 for answer in record.answers.values())
    sums = [[value for usage in known if (value := getattr(usage, name)) is not None] for name in BILLED]
    return Billing(*(sum(values) if values else None for values in sums)), answered - len(known)


def summary(record: Record, prices: PriceTable | None = None) -> dict[str, Any]:
    """One line of `pamer-lab live list`."""
    prices = prices or find_prices("")
    turns, opened = sent_turns(record), record.opened
    total, unknown = billed(record)
    return {
        "session": record.session,
        "client": opened.client,
        "api": opened.api,
        "policy": record.policy,
        "policies": list(record.policies),
        "turns": len({asked.t for asked in record.asked if record.ends[asked.n]}),
        "requests": len(record.asked),
        "edits": sum(asked.edit for asked in record.asked),
        "fallbacks": sum(bool(asked.fallback) for asked in record.asked),
        "errors": sum(bool(answer.error) for answer in record.answers.values()),
        "paused": record.paused,
        "stopped": record.stopped,
        "parent": opened.parent,
        "found_by": opened.how,
        "started": opened.at,
        "last": record.last,
        "upstream": opened.upstream,
        "tokens": {
            "client": sum(turn.raw_tokens for turn in turns),
            "model": sum(turn.active_tokens for turn in turns),
            "recalled": sum(item.tokens for turn in turns for item in turn.items if item.kind in ("recalled", "evidence")),
            "tokenizer": opened.tokenizer,
            "kind": opened.tokens_kind,
            "billed": structs.asdict(total) | {"kind": "recorded", "calls_without_usage": unknown},
        },
        "cost": cost(record, prices, total, unknown),
        "trace_id": record.trace_id,
        "run_id": record.run_id,
    }


def cost(record: Record, prices: PriceTable, total: Billing, unknown: int) -> dict[str, Any]:
    """The cost of the billed tokens at a table's prices, and the simulated cost with and without edits."""
    turns = sent_turns(record)
    named = {"prices": prices.name, "date": prices.date, "currency": prices.currency}
    found: dict[str, Any] = named | {"kind": "recorded", "total": total.money(prices)}
    found["complete"] = not unknown and found["total"] is not None
    if turns:
        simulated = run_cost(run_of(record, turns), prices)
        found |= {"simulated": simulated.total, "passed_through": simulated.base_total, "vs_base": simulated.vs_base}
        found |= {"auxiliary": simulated.parts["auxiliary"], "rewritten": simulated.tokens["rewritten"]}
    return found


def described(record: Record, prices: PriceTable | None = None) -> dict[str, Any]:
    """A session with all its requests, for `pamer-lab live show` and the page."""
    return summary(record, prices) | {
        "requests": [request_row(record, asked, record.answers.get(asked.n)) for asked in record.asked],
        "side_calls": [structs.asdict(side) for side in record.sides],
        "changes": [structs.asdict(change) | {"settings": {}, "heads": {}} for change in record.changes],
    }


def request_row(record: Record, asked: Asked, answer: Answered | None) -> dict[str, Any]:
    """One request: what happened, why, and what came back."""
    turn = record.seen.get(asked.n)
    usage = answer.usage if answer else None
    return {
        "n": asked.n,
        "at": asked.at,
        "t": asked.t,
        "policy": record.under[asked.n],
        "action": turn.action if turn else "pass",
        "sent": asked.sent,
        "edit": asked.edit,
        "reason": asked.reason,
        "fallback": asked.fallback,
        "again": asked.again,
        "model": asked.model,
        "client_tokens": turn.raw_tokens if turn else None,
        "model_tokens": (turn.raw_tokens if answer and answer.refused else turn.active_tokens) if turn else None,
        "client_bytes": asked.client_bytes,
        "sent_bytes": asked.sent_bytes,
        "usage": structs.asdict(usage) if usage else None,
        "status": answer.status if answer else None,
        "error": answer.error if answer else "",
        "refused": answer.refused if answer else 0,
        "ms": asked.ms | ({f"upstream_{name}": value for name, value in answer.ms.items()} if answer else {}),
    }
