"""A run as plain JSON, with the contract's keys.

Every count names its tokenizer and kind, and the output states that actions are fixed.
"""

from typing import Any

import msgspec

from pamer_lab.decisions import block_states
from pamer_lab.policies.registry import describe_policies
from pamer_lab.runs.cost import RunCost
from pamer_lab.runs.drops import drops, drops_json
from pamer_lab.runs.evidence import Uses, fates, survival_rates, uses
from pamer_lab.runs.recorded import compactions, not_in_file, recorded_context, recorded_events
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import FIXED_ACTIONS, Run, Turn


def turn_json(turn: Turn) -> dict[str, Any]:
    """One turn, with words for states; items are counted by kind here and listed in full by `ledger.expand`."""
    return {
        "t": turn.t,
        "action": turn.action,
        "reason": turn.reason,
        "raw_tokens": turn.raw_tokens,
        "active_tokens": turn.active_tokens,
        "candidate_tokens": turn.candidate_tokens,
        "output_tokens": turn.output_tokens,
        "cached_tokens": turn.cached_tokens,
        "logits": list(turn.logits),
        "votes": list(turn.votes),
        "thresholds": list(turn.thresholds),
        "memory_ids": list(turn.memory_ids),
        "restored_steps": list(turn.restored_steps),
        "restored_in_part": list(turn.restored_in_part),
        "block_states": block_states(turn.states),
        "items": [_item_json(item) for item in turn.items],
        "auxiliary": msgspec.to_builtins(turn.spent),
        "error": turn.error,
    }


def run_json(run: Run, timeline: Timeline, *, cost: RunCost | None = None, used: Uses | None = None) -> dict[str, Any]:
    """A run with everything that is derived from it."""
    head = run.head
    used = uses(timeline) if used is None else used
    found = fates(timeline, run.turns, used)
    return {
        "run_id": head.run_id,
        "trace_id": head.trace_id,
        "question_id": head.question_id,
        "policy": head.policy,
        "deviations": deviations(head.policy),
        "profile": head.profile,
        "settings": head.settings,
        "heads": head.heads,
        "status": head.status,
        "tokenizer": head.tokenizer,
        "tokens_kind": head.tokens_kind,
        "turn_limit": head.turns if head.turns < head.trace_turns else None,
        "turns": [turn_json(turn) for turn in run.turns],
        "totals": head.totals,
        "cost": cost.as_json() if cost else None,
        "evidence": survival_rates(found) | {"searched_to_turn": used.stopped},
        "evidence_uses": [
            {"value": fate.use.value, "kind": fate.use.kind, "t": fate.use.t, "seen_in": fate.use.seen_in}
            | {"survival": fate.survival, "where": fate.where}
            for fate in found
        ],
        "drops": drops_json(drops(run.turns, head.block_tokens, found)),
        "recorded_events": recorded_events(timeline.trace),
        "recorded_context": recorded_context(timeline.trace),
        "compactions": compactions(timeline.trace),
        "not_in_file": not_in_file(timeline.trace),
        "demo": head.demo,
        "seconds": {"estimated": head.estimated, "taken": head.taken},
        "note": FIXED_ACTIONS,
    }


def deviations(policy: str) -> list[str]:
    """The documented deviations of a policy from its original."""
    name = policy.partition(":")[0]
    return next((list(entry["deviations"]) for entry in describe_policies() if entry["name"] == name), [])


def _item_json(item: Any) -> dict[str, Any]:
    row = {"kind": item.kind, "source": item.source, "spans": [list(span) for span in item.spans], "tokens": item.tokens}
    return row | ({"role": item.role, "text": item.text} if item.text else {})
