"""The parts of the context growth page: which runs are compared, the table against a baseline, first divergences."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from pamer_lab.access import reviewer_mode
from pamer_lab.analysis.growth import mean_context, policy_table, run_table, turn_table
from pamer_lab.errors import LabError
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import needs_models, why_not
from pamer_lab.policies.registry import parse_policy
from pamer_lab.replay.batch import BatchOptions
from pamer_lab.replay.divergence import first_divergence
from pamer_lab.replay.engine import ReplayOptions, replay
from pamer_lab.replay.evidence import survival_rates
from pamer_lab.replay.prices import PriceTable, cost
from pamer_lab.replay.values import FIXED_ACTIONS
from pamer_lab.report.config import RunChoice
from pamer_lab.report.replay_part import choice_of
from pamer_lab.ui.downloads import download
from pamer_lab.ui.loaders import workspace
from pamer_lab.ui.numbers import counted, short
from pamer_lab.ui.picker import trace_label
from pamer_lab.ui.run_tables import own_prices
from pamer_lab.ui.runs import background, fates_of, open_run, run_store, version
from pamer_lab.ui.text import in_code, one_line
from pamer_lab.ui.theme import colours
from pamer_lab.ui.widgets import table_height
from pamer_lab.ui.words import HINTS

AT_ONCE = 600
"""Turns of all traces together up to which policies without models are replayed at once on an empty page."""
MOST_TRACES = 40
"""Traces whose evidence and divergences are computed on one page."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _runs(path: str, at: tuple[int, int]) -> pl.DataFrame:
    return run_table(workspace())


def all_runs(profile: str) -> pl.DataFrame:
    """Finished runs with a profile; one per trace and policy."""
    found = _runs(str(workspace().path), version())
    if found.is_empty():
        return found
    return found.filter(pl.col("profile") == profile).unique(["policy", "trace_id"], keep="last", maintain_order=True)


@st.cache_resource(max_entries=8, show_spinner=False)
def _turns(path: str, at: tuple[int, int], run_ids: tuple[str, ...], _runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    turns = turn_table(workspace(), _runs)
    return turns, mean_context(turns)


def turns_and_means(runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The turns of these runs, and the mean context at each turn."""
    return _turns(str(workspace().path), version(), tuple(runs["run_id"]), runs)


@st.cache_resource(max_entries=8, show_spinner=False)
def _policy_table(path: str, at: tuple[int, int], run_ids: tuple[str, ...], _runs: pl.DataFrame) -> pl.DataFrame:
    return policy_table(_runs)


def run_choices(runs: pl.DataFrame) -> tuple[RunChoice, ...]:
    """The runs of a table by what makes them, for a share file."""
    return tuple(choice_of(head) for head in run_store().heads(run_ids=runs["run_id"].to_list()))


def ensure_something(rows: Sequence[dict[str, Any]], policies: Sequence[str], profile: str) -> None:
    """Policies that need no model are replayed at once where runs are missing, if that is quick."""
    if reviewer_mode() or background().current:
        return
    runs = all_runs(profile)
    have = set(zip(runs["policy"].to_list(), runs["trace_id"].to_list(), strict=True)) if not runs.is_empty() else set()
    light = [policy for policy in policies if not needs_models(parse_policy(policy))]
    missing = [(row, policy) for row in rows for policy in light if (policy, row["trace_id"]) not in have]
    if not missing or sum(row["turns"] for row, _ in missing) > AT_ONCE * len(light):
        return
    try:
        with st.spinner(f"Replaying {counted(len({row['trace_id'] for row, _ in missing}), 'trace')} through {', '.join(light)}…"):
            for row, policy in missing:
                replay(row["trace_id"], policy, workspace(), ReplayOptions(profile=profile))
    except LabError as error:
        st.warning(f"A policy without models could not be replayed; the runs that exist are shown. {in_code(str(error), 400)}")


def run_missing(trace_ids: Sequence[str], policies: Sequence[str], runs: pl.DataFrame, profile: str) -> None:
    """What is not replayed yet, with the button for it; or the progress of what runs."""
    if reviewer_mode():
        return
    batch = background().current
    if batch is not None:
        line = batch.progress.line.partition("  ")[0] if batch.progress else "starting"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(f"A replay is running: {line}. The page shows finished runs.", icon=":material/hourglass_top:")
            st.button("Look again", key="again")
            st.button("Stop", key="stop", on_click=batch.stop)
        return
    have = set(zip(runs["policy"].to_list(), runs["trace_id"].to_list(), strict=True)) if not runs.is_empty() else set()
    reasons = {policy: why_not(parse_policy(policy), load_profile(profile)) for policy in policies}
    for policy, reason in reasons.items():
        if reason and not any(name == policy for name, _ in have):
            st.info(f"**{policy}** is not available here: {in_code(reason, 300)}", icon=":material/block:")
    possible = [policy for policy in policies if not reasons[policy]]
    missing = sum((policy, trace_id) not in have for policy in possible for trace_id in trace_ids)
    if missing:
        options = BatchOptions(profile, processes=2)
        st.button(
            f"Replay the missing {counted(missing, 'run')}",
            key="run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_start,
            args=(list(trace_ids), possible, options),
        )


def _start(trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> None:
    background().start(trace_ids, policies, options)


def comparison(runs: pl.DataFrame, policies: Sequence[str], baseline: str) -> None:
    """Policies as rows, each change against the baseline with sign and colour: fewer tokens are good."""
    import pandas as pd

    table = _policy_table(str(workspace().path), version(), tuple(runs["run_id"]), runs)
    rows = {row["policy"]: row for row in table.to_dicts()}
    base = rows[baseline]
    with st.container(horizontal=True, vertical_alignment="center"):
        prices = own_prices()
        st.space("stretch")
        download("CSV", table.write_csv, "policies.csv", "text/csv", key="policies-csv")
    kept, costs = _evidence(runs), _costs(runs, prices)
    shown = []
    for policy, row in ((policy, rows[policy]) for policy in policies):
        line = {
            "Policy": policy + (" (baseline)" if policy == baseline else ""),
            "Traces": row["traces"],
            "Mean total": short(row["mean_total"]),
            "Total vs baseline": _delta(row["mean_total"], base["mean_total"]),
            "Mean peak": short(row["mean_peak"]),
            "Peak vs baseline": _delta(row["mean_peak"], base["mean_peak"]),
            "Reduction against raw": _reduction(row),
            "Auxiliary": short(row["aux_input"] + row["aux_output"]),
            "Cached input": f"{100 * row['cached_input'] / max(row['main_input'], 1):.1f} %",
            "Uncached vs baseline": _delta(row["uncached_input"], base["uncached_input"]),
            "Evidence in context": kept.get(policy, ""),
            "Cost": costs.get(policy, ""),
        }
        shown.append(line)
    empty = {key for key in shown[0] if not any(line[key] for line in shown)}
    frame = pd.DataFrame([{key: value for key, value in line.items() if key not in empty} for line in shown])
    paint = colours()
    changes = [name for name in frame.columns if name.endswith("baseline")]
    styled = frame.style.map(
        lambda text: f"color: {paint['good'] if text.startswith('▼') else paint['bad']}" if text[:1] in "▼▲" and text else "",
        subset=changes,
    )
    hints = {
        "Reduction against raw": "Share of all tokens that is saved against sending the recorded history as it is, with its interval.",
        "Auxiliary": "Tokens of model calls that the policy itself makes: summaries, choosing steps.",
        "Cached input": HINTS["cached"],
        "Uncached vs baseline": "Input that no prefix cache could serve. A context that is rewritten often is shorter, but cached less.",
        "Evidence in context": f"Share still before the model, word for word, when it was used. {HINTS['evidence']}",
    }
    columns = {name: st.column_config.TextColumn(help=hint) for name, hint in hints.items()}
    st.dataframe(styled, hide_index=True, column_config=columns)
    st.caption(f"▼ fewer, ▲ more than {baseline}. The reduction's interval is 95 %, resampled by task. {FIXED_ACTIONS}")


def _reduction(row: dict[str, Any]) -> str:
    """With its interval; one trace has none."""
    interval = f" [{row['reduction_low']:.1f}, {row['reduction_high']:.1f}]" if row["traces"] > 1 else ""
    return f"{row['reduction_pct']:.1f} %{interval}"


def _delta(value: float, base: float) -> str:
    if not base or value == base:
        return "="
    return f"{'▼' if value < base else '▲'} {100 * (value / base - 1):+.1f} %"


def _evidence(runs: pl.DataFrame) -> dict[str, str]:
    """Share of used evidence before the model, by policy; only where it is quick."""
    if runs["trace_id"].n_unique() > MOST_TRACES:
        return {}
    return _survival(str(workspace().path), version(), tuple(runs["run_id"]))


@st.cache_resource(max_entries=8, show_spinner=False)
def _survival(path: str, at: tuple[int, int], run_ids: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, list[Any]] = {}
    for head in run_store().heads(run_ids=run_ids):
        found.setdefault(head.policy, []).extend(fates_of(open_run(head)))
    rates = {policy: survival_rates(fates) for policy, fates in found.items()}
    return {policy: f"{rate['in_context_pct']:.1f} % of {rate['uses']:,}" for policy, rate in rates.items() if rate["uses"]}


def _costs(runs: pl.DataFrame, prices: PriceTable) -> dict[str, str]:
    if not prices.rows:
        return {}
    sums: dict[str, float | None] = {}
    for head in run_store().heads(run_ids=runs["run_id"].to_list()):
        spent, before = cost(head.totals, prices)["total"], sums.get(head.policy, 0.0)
        sums[head.policy] = None if spent is None or before is None else before + spent
    return {policy: f"{value:,.4f} {one_line(prices.currency, 8)}" for policy, value in sums.items() if value is not None}


def divergences(runs: pl.DataFrame, baseline: str, rows: Sequence[dict[str, Any]]) -> None:
    """For each trace, the first turn whose context differs from the baseline's; either side opens its own turn."""
    names = {row["trace_id"]: trace_label(row) for row in rows}
    heads = run_store().heads(run_ids=runs["run_id"].to_list())
    bases = {head.trace_id: head for head in heads if head.policy == baseline}
    policies = sorted({head.policy for head in heads})
    lines = []
    for head in [head for head in heads if head.policy != baseline and head.trace_id in bases][: MOST_TRACES * 2]:
        found = first_divergence(open_run(bases[head.trace_id]), open_run(head))
        at = found.t if found.t is not None else 0
        lines.append(
            {
                "Trace": names.get(head.trace_id, head.trace_id),
                "Policy": head.policy,
                "First differs at turn": found.t,
                "In words": found.sentence,
                "Baseline's turn": _link(head.trace_id, policies, baseline, at),
                "Policy's turn": _link(head.trace_id, policies, head.policy, at),
            }
        )
    if not lines:
        st.caption("Choose a second policy to see where it first shows the model another context.")
        return
    column = st.column_config.LinkColumn(display_text="open")
    st.dataframe(
        lines,
        hide_index=True,
        height=table_height(len(lines), most=320),
        column_config={"Baseline's turn": column, "Policy's turn": column},
    )


def _link(trace_id: str, policies: Sequence[str], policy: str, turn: int) -> str:
    return "/replay?" + urlencode({"trace": trace_id, "policies": list(policies), "policy": policy, "turn": turn}, doseq=True)
