"""Each trace with each policy as a row of the Context growth page."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import NO_DOMAIN, recorded_scores
from pamer_lab.analysis.growth_tables import trace_table
from pamer_lab.figures.text import counted, short
from pamer_lab.runs.values import FIXED_ACTIONS
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.runs import counted_how
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table, table_height
from pamer_lab.ui.shared.words import HINTS

MOST_ROWS = 500
"""Rows on the screen; the file holds all."""


def per_trace(
    runs: pl.DataFrame, policies: Sequence[str], baseline: str, names: Mapping[str, str], rewards: Mapping[str, float | None]
) -> None:
    """The totals of each policy on each trace, with the reward its source recorded, and a CSV of the same rows."""
    found = trace_table(runs, policies, baseline, names, rewards)
    recorded = found["recorded_reward"].is_not_null().any()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{counted(runs['trace_id'].n_unique(), 'trace')}, largest first; changes against {in_code(baseline, 60)} on the same trace. "
            f"Tokens {counted_how(runs)}. {FIXED_ACTIONS}",
            width="stretch",
        )
        download("CSV", lambda: csv_text(found), "traces.csv", "text/csv", key="traces-csv")
    table(
        [
            {
                "Trace": row["name"],
                "Policy": row["policy"],
                "Turns": row["turns"],
                "Total": short(row["total"]),
                "Total vs baseline": _percent(row["total_change_pct"]),
                "Peak": short(row["peak_active"]),
                "Peak vs baseline": _percent(row["peak_change_pct"]),
                "Uncached input": short(row["uncached_input"]),
                **({"Recorded reward": row["recorded_reward"]} if recorded else {}),
                "Demo": "demo" if row["demo"] else "",
            }
            for row in found.head(MOST_ROWS).iter_rows(named=True)
        ],
        key="per-trace",
        column_config={"Recorded reward": st.column_config.NumberColumn(format="%.3g", help=HINTS["reward"])},
        height=table_height(min(found.height, MOST_ROWS), most=420),
    )
    if recorded:
        st.caption(score_words(recorded_scores(workspace(), runs["trace_id"].unique())))
    if found.height > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {found.height:,} rows; the CSV has all.")


def score_words(scores: Mapping[str, Any]) -> str:
    """The recorded scores of traces, and the tokens that their sources recorded, in one line."""
    domains = ", ".join(f"{name} {one['score']:.1f} ({one['tasks']})" for name, one in scores["domains"].items() if name != NO_DOMAIN)
    spent = (
        f" Recorded tokens per trace: {short(scores['tokens_per_trace'])} (n = {scores['usage_traces']})." if scores["usage_traces"] else ""
    )
    by_domain = f"; by domain (tasks): {domains}" if domains else ""
    return f"Recorded score {scores['task_weighted']:.1f} over {counted(scores['tasks'], 'task')}{by_domain}.{spent}"


def _percent(value: float | None) -> str:
    return "" if value is None else "=" if value == 0 else f"{value:+.1f} %"
