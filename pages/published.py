"""Published results: the paper's tables and charts, next to what was measured here."""

import polars as pl
import streamlit as st

from pamer_lab import figures
from pamer_lab.analysis.paper_comparison import KINDS, token_changes
from pamer_lab.analysis.published import PublishedTable, names, table
from pamer_lab.figures.text import counted
from pamer_lab.report.config import PublishedSection
from pamer_lab.ui.published.paper_comparison import recorded_tasks, study_comparison
from pamer_lab.ui.shared.charts import drawing_or_none, show_chart
from pamer_lab.ui.shared.loaders import trace_rows
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.published_rows import published_csv, published_rows
from pamer_lab.ui.shared.runs import all_runs, counted_how, demo_words
from pamer_lab.ui.shared.share import share
from pamer_lab.ui.shared.state import settle
from pamer_lab.ui.shared.widgets import table_height
from pamer_lab.ui.shared.words import HINTS

# Tables in the order they are offered; the others follow. (A bare string here would be drawn on the page.)
FIRST = ["full_benchmark", "method_comparison", "cross_model", "ablation", "signals", "layerwise", "compact_main", "compact"]
MARK = "Published by the paper's authors; not measured here."


def measured(shown: PublishedTable) -> None:
    """Token changes of the same policies in this workspace, next to the published ones."""
    runs = all_runs("embedded", [row["trace_id"] for row in trace_rows()])
    found = token_changes(shown, runs)
    compared = runs.filter(pl.col("policy").is_in([line["policy"] for line in found])) if found and not runs.is_empty() else pl.DataFrame()
    demo = "" if compared.is_empty() else demo_words(compared)
    st.subheader(f"Compared with measurements here{' :gray-badge[demo]' if demo else ''}", help=HINTS["demo"] if demo else None)
    if shown.name in KINDS:
        study_comparison(shown.name)
        return
    recorded_tasks(shown)
    if not found:
        st.caption("PaMER Lab does not measure this table: it needs the paper's agents, tasks or settings.")
        return
    lines = [
        {
            "Published": line["row"],
            "Tokens per task": f"{line['tokens']:,}",
            "Change, published": f"{line['published_pct']:+.1f} %" if line["published_pct"] is not None else "",
            "Policy here": line["policy"],
            "Change, measured here": f"{line['measured_pct']:+.1f} %{' · demo' if line['demo'] else ''}"
            if line["traces"]
            else "not replayed yet",
            "Traces here": line["traces"],
        }
        for line in found
    ]
    st.dataframe(lines, hide_index=True, placeholder="")
    how = f"Tokens here {counted_how(compared)}. " if not compared.is_empty() else ""
    st.caption(
        f"{how}The two columns are not directly comparable: the paper ran live agents with larger models on other tasks. Here, recorded "
        "actions are fixed, so a policy cannot change the number of steps, and scores cannot be measured."
        f"{demo}"
    )


def main() -> None:
    title, link = st.columns([7, 1], vertical_alignment="bottom")
    title.title("Published results")
    st.markdown(":orange-badge[Published] Numbers reported in the paper.")
    known = [*FIRST, *(name for name in names() if name not in FIRST)]
    settle("table", known, known[0])
    picked = st.selectbox("Table", known, format_func=lambda name: f"{table(name).title} ({table(name).place})", key="table")
    st.query_params["table"] = picked
    shown = table(picked)
    rows = published_rows(shown)
    figure = drawing_or_none("published", picked, lambda colours: figures.published_table(shown, colours))
    if figure is not None:
        answer = f"{shown.caption} {MARK} {shown.place}, n = {counted(len(shown.rows), 'row')}."
        show_chart(shown.title, figure, answer, key="published-chart", csv=lambda: published_csv(rows, shown.place))
    hints = {name: st.column_config.TextColumn(help=HINTS["p95"]) for name in rows[0] if "95th percentile" in name}
    st.dataframe(rows, hide_index=True, placeholder="", height=table_height(len(rows), most=560), column_config=hints)
    spread = any("±" in str(value) for row in rows for value in row.values())
    st.caption(" ".join(filter(None, [f"Published, {shown.place}.", shown.note])), help=HINTS["published_sd"] if spread else None)
    measured(shown)
    with link:
        share(lambda: [PublishedSection(table=picked)])


run_page(main)
