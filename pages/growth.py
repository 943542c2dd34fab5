"""Context growth: many traces under several policies; the mean context per turn, and what each policy comes to."""

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pamer_lab.analysis.growth import REFERENCE_LINE
from pamer_lab.models.profiles import PROFILES
from pamer_lab.report.config import GrowthSection
from pamer_lab.ui.charts import show_chart
from pamer_lab.ui.drawing import drawing
from pamer_lab.ui.growth_charts import MOST_LINES, mean_figure
from pamer_lab.ui.growth_view import all_runs, comparison, divergences, ensure_something, run_choices, run_missing, turns_and_means
from pamer_lab.ui.loaders import rows_or_demo
from pamer_lab.ui.numbers import counted, short
from pamer_lab.ui.page import run as run_page
from pamer_lab.ui.picker import trace_label
from pamer_lab.ui.run_form import choose_policies
from pamer_lab.ui.runs import version
from pamer_lab.ui.share import share
from pamer_lab.ui.text import in_code
from pamer_lab.ui.words import HINTS


def chart(runs: pl.DataFrame, policies: list[str], tokenizer: str, controls: DeltaGenerator) -> None:
    turns, means = turns_and_means(runs)
    # Far below the line it would only squeeze the chart.
    near = float(means["mean_active"].max() or 0) * 4 >= REFERENCE_LINE
    single = controls.toggle("Each trace as a line", key="lines", bind="query-params", help=f"At most {MOST_LINES} lines.")
    reference = controls.toggle("128K line", value=near, key="line128", bind="query-params", help="A reference only; nothing enforces it.")
    ends = []
    for policy in policies:
        part = runs.filter(pl.col("policy") == policy)
        if not part.is_empty():
            ends.append(f"{policy} {short(float(part['peak_active'].mean() or 0))}")
    traces = runs["trace_id"].n_unique()
    answer = (
        f"Mean peak: {', '.join(ends)} tokens; n = {counted(traces, 'trace')}, measured with {tokenizer}. The band holds 80 % "
        "of the traces; a mean is taken over the traces still running, whose number stands below it. Actions are fixed."
    )
    show_chart(
        "How full is the context on average, turn by turn?",
        drawing(
            "means",
            (version(), tuple(runs["run_id"]), tuple(policies), single, reference),
            lambda colours: mean_figure(means, policies, colours, singles=turns if single else None, reference=reference),
        ),
        answer,
        key="growth-means",
        hint=HINTS["active"],
        csv=means.write_csv,
    )


def main() -> None:
    rows, _ = rows_or_demo()
    title, link = st.columns([7, 1], vertical_alignment="bottom")
    title.title("Context growth")
    if not rows:
        st.info("There are no traces yet. Add a file on the Traces page.")
        st.page_link("pages/traces.py", label="Go to Traces", icon=":material/list_alt:")
        return
    left, middle, right = st.columns([6, 3, 2], gap="medium")
    with left:
        policies = choose_policies()
    known = {row["trace_id"]: row for row in rows}
    asked = st.query_params.get("traces", "")
    if "traces" not in st.session_state:
        st.session_state["traces"] = [name for name in asked.split(",") if name in known]
    gone = [name for name in asked.split(",") if name and name not in known]
    chosen = middle.multiselect(
        "Traces", list(known), key="traces", placeholder="all traces", format_func=lambda name: trace_label(known[name])
    )
    if gone:
        st.warning(f"This link also needs {counted(len(gone), 'trace')} that this workspace lacks: {in_code(', '.join(gone), 200)}.")
    elif chosen or asked:
        st.query_params["traces"] = ",".join(chosen)
    profile = right.selectbox("Profile", list(PROFILES), key="profile", bind="query-params", help=HINTS["profile"])
    if not policies:
        st.info("Choose at least one policy.")
        return
    trace_ids = chosen or list(known)
    ensure_something([known[name] for name in trace_ids], policies, profile)
    runs = all_runs(profile)
    if not runs.is_empty():
        runs = runs.filter(pl.col("policy").is_in(policies) & pl.col("trace_id").is_in(trace_ids))
    run_missing(trace_ids, policies, runs, profile)
    if runs.is_empty():
        st.info("None of these traces was replayed through these policies yet. Start with the button above.")
        return
    present = [policy for policy in policies if policy in set(runs["policy"])]
    controls = st.container(horizontal=True)
    if len(present) > 1 and controls.toggle("Only traces that every policy has", value=True, key="common", bind="query-params"):
        counts = runs.group_by("trace_id").agg(pl.col("policy").n_unique().alias("policies"))
        complete = counts.filter(pl.col("policies") == len(present))["trace_id"]
        runs = runs.filter(pl.col("trace_id").is_in(complete.to_list()))
        if runs.is_empty():
            st.info("No trace was replayed through all of these policies. Replay the missing runs, or compare all traces.")
            return
    chart(runs, present, str(known[runs["trace_id"][0]]["tokenizer"]), controls)
    st.subheader("What does each policy come to?")
    baseline = (
        st.segmented_control("Baseline", present, default=present[0], required=True, key="baseline", bind="query-params") or present[0]
    )
    comparison(runs, present, baseline)
    with link:
        share(lambda: [GrowthSection(runs=run_choices(runs), baseline=baseline)])
    panel = st.expander("Where does each policy first differ from the baseline?", key="divergence", on_change="rerun")
    if panel.open:
        with panel:
            divergences(runs, baseline, rows)


run_page(main)
