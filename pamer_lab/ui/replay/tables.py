"""Tables of a replay: totals and cost by policy, which evidence survived, what the source recorded, where two policies first differ."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import polars as pl
import streamlit as st

from pamer_lab.figures.text import counted, one_line, short
from pamer_lab.prices import PriceTable
from pamer_lab.runs.divergence import Divergence, first_divergence
from pamer_lab.runs.evidence import FATES, survival_rates
from pamer_lab.runs.recorded import recorded_events
from pamer_lab.runs.values import FIXED_ACTIONS, STATUS_WORDS, Run
from pamer_lab.spreadsheet import csv_text
from pamer_lab.trajectory import Trace
from pamer_lab.ui.replay.turn_steps import open_turn
from pamer_lab.ui.replay.turn_texts import span_words
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.prices import choose_prices, cost_of
from pamer_lab.ui.shared.runs import drops_of, fates_of, timeline_of
from pamer_lab.ui.shared.text import counted_with, in_code
from pamer_lab.ui.shared.widgets import table, table_height
from pamer_lab.ui.shared.words import HINTS

FATE_WORDS = {
    "active": "verbatim",
    "restored": "in restored evidence",
    "summary": "in a summary",
    "memory": "only in memory",
    "gone": "gone",
}

ACCOUNT_HINTS = {
    "Main input": "Input tokens of the agent's requests, summed over turns.",
    "Cached": HINTS["cached"],
    "Uncached": "Input that a prefix cache cannot serve; billed at full price.",
    "Main output": "The agent's recorded output; the same under every policy.",
    "Aux. input": "Input of the policy's own model calls, such as summaries. Local work is not counted.",
    "Aux. output": "Output of the policy's own model calls.",
    "Total": "Main input and output, plus the policy's own model calls.",
    "Peak": "The largest context of any turn.",
}


def headline(run: Run) -> str:
    """The open run in one line."""
    last = run.turns[-1]
    actions = {name: sum(turn.action == name for turn in run.turns) for name in ("compress", "recall", "fallback")}
    change = 100 * (last.active_tokens / last.raw_tokens - 1) if last.raw_tokens else 0.0
    parts = [
        f"**{run.head.policy}**: {counted(len(run.turns), 'turn')}",
        f"{short(last.raw_tokens)} → **{short(last.active_tokens)}** tokens at the end ({change:+.1f} %)",
        counted(actions["compress"], "compression"),
        counted(actions["recall"], "recall"),
    ]
    if actions["fallback"]:
        parts.append(counted(actions["fallback"], "fallback"))
    if run.head.status != "done":
        parts.append(f"{STATUS_WORDS[run.head.status]}, {len(run.turns):,} of {counted(run.head.turns, 'turn')}")
    if run.head.demo:
        parts.append(":gray-badge[demo]")
    return " · ".join([*parts, "actions fixed"])


def turns_csv(runs: Sequence[Run]) -> str:
    """What the chart of contexts shows, turn by turn."""
    names = ("action", "raw_tokens", "active_tokens", "cached_tokens")
    rows = [
        {"policy": run.head.policy, "turn": turn.t} | {name: getattr(turn, name) for name in names} | counting(run)
        for run in runs
        for turn in run.turns
    ]
    return csv_text(pl.DataFrame(rows))


def states_csv(run: Run) -> str:
    """The ledger, a letter per block and turn."""
    return csv_text(pl.DataFrame([{"turn": turn.t, "states": turn.states} | counting(run) for turn in run.turns]))


def rows_csv(run: Run, lines: Sequence[dict[str, Any]]) -> str:
    """Rows of a table of one run as the screen shows them."""
    return csv_text(pl.DataFrame([line | {"Policy": run.head.policy} | counting(run) for line in lines], infer_schema_length=None))


def counting(run: Run) -> dict[str, Any]:
    """The metadata of a run's numbers in a downloaded file."""
    return {name: getattr(run.head, name) for name in ("demo", "tokenizer", "tokens_kind")}


def accounts(runs: Sequence[Run]) -> None:
    """Totals of all policies, and their cost at the chosen prices."""
    prices = choose_prices()
    rows = [_account(run, prices) for run in runs if run.totals]
    if not rows:
        st.info("Totals appear when a run is finished.")
        return
    keep = {key for row in rows for key, value in row.items() if value is not None}
    st.dataframe(
        [{key: value for key, value in row.items() if key in keep} for row in rows],
        hide_index=True,
        placeholder="",
        column_config={
            key: st.column_config.NumberColumn(format="localized", help=ACCOUNT_HINTS.get(key))
            for key in rows[0]
            if key not in ("Policy", "Change %")
        }
        | {
            "Policy": st.column_config.TextColumn(pinned=True),
            "Change %": st.column_config.NumberColumn(format="%+.1f", help="Total tokens relative to base."),
            "Cost vs base": st.column_config.NumberColumn(format="%.2f", help=HINTS["cost"]),
            "In context %": st.column_config.NumberColumn(format="%.1f", help=HINTS["in_context"]),
        },
    )
    own = {
        run.head.policy: {"Currency": prices.currency, "Prices": prices.name, "Prices date": prices.date} | counting(run) for run in runs
    }
    download(
        "CSV",
        lambda: csv_text(pl.DataFrame([row | own[row["Policy"]] for row in rows], infer_schema_length=None)),
        "totals.csv",
        "text/csv",
        key="totals-csv",
    )
    head = runs[0].head
    counts = counted_with(head.tokens_kind, head.tokenizer)
    st.caption(f"Tokens {counts}; n = {counted(len(runs[0].turns), 'turn')} of one trace. {FIXED_ACTIONS}")
    notes = [f"Cost: simulated with prices {in_code(prices.described, 300)}", *cost_of(runs[0], prices).notes]
    st.caption("; ".join(notes) + ".")
    recorded = runs[0].totals.get("recorded") if runs[0].totals else None
    if recorded:
        scope = "the complete run" if recorded.get("whole_run") else counted(recorded["turns_with_usage"], "turn")
        st.caption(
            f"The source recorded {recorded['input']:,} input ({recorded['cached']:,} cached) and {recorded['output']:,} output tokens "
            f"for {scope}, with its own tokenizer; not comparable with the counts above."
        )


def _account(run: Run, prices: PriceTable) -> dict[str, Any]:
    totals = run.totals
    rates = survival_rates(fates_of(run))
    cost = cost_of(run, prices)
    return {
        "Policy": run.head.policy,
        "Main input": totals["main_input"],
        "Cached": totals["cached_input"],
        "Uncached": totals["uncached_input"],
        "Main output": totals["main_output"],
        "Aux. input": totals["aux_input"],
        "Aux. output": totals["aux_output"],
        "Total": totals["total"],
        "Change %": -totals["reduction_pct"],
        "Peak": totals["peak_active"],
        "In context %": rates["in_context_pct"],
        f"Cost, {prices.currency}": round(cost.total, 4),
        "Cost vs base": None if cost.vs_base is None else round(cost.vs_base, 3),
    }


def evidence(run: Run) -> None:
    """The evidence that later actions used, and where it was at that turn; a row opens its turn."""
    found = fates_of(run)
    rates = survival_rates(found)
    if missing := timeline_of(run.head.trace_id, run.head.profile)[1].sentence:
        st.warning(missing)
    if not found:
        st.info("No recorded action of this trace uses an identifier from an earlier tool result.")
        return
    counts = ", ".join(f"{rates[fate]:,} {FATE_WORDS[fate]}" for fate in FATES if rates[fate])
    st.markdown(
        f"**{rates['in_context_pct']:.1f} %** of {counted(rates['uses'], 'use')} were in the context: {counts}.", help=HINTS["in_context"]
    )
    lost = st.toggle("Only evidence missing from the context", key="lost", bind="query-params")
    shown = [fate for fate in found if not lost or fate.survival in ("memory", "gone")]

    def opened() -> None:
        rows = st.session_state["evidence"]["selection"]["rows"]
        if rows and rows[0] < len(shown):
            open_turn(shown[rows[0]].use.t)

    if not shown:
        st.success("All evidence was in the context when it was used.")
        return
    lines = [
        {"Turn": fate.use.t, "Used": fate.use.value, "Kind": fate.use.kind, "First seen in": f"block {fate.use.seen_in}"}
        | {"State at use": FATE_WORDS[fate.survival], "Where": fate.where}
        for fate in shown
    ]
    download("CSV", lambda: rows_csv(run, lines), "evidence.csv", "text/csv", key="evidence-csv")
    table(
        lines,
        key="evidence",
        on_select=opened,
        selection_mode="single-row",
        height=table_height(len(shown), most=300),
    )


def dropped(run: Run) -> None:
    """Blocks that left the request with nothing in their place, turn by turn; a row opens its turn."""
    found = drops_of(run)
    if not found:
        st.caption(f"{run.head.policy} drops no blocks here: each earlier block is in the context, in a summary, or in memory.")
        return
    lost = sum(len(drop.lost) for drop in found)
    st.markdown(
        f"**{run.head.policy}** drops {counted(sum(len(drop.blocks) for drop in found), 'block')} at {counted(len(found), 'turn')}; "
        f"{counted(lost, 'later use')} needed their content.",
        help=HINTS["drop"],
    )

    def opened() -> None:
        rows = st.session_state["drops"]["selection"]["rows"]
        if rows and rows[0] < len(found):
            open_turn(found[rows[0]].t)

    lines = [
        {
            "Turn": drop.t,
            "Blocks": span_words(drop.spans),
            "Tokens": drop.tokens,
            "Evidence lost": len(drop.lost),
            "Used later": ", ".join(f"{one_line(entry.value, 60)} (turn {entry.used_at})" for entry in drop.lost),
        }
        for drop in found
    ]
    download("CSV", lambda: rows_csv(run, lines), "drops.csv", "text/csv", key="drops-csv")
    table(
        lines,
        key="drops",
        on_select=opened,
        selection_mode="single-row",
        height=table_height(len(found), most=300),
        column_config={"Tokens": st.column_config.NumberColumn(format="localized")},
    )


def recorded(trace: Trace, run: Run) -> None:
    """The source's own compactions and memory operations, next to this policy's compressions."""
    events = recorded_events(trace)
    ours = [turn.t for turn in run.turns if turn.action == "compress"]
    said = f"{run.head.policy} compresses at turns {', '.join(map(str, ours))}." if ours else f"{run.head.policy} never compresses here."
    if not events:
        st.caption(f"The source recorded no compaction or memory operation. {said}")
        return
    st.markdown(f"The source recorded {counted(len(events), 'event')}. {said}", help=HINTS["events"])
    table(
        [
            {
                "Before turn": event["t"],
                "Kind": event["kind"],
                "Tokens before": event["tokens_before"],
                "Tokens after": event["tokens_after"],
            }
            | {"Text": event["text"]}
            for event in events
        ]
    )


def divergences(run: Run, others: Sequence[Run]) -> None:
    """The open run against each of the others."""
    if not others:
        st.caption("Choose a second policy above to see where its context first differs.")
    for other in others:
        found = first_divergence(run, other)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{found.sentence}.**", width="content")
            for policy in (found.first, found.second):
                if found.t is not None:
                    words, key = f"Open turn {found.t} of {policy}", f"open-{found.second}-{policy}"
                    st.button(words, key=key, type="tertiary", icon=":material/arrow_upward:", on_click=open_turn, args=(found.t, policy))
        if found.t is not None:
            rows = one_sided(found, run.head.block_tokens)
            table(
                rows, height=table_height(len(rows), most=240), column_config={"Tokens": st.column_config.NumberColumn(format="localized")}
            )


def one_sided(found: Divergence, block_tokens: Sequence[int]) -> list[dict[str, Any]]:
    """What only one of the contexts has, in order; neighbouring blocks are one row."""
    sides = ((found.first, found.only_first), (found.second, found.only_second))
    return [{"Only in": policy} | row for policy, items in sides for row in _rows(items, block_tokens)]


def _rows(items: Iterable[dict[str, Any]], block_tokens: Sequence[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    # Neighbouring blocks have consecutive numbers and places, so the difference stays the same.
    for _, run in groupby(enumerate(items), key=lambda entry: ("block" in entry[1], entry[1].get("block", 0) - entry[0])):
        part = [item for _, item in run]
        if "block" not in part[0]:
            rows.append({"Item": part[0]["kind"], "Tokens": part[0]["tokens"], "Text": part[0]["text"]})
            continue
        first, last = part[0]["block"], part[-1]["block"]
        name = f"block {first}" if first == last else f"blocks {first} to {last}"
        rows.append({"Item": name, "Tokens": sum(block_tokens[first : last + 1]), "Text": "verbatim from the trace"})
    return rows
