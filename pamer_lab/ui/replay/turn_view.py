"""One turn under one policy: the reason for its decision, what the model would see, and what happened to the rest.

Everything a trace or a model wrote goes through `body` or a table.
Invariant: the listed tokens are added up here and compared with the plotted number.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pamer_lab.decisions import spans_of
from pamer_lab.figures.text import counted, share
from pamer_lab.figures.theme import ACTION_WORDS, DROP_SIGN, SIGNS
from pamer_lab.memory.summary import readable
from pamer_lab.probes.margins import vote_margins
from pamer_lab.probes.readout import logit
from pamer_lab.runs.alignment import Row, sent_and_seen
from pamer_lab.runs.drops import Drop
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Run, Turn
from pamer_lab.ui.replay.turn_texts import block_words, row_texts, span_words
from pamer_lab.ui.shared.runs import memories_of
from pamer_lab.ui.shared.text import counted_with, in_code
from pamer_lab.ui.shared.widgets import body, choose_part, table, table_height
from pamer_lab.ui.shared.words import HINTS

MOST_LOST = 8
"""Maximum lost pieces of evidence that are named at one turn."""
VIEWS = ["Model's view", "Agent's request vs. model's view", "Memory"]


def turn_view(run: Run, timeline: Timeline, t: int, dropped: Sequence[Drop] = ()) -> None:
    """The inspector: the reason first, then the context, then the votes."""
    turn = run.turns[t]
    _why(run, turn)
    for drop in dropped:
        if drop.t == t:
            _dropped(drop)
    with st.container(key="model-view"):
        view = choose_part(VIEWS, key="view", renamed={"What the model sees": VIEWS[0], "Sent and seen": VIEWS[1]})
        if view == VIEWS[2]:
            _memory(run, turn)
        else:
            _context(run, timeline, turn, both=view == VIEWS[1])
    if turn.logits:
        _votes(run, turn)
    if turn.spent:
        _side_work(turn)


def _dropped(drop: Drop) -> None:
    st.markdown(f"**{DROP_SIGN} Drops {block_words(drop.spans)}** ({drop.tokens:,} tokens).", help=HINTS["drop"])
    if drop.lost:
        named = ", ".join(f"{in_code(lost.value, 60)} (turn {lost.used_at})" for lost in drop.lost[:MOST_LOST])
        more = f" and {len(drop.lost) - MOST_LOST:,} more" if len(drop.lost) > MOST_LOST else ""
        st.markdown(f"Later actions use evidence that is lost here: {named}{more}.")


def _why(run: Run, turn: Turn) -> None:
    sign = "" if turn.action == "pass" else f"{SIGNS[turn.action]} "
    st.markdown(f"**Why?** Turn {turn.t} of {run.head.policy}: {sign}{ACTION_WORDS[turn.action]}.")
    st.text(turn.reason[:1].upper() + turn.reason[1:] + ".")
    if turn.error:
        st.warning(in_code(turn.error, 400))
    change = turn.active_tokens - turn.raw_tokens
    parts = [
        f"Sent **{turn.raw_tokens:,}** tokens, the model sees **{turn.active_tokens:,}**",
        f"{change:+,} ({share(change, turn.raw_tokens)})" if change else "unchanged",
        f"{turn.cached_tokens:,} cacheable",
    ]
    if turn.candidate_tokens:
        parts.append(f"candidate (older blocks that could be compressed) {turn.candidate_tokens:,}")
    candidate = f" Candidate: {HINTS['candidate']}" if turn.candidate_tokens else ""
    st.markdown(" · ".join(parts), help=f"{HINTS['active']} {HINTS['cached']}{candidate}")


def _side_work(turn: Turn) -> None:
    """Side work: what the policy did in addition to the request."""
    table(
        [
            {
                "Side work": spent.operation,
                "Input": spent.input_tokens,
                "Output": spent.output_tokens,
                "By": spent.model.replace(" block_", " layer "),
                "Kind": "local" if spent.local else "model call",
            }
            for spent in turn.spent
        ],
        column_config={
            "Input": st.column_config.NumberColumn(format="localized"),
            "Output": st.column_config.NumberColumn(format="localized"),
        }
        | {"Kind": st.column_config.TextColumn(help="`local`: work on this machine, at no model cost.")},
    )


def _votes(run: Run, turn: Turn) -> None:
    needed = int((run.head.settings.get("controller") or {}).get("vote", 3))
    limits = [float(logit(threshold)) for threshold in turn.thresholds]
    margins = vote_margins(turn.logits, limits, needed)
    st.markdown(f"**Votes:** {margins.yes} of {len(turn.votes)} heads vote to compress; {needed} needed.", help=HINTS["head"])
    table(
        [
            {
                "Head": number + 1,
                "Logit": value,
                "Threshold": limit,
                "Margin": value - limit,
                "Vote": "✓ yes" if yes else "no",
            }
            for number, (value, limit, yes) in enumerate(zip(turn.logits, limits, turn.votes, strict=True))
        ],
        column_config={
            "Head": st.column_config.NumberColumn(help=HINTS["head"]),
            "Logit": st.column_config.NumberColumn(format="%.3f", help=HINTS["logit"]),
            "Threshold": st.column_config.NumberColumn(format="%.3f", help=HINTS["head_threshold"]),
            "Margin": st.column_config.NumberColumn(format="%+.3f", help=HINTS["margin"]),
        },
    )
    if margins.majority != float("inf"):
        st.caption(
            f"The decision flips if logits move by {margins.majority:.2f}; the closest single vote flips at {margins.vote:.2f}.",
            help=HINTS["margin"],
        )


def _context(run: Run, timeline: Timeline, turn: Turn, *, both: bool) -> None:
    rows = sent_and_seen(turn, run.head)
    if not both:
        rows = [row for row in rows if row.seen is not None]
    seen, sent = sum(row.seen or 0 for row in rows), sum(row.sent or 0 for row in rows)
    shown = [_side_row(row) if both else _seen_row(row, number) for number, row in enumerate(rows)]
    # Streamlit keeps a selected row by its number, which means another item at another turn.
    key = f"items-{run.run_id}-{turn.t}-{both}"
    st.dataframe(
        shown,
        hide_index=True,
        placeholder="",
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        height=table_height(len(shown), most=320),
        column_config={"Tokens": st.column_config.NumberColumn(format="localized", width=80)},
    )
    right = "=" if seen == turn.active_tokens else "≠"
    total = f"{counted(len(rows), 'item')}, {seen:,} tokens {right} the plotted {turn.active_tokens:,}"
    if both:
        total = f"sent {sent:,} tokens, seen {seen:,} {right} the plotted {turn.active_tokens:,}"
    st.caption(f"{total}; {counted_with(run.head.tokens_kind, run.head.tokenizer)}. Select a row to read it.")
    chosen = [number for number in st.session_state[key]["selection"]["rows"] if number < len(rows)]
    if chosen:
        row_texts(run, rows[chosen[0]], timeline, turn, both=both)


def _seen_row(row: Row, number: int) -> dict[str, Any]:
    return {"#": number, "Item": row.name, "Source": row.source or _source(row), "Covers": span_words(row.covers), "Tokens": row.seen}


def _side_row(row: Row) -> dict[str, Any]:
    states = {"same": "in both", "edited": f"shortened: {row.source}", "added": f"+ {row.name} for {block_words(row.covers)}"}
    return {
        "Agent sent": row.name if row.sent is not None else "",
        "Tokens sent": row.sent,
        "Model sees": row.name if row.seen is not None else "",
        "Tokens seen": row.seen,
        "State": states.get(row.state, f"− {row.state}"),
    }


def _source(row: Row) -> str:
    return {"tools": "tool descriptions", "prefix": "system and task, always kept"}.get(row.name, "trace, verbatim")


def _memory(run: Run, turn: Turn) -> None:
    """Texts the policy added, and the memories this turn wrote or used, with the steps they cover."""
    texts = [(number, item) for number, item in enumerate(turn.items) if item.text and item.kind != "edited"]
    edited = [item for item in turn.items if item.kind == "edited"]
    if edited:
        spans = spans_of(item.spans[0][0] for item in edited)
        st.markdown(f"**Shortened blocks** · {sum(item.tokens for item in edited):,} tokens remain of {block_words(spans)}")
    for number, item in texts:
        kind = {"summary": "Summary in the context", "recalled": "Recalled summaries", "evidence": "Restored evidence"}[item.kind]
        covered = sum(last - first for first, last in item.spans)
        st.markdown(f"**{kind}** · {item.tokens:,} tokens for {counted(covered, 'block')}: {span_words(item.spans)}")
        body(item.text, key=f"text-{turn.t}-{number}")
    known = memories_of(run)
    for name in turn.memory_ids:
        entry = known.get(name)
        if entry is None:
            st.caption(f"Memory {in_code(name, 60)} is no longer in the store.")
            continue
        verb = "Stored" if turn.action == "compress" else "Used"
        st.markdown(f"**{verb} memory {entry.sequence}** · {entry.tokens:,} tokens → {entry.summary_tokens:,} · {in_code(name, 60)}")
        if turn.action == "compress":
            body(entry.summary, key=f"memory-{turn.t}-{entry.sequence}")
        table([{"Step": block.step, "Tokens": block.tokens, "What happened": readable(block.detail)} for block in entry.blocks])
    if turn.restored_steps:
        part = set(turn.restored_in_part)
        steps = ", ".join(f"{step} (restored in part)" if step in part else str(step) for step in turn.restored_steps)
        st.markdown(f"**Restored steps:** {steps}", help=HINTS["restored_in_part"] if part else None)
    if not texts and not edited and not turn.memory_ids:
        covered = sum(last - first for first, last in turn.stored)
        st.caption(f"Nothing was stored, recalled or restored at this turn. Memory covers {counted(covered, 'block')}.")
