"""A run before its first turn: its trace laid out, its id, and the row that lists it. Writes nothing but a trace that is not stored yet."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from pamer_lab.blocks import MessageTokens
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.timeline import Timeline, lay_out
from pamer_lab.runs.values import RunInfo
from pamer_lab.storage import equals
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace

VERSION = 2
"""Increased whenever the same inputs would give different turns, so that no run mixes turns of two program versions."""


def run_id(trace_id: str, policy: str, settings: dict[str, Any], tokenizer: str, turn_limit: int) -> str:
    """The id of the run that these inputs determine."""
    parts = [VERSION, trace_id, policy, settings, tokenizer, turn_limit]
    return "r-" + sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]


def timeline_of(trace: Trace | str, workspace: Workspace, tokens: MessageTokens, turn_limit: int) -> tuple[Timeline, bool]:
    """The timeline of a trace, or of the stored trace with this id; and whether it is a demo."""
    if isinstance(trace, Trace):
        known = workspace.path.exists() and workspace.trace_rows(equals("trace_id", trace.trace_id))
        if not known:
            workspace.add_traces([trace], tokens)
        return lay_out(trace, tokens, turn_limit=turn_limit), bool(known and known[0]["demo"])
    stored = workspace.trace(trace)
    counts = stored.message_tokens if stored.row["tokenizer"] == tokens.counter.name else None
    return lay_out(stored.trace, tokens, turn_limit=turn_limit, counts=counts), bool(stored.row["demo"])


def head_of(timeline: Timeline, policy: Policy, resources: RunResources, demo: bool) -> RunInfo:
    """The row of a run that begins now."""
    trace, settings = timeline.trace, policy.settings(resources)
    limit = timeline.turns if timeline.turns < len(timeline.pieces.blocks) else 0
    # Runs are shown by profile, so another profile makes another run even if both decide alike.
    named = {} if resources.profile.name == "embedded" else {"profile": resources.profile.name}
    return RunInfo(
        run_id=run_id(trace.trace_id, policy.name, settings | named, timeline.tokenizer, limit),
        trace_id=trace.trace_id,
        question_id=trace.question_id,
        task_id=trace.task_id,
        policy=policy.name,
        profile=resources.profile.name,
        settings=settings,
        heads=resources.heads_identity() if policy.needs_models else {},
        tokenizer=timeline.tokenizer,
        tokens_kind=timeline.kind,
        turns=timeline.turns,
        trace_turns=len(timeline.pieces.blocks),
        prefix_tokens=timeline.prefix_tokens,
        tools_tokens=timeline.tools_tokens,
        block_tokens=tuple(timeline.block_tokens[: timeline.turns]),
        incomplete=tuple(block.index for block in timeline.pieces.blocks[: timeline.turns] if not block.complete),
        started=now(),
        demo=demo,
        times=timeline.times[: timeline.turns],
    )


def now() -> str:
    """The current time, as rows of runs store it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
