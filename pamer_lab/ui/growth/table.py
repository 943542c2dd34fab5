"""The table of the Context growth page: totals by policy, with each change against a baseline."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import policy_table
from pamer_lab.analysis.growth_tables import policy_lines
from pamer_lab.analysis.verdict import Account, Sense, Verdict, token_sense, verdicts
from pamer_lab.figures.text import counted, one_line, short
from pamer_lab.prices import PriceTable
from pamer_lab.runs.evidence import survival_rates
from pamer_lab.runs.values import FIXED_ACTIONS
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.prices import choose_prices, cost_of, current_prices, price_key
from pamer_lab.ui.shared.runs import fates_of, open_run, run_store, version
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.theme import colours
from pamer_lab.ui.shared.verdicts import show_verdicts, verdicts_of
from pamer_lab.ui.shared.words import HINTS

MOST_TRACES, MOST_RUNS, MOST_TURNS = 40, 150, 6_000
"""Limits of the search for evidence on one page (a few seconds): this many traces, or more if all runs and turns stay within theirs."""
LEFT_OUT = f"Cost, evidence and drops are not computed for more than {MOST_TRACES} traces with long or many runs; choose fewer traces."
"""Shown if they are left out."""
Costs = dict[str, tuple[float, float]]
"""By policy: its cost, and that of the base agent on the same traces."""
EVIDENCE_CHANGE = "Evidence vs baseline"
"""The only change where more is better."""
COST_CHANGE = "Cost vs baseline"


@st.cache_resource(max_entries=8, show_spinner=False)
def _policy_table(path: str, at: tuple[int, int], run_ids: tuple[str, ...], _runs: pl.DataFrame) -> pl.DataFrame:
    return policy_table(_runs)


def comparison(runs: pl.DataFrame, policies: Sequence[str], baseline: str) -> None:
    """Policies as rows. Green is a lower cost, more evidence, and fewer tokens if the cost is known and not higher."""
    import pandas as pd

    table = _policy_table(str(workspace().path), version(), tuple(runs["run_id"]), runs)
    rows = {row["policy"]: row for row in table.to_dicts()}
    with st.container(horizontal=True, vertical_alignment="center"):
        prices = choose_prices()
        st.space("stretch")
        file = st.container(width="content")
    few = _few(runs)
    kept = _survival(str(workspace().path), version(), tuple(runs["run_id"])) if few else {}
    costs = _costs(str(workspace().path), version(), tuple(runs["run_id"]), price_key(prices), prices) if few else {}
    shown = [_line(rows[policy], rows[baseline], kept, costs, one_line(prices.currency, 8)) for policy in policies]
    with file:
        lines = policy_lines(table, policies, baseline, kept, costs, prices.currency)
        download("CSV", lambda: csv_text(lines), "policies.csv", "text/csv", key="policies-csv")
    empty = {key for key in shown[0] if not any(line[key] for line in shown)}
    frame = pd.DataFrame([{key: value for key, value in line.items() if key not in empty} for line in shown])
    paint = colours()
    styled = frame.style
    each = [(_per_trace(costs, rows, policy), _per_trace(costs, rows, baseline)) for policy in policies]
    for name in (name for name in frame.columns if name.endswith("baseline")):
        styled = styled.apply(
            lambda column, name=name: [
                f"color: {paint[sense]}" if text[:1] in ("▼", "▲") and (sense := good_or_bad(name, text, pair)) else ""
                for text, pair in zip(column, each, strict=True)
            ],
            subset=[name],
        )
    hints = {
        "Mean peak": HINTS["mean_peak"],
        "Reduction against raw": "Tokens saved relative to sending the raw history, with a 95 % interval.",
        "Auxiliary": "Tokens of the policy's own model calls, such as summaries. The `embedded` profile makes none.",
        "Cached input": HINTS["cached"],
        "Uncached vs baseline": "Input that a prefix cache cannot serve. A context that is rewritten often is shorter, but cached less.",
        "Evidence in context": HINTS["in_context"],
        EVIDENCE_CHANGE: "In percentage points; higher is better.",
        "Cost vs base": HINTS["cost"],
        "Cost vs baseline": "Per trace, at the chosen prices.",
    }
    columns = {name: st.column_config.TextColumn(help=hint) for name, hint in hints.items()}
    st.dataframe(styled, hide_index=True, placeholder="", column_config=columns)
    said = [
        f"▼ fewer, ▲ more than {in_code(baseline, 60)}. Green is better; token changes are coloured only if the cost "
        "changes in the same direction. "
        "The interval of the reduction is a 95 % bootstrap, clustered by task."
    ]
    if len({row["traces"] for row in rows.values()}) > 1:
        said.append("The policies here cover different traces, so a change may be due to the traces.")
    if not few:
        said.append(LEFT_OUT)
    said.append(f"Cost: simulated with prices {in_code(prices.described, 300)}.")
    st.caption(" ".join([*said, FIXED_ACTIONS]))


def growth_verdicts(runs: pl.DataFrame, policies: Sequence[str], baseline: str) -> None:
    """The page's first lines; a note says if they leave out cost, evidence and drops."""
    count, few = runs["trace_id"].n_unique(), _few(runs)
    if few:
        found = _verdicts(str(workspace().path), version(), tuple(runs["run_id"]), baseline, price_key(current_prices()))
    else:
        rows = runs.group_by("policy").agg(pl.len().alias("traces"), pl.col("total").sum()).iter_rows(named=True)
        found = verdicts([Account(row["policy"], row["traces"], row["total"]) for row in rows], baseline)
    order = {policy: place for place, policy in enumerate(policies)}
    show_verdicts(sorted(found, key=lambda one: order.get(one.policy, len(order))), counted(count, "trace"), "" if few else LEFT_OUT)


def _few(runs: pl.DataFrame) -> bool:
    """Whether the runs are few enough for a page to search for their evidence."""
    short = runs.height <= MOST_RUNS and int(runs["turns"].sum()) <= MOST_TURNS
    return short or runs["trace_id"].n_unique() <= MOST_TRACES


@st.cache_resource(max_entries=8, show_spinner="Searching for evidence…")
def _verdicts(path: str, at: tuple[int, int], run_ids: tuple[str, ...], baseline: str, prices: bytes) -> list[Verdict]:
    return verdicts_of([open_run(head) for head in run_store().heads(run_ids=run_ids)], baseline)


def good_or_bad(column: str, change: str, costs: tuple[float | None, float | None] = (None, None)) -> Sense:
    """What a change means: more evidence and a lower cost are good; fewer tokens only if the cost (own, baseline's) is not higher."""
    more = change.startswith("▲")
    if column == EVIDENCE_CHANGE:
        return "good" if more else "bad"
    return ("bad" if more else "good") if column == COST_CHANGE else token_sense(1.0 if more else -1.0, 0.0, *costs)


def _line(row: dict[str, Any], base: dict[str, Any], kept: dict[str, Any], costs: Costs, currency: str) -> dict[str, Any]:
    policy, against = row["policy"], base["policy"]
    found, before = kept.get(policy), kept.get(against)
    line = {
        "Policy": policy + (" (baseline)" if policy == against else ""),
        "Traces": row["traces"],
        "Mean total": short(row["mean_total"]),
        "Total vs baseline": delta(row["mean_total"], base["mean_total"]),
        "Mean peak": short(row["mean_peak"]),
        "Peak vs baseline": delta(row["mean_peak"], base["mean_peak"]),
        "Reduction against raw": _reduction(row),
        "Auxiliary": short(row["aux_input"] + row["aux_output"]),
        "Cached input": f"{100 * row['cached_input'] / max(row['main_input'], 1):.1f} %",
        "Uncached vs baseline": delta(row["uncached_input"] / row["traces"], base["uncached_input"] / base["traces"]),
        "Evidence in context": f"{found['in_context_pct']:.1f} % of {found['uses']:,}" if found else "",
        EVIDENCE_CHANGE: points(found["in_context_pct"], before["in_context_pct"]) if found and before else "",
    }
    total, raw = costs.get(policy, (0.0, 0.0))
    line |= {"Cost": f"{total:,.4f} {currency}" if policy in costs else "", "Cost vs base": f"{total / raw:.2f}" if raw else ""}
    both = policy in costs and against in costs
    return line | {"Cost vs baseline": delta(total / row["traces"], costs[against][0] / base["traces"]) if both else ""}


def _per_trace(costs: Costs, rows: dict[str, dict[str, Any]], policy: str) -> float | None:
    return costs[policy][0] / rows[policy]["traces"] if policy in costs else None


def _reduction(row: dict[str, Any]) -> str:
    """The reduction with its interval; a single trace has none."""
    interval = f" [{row['reduction_low']:.1f}, {row['reduction_high']:.1f}]" if row["traces"] > 1 else ""
    return f"{row['reduction_pct']:.1f} %{interval}"


def delta(value: float, base: float) -> str:
    """A change in percent, with its sign."""
    if not base or value == base:
        return "="
    return f"{'▼' if value < base else '▲'} {100 * (value / base - 1):+.1f} %"


def points(value: float, base: float) -> str:
    """A change of a share, in percentage points."""
    return "=" if value == base else f"{'▼' if value < base else '▲'} {value - base:+.1f} points"


@st.cache_resource(max_entries=8, show_spinner=False)
def _costs(path: str, at: tuple[int, int], run_ids: tuple[str, ...], key: bytes, _prices: PriceTable) -> Costs:
    """Cost of each policy's runs, and that of the base agent on the same traces."""
    found: dict[str, tuple[float, float]] = {}
    for head in run_store().heads(run_ids=run_ids):
        cost, (total, base) = cost_of(open_run(head), _prices), found.get(head.policy, (0.0, 0.0))
        found[head.policy] = total + cost.total, base + cost.base_total
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def _survival(path: str, at: tuple[int, int], run_ids: tuple[str, ...]) -> dict[str, Any]:
    """Survival of used evidence by policy; policies without any are omitted."""
    found: dict[str, list[Any]] = {}
    for head in sorted(run_store().heads(run_ids=run_ids), key=lambda head: head.trace_id):  # by trace, since the caches hold only a few
        found.setdefault(head.policy, []).extend(fates_of(open_run(head)))
    rates = {policy: survival_rates(fates) for policy, fates in found.items()}
    return {policy: rate for policy, rate in rates.items() if rate["uses"]}
