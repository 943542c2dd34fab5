"""Context growth: the mean context per turn over many traces, and totals by policy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pamer_lab import figures
from pamer_lab.analysis.growth import REFERENCE_LINE, complete_traces, counting, covering
from pamer_lab.figures.growth import MOST_BANDS, MOST_LINES, by_family, drawn_traces
from pamer_lab.figures.text import counted, short
from pamer_lab.policies.registry import parse_policy
from pamer_lab.report.config import GrowthSection
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.growth.every_policy import every_policy
from pamer_lab.ui.growth.frontier import cost_frontier
from pamer_lab.ui.growth.per_trace import per_trace
from pamer_lab.ui.growth.table import comparison, growth_verdicts
from pamer_lab.ui.growth.view import (
    MOST_COMPARED,
    choose_traces,
    divergences,
    ensure_something,
    first_policies,
    run_choices,
    run_missing,
    turns_and_means,
)
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.heads_select import choose_heads, choose_profile, describe_heads
from pamer_lab.ui.shared.loaders import rows_named, rows_or_demo
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.picker import name_of, trace_label
from pamer_lab.ui.shared.run_choice import choose_policies
from pamer_lab.ui.shared.runs import all_runs, background, counted_how, demo_words, version
from pamer_lab.ui.shared.share import share
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

VIEWS = ["By family", "One chart"]
MOST_NAMES = 5
# Excluded traces that are named. (A bare string here would be drawn on the page.)


def chart(runs: pl.DataFrame, policies: list[str], asked: int, names: dict[str, str], controls: DeltaGenerator) -> None:
    """Means of all policies. `asked`: how many traces the reader chose; `names`: display names by trace id."""
    turns, means = turns_and_means(runs)
    # If all means are far below it, the line would only squeeze the chart.
    near = float(means["mean_active"].max() or 0) * 4 >= REFERENCE_LINE
    single = controls.toggle(
        "Show each trace",
        key="lines",
        bind="query-params",
        help=f"At most {MOST_LINES} lines, the longest traces first, each with its name.",
    )
    families, highlight = False, []
    if len(policies) > MOST_BANDS:
        families = controls.segmented_control("View", VIEWS, default=VIEWS[0], key="view", bind="query-params", required=True) == VIEWS[0]
        if not families:
            highlight = controls.multiselect("Highlight", policies, key="highlight", bind="query-params", placeholder="none")
    reference = controls.toggle(
        "128K line", value=near, key="line128", bind="query-params", help="For reference only; no limit is enforced."
    )
    if runs["demo"].any():
        controls.markdown(":gray-badge[demo]", help=HINTS["demo"], width="content")
    ends = []
    for policy in policies:
        part = runs.filter(pl.col("policy") == policy)
        if not part.is_empty():
            ends.append(f"{policy} {short(float(part['peak_active'].mean() or 0))}")
    traces, drawn = runs["trace_id"].n_unique(), drawn_traces(runs) if single else []
    n = counted(traces, "trace") if traces == asked else f"{traces:,} of {asked:,} chosen traces"
    bands = "The band covers 80 % of the traces" if len(policies) <= MOST_BANDS else "Lines are means, without bands"
    band = bands if not single else f"Thin lines are {len(drawn):,} of {counted(traces, 'trace')}"
    answer = (
        f"Mean peak: {', '.join(ends)} tokens; n = {n}, {counted_how(runs)}. {band}; means are over the traces still "
        f"running{'' if families else ', counted in the lower panel'}. Actions are fixed.{demo_words(runs)}"
    )
    lines = {name: names.get(name, name) for name in drawn}
    show_chart(
        "Mean context size per turn",
        drawing(
            "means",
            (version(), tuple(runs["run_id"]), tuple(policies), single, reference, tuple(lines.values()), families, tuple(highlight)),
            lambda colours: (
                by_family(means, policies, colours)
                if families
                else figures.mean_context(
                    means, policies, colours, singles=turns if single else None, names=lines, reference=reference, highlight=highlight
                )
            ),
        ),
        answer,
        key="growth-means",
        hint=HINTS["active"],
        csv=lambda: csv_text(means.join(counting(runs), on="policy", maintain_order="left")),
    )


def follow_choice() -> None:
    """Put the chosen traces in the URL; traces of a link that are missing here are dropped."""
    st.query_params["traces"] = ",".join(st.session_state["traces"])


def only_common(runs: pl.DataFrame, policies: list[str], names: dict[str, str]) -> pl.DataFrame:
    """The runs of traces that every policy was replayed on; the page names the excluded traces."""
    complete = complete_traces(runs, policies)
    left_out = [names.get(name, name) for name in runs["trace_id"].unique().sort() if name not in complete]
    if left_out:
        more = f" and {len(left_out) - MOST_NAMES:,} more" if len(left_out) > MOST_NAMES else ""
        say = st.caption if complete else st.info
        say(
            f":material/filter_alt: {counted(len(left_out), 'trace')} excluded, because not every policy was replayed on "
            f"{'it' if len(left_out) == 1 else 'them'}: {', '.join(in_code(name, 60) for name in left_out[:MOST_NAMES])}{more}. "
            "Replay the missing runs, or turn off “Common traces only”."
        )
    return runs.filter(pl.col("trace_id").is_in(list(complete)))


def results(
    runs: pl.DataFrame,
    present: list[str],
    known: dict[str, dict[str, Any]],
    asked: int,
    link: DeltaGenerator,
    all_policies: Callable[[], None],
) -> None:
    """Chart, totals and details of these runs; `link` gets the share button, `all_policies` is drawn below the totals."""
    verdict, controls = st.container(), st.container(horizontal=True)
    names = {name: name_of(row) for name, row in known.items()}
    if len(present) > 1 and controls.toggle("Common traces only", value=True, key="common", bind="query-params", help=HINTS["common"]):
        runs = only_common(runs, present, names)
        if runs.is_empty():
            all_policies()
            return
    chart(runs, present, asked, names, controls)
    st.subheader("Totals by policy")
    baseline = (
        st.segmented_control(
            "Baseline", present, default=present[0], required=True, key="baseline", bind="query-params", help=HINTS["baseline"]
        )
        or present[0]
    )
    comparison(runs, present, baseline)
    cost_frontier(runs)
    with verdict:
        growth_verdicts(runs, present, baseline)
    with link:
        share(lambda: [GrowthSection(runs=run_choices(runs), baseline=baseline)])
    all_policies()
    traces = st.expander("Each trace", key="per-trace-panel", on_change="rerun")
    if traces.open:
        with traces:
            per_trace(runs, present, baseline, names, {name: row["reward"] for name, row in known.items()})
    panel = st.expander("First difference from the baseline", key="divergence", on_change="rerun")
    if panel.open:
        with panel:
            divergences(runs, baseline, list(known.values()))


def main() -> None:
    rows, _ = rows_or_demo()
    title, link = st.columns([7, 1], vertical_alignment="bottom")
    title.title("Context growth")
    if not rows:
        st.info("There are no traces yet. Add a file on the Traces page.")
        st.page_link("pages/traces.py", label="Go to Traces", icon=":material/list_alt:")
        return
    left, middle, right, last = st.columns([6, 3, 2, 2], gap="medium")
    asked = st.query_params.get("traces", "")
    found = choose_traces(rows)
    fitting = found.rows
    known = {row["trace_id"]: row for row in (*rows, *fitting)} | rows_named(filter(None, asked.split(",")))
    with left:
        named = [known[name] for name in asked.split(",") if name in known]
        first = first_policies(named or fitting)
        policies = choose_policies(first=first, most=MOST_COMPARED)
    if "traces" not in st.session_state:
        st.session_state["traces"] = [name for name in asked.split(",") if name in known]
    gone = [name for name in asked.split(",") if name and name not in known]
    chosen = middle.multiselect(
        "Traces",
        list(known),
        key="traces",
        placeholder=f"all {len(fitting):,} matching",
        format_func=lambda name: trace_label(known[name]),
        on_change=follow_choice,
    )
    if not chosen and not found.complete:
        st.caption(f"Comparing {len(fitting):,} of {found.fitting:,} matching traces, the most recently stored. Use filters to see others.")
    if gone:
        st.warning(f"Not in this workspace: {counted(len(gone), 'trace')} from this link ({in_code(', '.join(gone), 200)}).")
    elif chosen or asked:
        st.query_params["traces"] = ",".join(chosen)
    profile = choose_profile(right)
    factory = choose_heads(last, profile)
    if not policies:
        st.info("Choose at least one policy.")
        return
    trace_ids = chosen or [row["trace_id"] for row in fitting]
    if not trace_ids:
        st.info("No trace matches these filters.")
        return
    ensure_something([known[name] for name in trace_ids], policies, factory)
    runs = all_runs(profile, trace_ids, factory.heads.heads.sha256 if factory.heads_text else "")
    if not runs.is_empty():
        runs = runs.filter(pl.col("policy").is_in(policies) & pl.col("trace_id").is_in(trace_ids))
    run_missing(trace_ids, policies, runs, factory, first)
    if runs.is_empty():
        every_policy(trace_ids, policies, factory)
        hint = "" if reviewer_mode() else " Start with the button above."
        st.info(f"None of these traces has been replayed with these policies.{hint}")
        return
    present = [policy for policy in policies if policy in set(runs["policy"])]
    if background().current is not None:
        # A running batch would exclude every trace that it has not reached yet.
        present = covering(runs, present)
        runs = runs.filter(pl.col("policy").is_in(present))
    results(runs, present, known, len(trace_ids), link, partial(every_policy, trace_ids, policies, factory))
    if any(parse_policy(policy).needs_models for policy in policies):
        describe_heads(factory)


run_page(main)
