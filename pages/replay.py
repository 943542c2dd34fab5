"""Replay: one trace through several policies; what the model would see at each turn, why, and at what cost."""

import streamlit as st

from pamer_lab import figures
from pamer_lab.decisions import LETTERS
from pamer_lab.figures.runs import window
from pamer_lab.figures.text import counted, short
from pamer_lab.policies.registry import parse_policy
from pamer_lab.report.config import ReplaySection
from pamer_lab.report.replay_part import choice_of
from pamer_lab.runs.recorded import compactions, recorded_context
from pamer_lab.runs.values import FIXED_ACTIONS, Run
from pamer_lab.runs.whatif import WhatIf
from pamer_lab.trajectory import Trace
from pamer_lab.ui.replay.cost import cost_panel
from pamer_lab.ui.replay.tables import accounts, divergences, dropped, evidence, headline, recorded, states_csv, turns_csv
from pamer_lab.ui.replay.turn_steps import choose_policy, choose_turn, settle_run
from pamer_lab.ui.replay.turn_view import turn_view
from pamer_lab.ui.replay.whatif import whatif_panel
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.heads_select import describe_heads
from pamer_lab.ui.shared.loaders import rows_or_demo, stored_trace
from pamer_lab.ui.shared.page import part
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.picker import leave_removed, pick_trace
from pamer_lab.ui.shared.prices import chosen_prices
from pamer_lab.ui.shared.run_choice import choose
from pamer_lab.ui.shared.run_form import heads_shown, next_step, run_panel
from pamer_lab.ui.shared.runs import drops_of, open_runs, policies_of_traces, run_key, timeline_of
from pamer_lab.ui.shared.share import share
from pamer_lab.ui.shared.state import start_anew
from pamer_lab.ui.shared.text import DEMO, counted_with, said_by_source
from pamer_lab.ui.shared.verdicts import show_verdicts, verdicts_of
from pamer_lab.ui.shared.widgets import choose_part
from pamer_lab.ui.shared.words import HINTS

CHART = 230
# Pixels of the first chart, so that the open turn next to it fits on the first screen. (A bare string here would be drawn on the page.)


def start_over() -> None:
    """Another trace was chosen: the old turn means nothing in it."""
    start_anew("turn")


def _end(run: Run) -> str:
    """Where a run's line ends; an unfinished run also says at which turn."""
    tokens = short(run.turns[-1].active_tokens)
    return f"{run.head.policy} {tokens}" if run.head.status == "done" else f"{run.head.policy} {tokens} (only up to turn {run.turns[-1].t})"


def context_chart(runs: list[Run], trace: Trace, turn: int, whatif: WhatIf | None) -> None:
    head = runs[0].head
    ends = ", ".join(_end(run) for run in runs)
    counts = f"{counted_with(head.tokens_kind, head.tokenizer)}, n = {counted(len(runs[0].turns), 'turn')}"
    source = said_by_source(trace, runs[0].turns[0].raw_tokens)
    answer = f"At the last turn: {ends} tokens, {counts}. Actions are fixed.{source}{DEMO if head.demo else ''}"
    shown = window(max(len(run.turns) for run in runs), turn)
    of = tuple(run_key(run) for run in runs)
    line = whatif.active_tokens.tobytes() if whatif is not None else b""
    show_chart(
        "Context size per turn",
        drawing(
            "context",
            (of, line),
            lambda colours: figures.context(
                runs, colours, whatif=whatif, recorded=recorded_context(trace), compactions=compactions(trace), height=CHART
            ),
        ),
        answer,
        key="context",
        hint=f"{HINTS['active']} Click a point to open its turn. {FIXED_ACTIONS}",
        csv=lambda: turns_csv(runs),
    )
    st.caption(
        "Events per turn: ▼ compression, ▲ recall, ▽ drop, ✕ fallback. Click a mark to open its turn.",
        help=f"{HINTS['drop']} {HINTS['fallback']}",
    )
    st.plotly_chart(
        drawing("strip", (of, shown.start), lambda colours: figures.events(runs, shown, colours)),
        key="strip",
        config={"displayModeBar": False},
        alt="Actions of each policy per turn; click a mark to open its turn.",
    )


def ledger(run: Run, turn: int) -> None:
    states = run.turns[turn].states
    counts = ", ".join(f"{states.count(letter)} {word}" for letter, word in LETTERS.items() if letter in states)
    at = f"{run.head.policy} at turn {turn}, n = {counted(turn, 'block')}: {counts or 'no earlier block'}"
    answer = f"{at}. Each earlier block is in exactly one state. Actions are fixed.{DEMO if run.head.demo else ''}"
    shown = window(len(run.turns), turn)
    show_chart(
        "Where is each block?",
        drawing("ledger", (run_key(run), shown.start), lambda colours: figures.ledger(run, shown, colours)),
        answer,
        key="ledger",
        hint=f"{HINTS['ledger']} Click a column to open its turn.",
        csv=lambda: states_csv(run),
    )


@part
def inspect(runs: list[Run], run: Run, trace: Trace) -> None:
    """Everything that depends on the turn. Choosing another policy redraws the page, since the tables below depend on it.

    The first chart is sent before the open turn and the second after it, so that the browser draws one while the server continues.
    """
    leave_removed()
    charts, opened = st.columns([6, 5], gap="medium")
    with opened:
        policy = choose_policy(runs)
        if policy != run.head.policy:
            st.rerun()
        turn = choose_turn(run, [entry.head.policy for entry in runs], drops_of(run))
        view = st.container(key="turn-view")
    with charts:
        fell = any(entry.action == "fallback" for entry in run.turns)
        st.markdown(headline(run), help=f"{HINTS['fixed']} Fallback: {HINTS['fallback']}" if fell else HINTS["fixed"])
        chart = st.container()
        blocks = st.container()
    with st.container(key="what-if"):
        answer = whatif_panel(run)
    with chart:
        context_chart(runs, trace, turn, answer)
    with view:
        timeline, _ = timeline_of(run.head.trace_id, run.head.profile)
        turn_view(run, timeline, turn, drops_of(run))
    with blocks:
        ledger(run, turn)


def more(runs: list[Run], run: Run, trace: Trace) -> None:
    """Further tables; only the open one is computed."""
    names = ["Tokens and cost", "Evidence", "Drops", "Recorded events", "First divergence"]
    picked = choose_part(names, key="more")
    if picked == names[0]:
        accounts(runs)
        cost_panel(run, chosen_prices())
    elif picked == names[1]:
        evidence(run)
    elif picked == names[2]:
        dropped(run)
    elif picked == names[3]:
        recorded(trace, run)
    else:
        divergences(run, [other for other in runs if other.run_id != run.run_id])


def main() -> None:
    rows, _ = rows_or_demo()
    head, picker, link = st.columns([2, 6, 1.2], vertical_alignment="bottom")
    head.title("Replay")
    with picker:
        # Prefer a trace with a PaMER run, which shows most; open a demo only if there is no other trace.
        names = [row["trace_id"] for row in rows if not row["demo"]] or [row["trace_id"] for row in rows]
        replayed = policies_of_traces(names)
        first = next((name for name in names if ("pamer", True) in replayed.get(name, ())), "")
        trace_id = pick_trace(rows, on_change=start_over, first=first)
    if trace_id is None:
        return
    stored, _ = stored_trace(trace_id)
    choice = choose()
    if not choice.policies:
        st.info("Choose at least one policy.")
        with link:
            share()
        return
    found = heads_shown(trace_id, choice)
    run_panel(trace_id, choice, found)
    runs = [run for run in open_runs(list(found.values())) if run.turns]
    if not runs:
        with link:
            share()
        st.info(f"There is no run of these policies on this trace yet. {next_step(trace_id, choice)}")
        return
    run = settle_run(runs)
    verdict = st.container()
    inspect(runs, run, stored.trace)
    with verdict:
        show_verdicts(verdicts_of(runs), f"{counted(len(run.turns), 'turn')} of one trace")
    with link:
        chosen = tuple(choice_of(entry.head) for entry in runs if entry.head.status == "done")
        share(lambda: [ReplaySection(trace_id=trace_id, runs=chosen, policy=run.head.policy, turn=st.session_state["turn"])])
    st.divider()
    with st.container(key="more-tables"):
        more(runs, run, stored.trace)
    if any(parse_policy(policy).needs_models for policy in choice.policies):
        describe_heads(choice.factory)


run_page(main)
