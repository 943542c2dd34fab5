"""One trace and its runs as plain data for the share page, with everything its verification needs.

Texts are stored once under their hash (`Texts`), so that a summary recalled fifty times takes space once.
Invariant: every plotted number is stored unrounded, and everything the page verifies (votes, sums, states, totals) can be derived from
the data in the file.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.audit.store import SHORT
from pamer_lab.blocks import TokenCounter
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.decisions import Item
from pamer_lab.errors import InputError
from pamer_lab.memory.records import Memory
from pamer_lab.memory.summary import readable
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.prices import PriceTable
from pamer_lab.report.config import ReplaySection, RunChoice
from pamer_lab.report.texts import Texts
from pamer_lab.runs.cost import run_cost
from pamer_lab.runs.evidence import Uses, fates, survival_rates, uses
from pamer_lab.runs.export import deviations
from pamer_lab.runs.recorded import recorded_events
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import Timeline, recorded_timeline, stored_timeline
from pamer_lab.runs.values import STATUS_WORDS, Run, RunInfo, Turn
from pamer_lab.workspace import StoredTrace, Workspace

SELECTION_COLUMNS = [*(name for name in SHORT if name not in ("created_at", "table_version")), "query", "candidates"]
"""Columns of a selection in a report: nothing that differs if the run is repeated."""
SHOWN_CANDIDATES = 12


def replay_part(section: ReplaySection, workspace: Workspace, texts: Texts, prices: PriceTable) -> dict[str, Any]:
    """The section's data."""
    stored = workspace.trace(section.trace_id)
    store = RunStore(workspace)
    runs = [store.run(choice.run_id) for choice in section.runs]
    timeline = run_timeline(stored, runs, workspace)
    used = uses(timeline)
    return {
        "kind": "replay",
        "focus": section.focus if runs else "transcript",
        "open": {"policy": section.policy, "turn": section.turn},
        "trace": _trace(stored, timeline, texts),
        "runs": [_run(run, timeline, used, workspace, texts) | {"cost": _cost(run, timeline, workspace, prices)} for run in runs],
        "selections": [row for run in runs for row in _selections(run, workspace, texts)],
    }


def choice_of(head: RunInfo) -> RunChoice:
    """The choice that produces a run."""
    limit = head.turns if head.turns < head.trace_turns else 0
    made = {"trace_id": head.trace_id, "policy": head.policy, "profile": head.profile, "heads": head.heads.get("name", "")}
    return RunChoice(**made, turn_limit=limit, run_id=head.run_id)


def run_timeline(stored: StoredTrace, runs: Sequence[Run], workspace: Workspace) -> Timeline:
    """The timeline, counted as the runs were; if their profile or its tokenizer is missing, with the counts that they recorded."""
    try:
        return stored_timeline(stored, runs[0].head.profile if runs else "embedded", workspace)
    except InputError:
        return recorded_timeline(stored.trace, runs[0])


def run_counter(run: Run, workspace: Workspace) -> TokenCounter | None:
    """The run's own tokenizer; None if it is missing."""
    try:
        counter = profile_tokens(load_profile(run.head.profile, workspace.path)).counter
    except InputError:
        return None
    return counter if counter.name == run.head.tokenizer else None


def _cost(run: Run, timeline: Timeline, workspace: Workspace, prices: PriceTable) -> dict[str, Any]:
    cost = run_cost(run, prices, timeline, run_counter(run, workspace))
    names = ("read", "write", "uncached", "output", "aux_input", "aux_output", "rewritten")
    return cost.as_json() | {"turns": {name: [getattr(turn, name) for turn in cost.turns] for name in names}}


def _trace(stored: StoredTrace, timeline: Timeline, texts: Texts) -> dict[str, Any]:
    trace, row, pieces = stored.trace, stored.row, timeline.pieces
    sizes, name = timeline.block_tokens, row["name"] or trace.trace_id
    blocks = [
        {
            "tokens": sizes[block.index],
            "output": timeline.output_tokens[block.index],
            "calls": [call.name for call in trace.messages[block.start].tool_calls],
            "text": texts.put("".join(render_message(message) for message in block.of(trace.messages)), f"{name}, block {block.index}"),
        }
        for block in pieces.blocks
    ]
    return {
        "trace_id": trace.trace_id,
        "name": row["name"],
        "number": row["index"],
        "question_id": trace.question_id,
        "task_id": trace.task_id,
        "format": trace.format,
        "model": trace.model,
        "reward": trace.reward,
        "demo": bool(row["demo"]),
        "sha256": trace.source.sha256 if trace.source else "",
        "tokenizer": timeline.tokenizer,
        "tokens_kind": timeline.kind,
        "prefix_tokens": timeline.prefix_tokens,
        "tools_tokens": timeline.tools_tokens,
        "prefix": texts.put("".join(render_message(message) for message in trace.messages[: pieces.prefix_end]), f"{name}, prefix"),
        "tools": texts.put(render_tools(trace.tools), f"{name}, tool descriptions"),
        "blocks": blocks,
        "labels": [{"t": label.t, "target": label.target, "value": label.value, "origin": label.origin} for label in trace.labels],
        "events": [
            {key: event[key] for key in ("t", "kind", "tokens_before", "tokens_after")}
            | {"text": texts.put(event["text"], f"{name}, recorded event")}
            for event in recorded_events(trace)
        ],
        "warnings": len(trace.warnings),
    }


def _run(run: Run, timeline: Timeline, used: Uses, workspace: Workspace, texts: Texts) -> dict[str, Any]:
    head = run.head
    return {
        "run_id": head.run_id,
        "policy": head.policy,
        "deviations": deviations(head.policy),
        "profile": head.profile,
        "settings": head.settings,
        "heads": head.heads,
        "status": STATUS_WORDS[head.status],
        "error": head.error,
        "turn_limit": head.turns if head.turns < head.trace_turns else None,
        "tokenizer": head.tokenizer,
        "tokens_kind": head.tokens_kind,
        "demo": head.demo,
        "times": list(head.times),
        "totals": head.totals,
        "evidence": survival_rates(fates(timeline, run.turns, used)) | {"searched_to_turn": used.stopped},
        "memories": [_memory(memory, head.policy, texts) for memory in RunStore(workspace).memories(run).values()],
        "turns": [_turn(turn, head.policy, texts) for turn in run.turns],
    }


def _turn(turn: Turn, policy: str, texts: Texts) -> dict[str, Any]:
    """A turn without its empty fields."""
    value: dict[str, Any] = {
        "t": turn.t,
        "action": turn.action,
        "reason": turn.reason,
        "raw": turn.raw_tokens,
        "active": turn.active_tokens,
        "candidate": turn.candidate_tokens,
        "output": turn.output_tokens,
        "cached": turn.cached_tokens,
        "states": letter_runs(turn.states),
        "items": [_item(item, f"{policy}, turn {turn.t}", texts) for item in turn.items],
    }
    more: dict[str, Any] = {
        "stored": turn.stored,
        "logits": turn.logits,
        "thresholds": turn.thresholds,
        "votes": turn.votes,
        "memory_ids": turn.memory_ids,
        "restored": turn.restored_steps,
        "restored_in_part": turn.restored_in_part,
        "spent": msgspec.to_builtins(turn.spent),
        "error": turn.error,
    }
    return value | {key: list(item) if isinstance(item, tuple) else item for key, item in more.items() if item}


def _item(item: Item, place: str, texts: Texts) -> dict[str, Any]:
    value: dict[str, Any] = {"kind": item.kind, "tokens": item.tokens}
    if item.spans:
        value["spans"] = [list(span) for span in item.spans]
    if item.text:
        value |= {"text": texts.put(item.text, f"{place}, {item.kind}"), "role": item.role, "source": item.source}
    return value


def letter_runs(states: str) -> str:
    """`SSSAA` as `S3 A2`: long traces hold long runs of one state."""
    return " ".join(f"{letter}{len(list(run))}" for letter, run in groupby(states))


def _memory(memory: Memory, policy: str, texts: Texts) -> dict[str, Any]:
    place = f"{policy}, memory {memory.sequence}"
    return {
        "memory_id": memory.memory_id,
        "sequence": memory.sequence,
        "tokens": memory.tokens,
        "summary_tokens": memory.summary_tokens,
        "summary_model": memory.summary_model,
        "embedding_model": memory.embedding_model,
        "summary": texts.put(memory.summary, place),
        "steps": [
            {"step": block.step, "tokens": block.tokens, "detail": texts.put(readable(block.detail), f"{place}, step {block.step}")}
            for block in memory.blocks
        ],
    }


def _selections(run: Run, workspace: Workspace, texts: Texts) -> list[dict[str, Any]]:
    """The run's selections with their reviews, in turn order."""
    audit, reviews = AuditStore(workspace.database), ReviewStore(workspace.database)
    found = []
    for short in audit.rows(run_id=run.run_id):
        row = audit.row(short["audit_id"]) or short
        value = {key: row[key] for key in SELECTION_COLUMNS if key in row}
        place = f"{run.head.policy}, selection at turn {row['turn']}"
        value |= {"query": texts.put(row["query"], f"{place}, query"), "goal": texts.put(row["goal"] or "", f"{place}, goal")}
        value["candidates"] = (row["candidates"] or [])[:SHOWN_CANDIDATES]
        value["reviews"] = [
            {"reviewer": review.reviewer, "revision": review.revision, "verdict": review.verdict, "steps": list(review.steps)}
            | {"note": review.note, "created_at": review.created_at.isoformat()}
            for review in reviews.history(row["audit_id"])
        ]
        found.append(value)
    return sorted(found, key=lambda row: (row["run_id"], row["turn"], row["audit_id"]))
