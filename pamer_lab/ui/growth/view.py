"""The parts of the Context growth page: missing runs and how to make them, means per turn, first divergences."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import mean_context, missing_runs, turn_table
from pamer_lab.factory import Factory
from pamer_lab.figures.text import counted
from pamer_lab.policies.availability import is_light, why_not
from pamer_lab.policies.registry import parse_policy
from pamer_lab.report.config import RunChoice
from pamer_lab.report.replay_part import choice_of
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.runs.divergence import first_divergence
from pamer_lab.runs.engine import ReplayOptions
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.run_form import estimated, replay_at_once, say_unavailable
from pamer_lab.ui.shared.runs import all_runs, background, open_run, run_store, version
from pamer_lab.ui.shared.state import only_followed_a_link
from pamer_lab.ui.shared.widgets import table_height

AT_ONCE = 600
"""Turns of all traces together up to which policies without models are replayed at once on an empty page."""
MOST_PAIRS = 80
"""Pairs of runs whose first divergence is looked for at once."""


@st.cache_resource(max_entries=8, show_spinner=False)
def _turns(path: str, at: tuple[int, int], run_ids: tuple[str, ...], _runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    turns = turn_table(workspace(), _runs)
    return turns, mean_context(turns)


def turns_and_means(runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The turns of these runs, and the mean context at each turn."""
    return _turns(str(workspace().path), version(), tuple(runs["run_id"]), runs)


def run_choices(runs: pl.DataFrame) -> tuple[RunChoice, ...]:
    """The runs of a table by what makes them, for a share file."""
    return tuple(choice_of(head) for head in run_store().heads(run_ids=runs["run_id"].to_list()))


def ensure_something(rows: Sequence[dict[str, Any]], policies: Sequence[str], factory: Factory) -> None:
    """Policies that need no model are replayed at once where runs are missing, if that is quick and no link asked for it."""
    linked = only_followed_a_link([row["trace_id"] for row in rows], list(policies), factory.profile.name)
    if linked or reviewer_mode() or background().current:
        return
    runs = all_runs(factory.profile.name)
    light = [name for name in policies if is_light(policy := parse_policy(name), factory) and not why_not(policy, factory)]
    turns = {row["trace_id"]: int(row["turns"]) for row in rows}
    missing = [(name, policy) for policy, names in missing_runs(runs, light, list(turns)).items() for name in names]
    if not missing or sum(turns[name] for name, _ in missing) > AT_ONCE * len(light):
        return
    traces = counted(len({name for name, _ in missing}), "trace")
    replay_at_once(missing, ReplayOptions(profile=factory.profile.name), traces)


def run_missing(trace_ids: Sequence[str], policies: Sequence[str], runs: pl.DataFrame, factory: Factory) -> None:
    """What is not replayed yet, with the button for it; or the progress of what runs."""
    if reviewer_mode():
        return
    batch = background().current
    if batch is not None:
        line = batch.progress.line if batch.progress else "starting"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(f"A replay is running: {line}. This page shows finished runs.", icon=":material/hourglass_top:")
            st.button("Refresh", key="again")
            st.button("Stop", key="stop", on_click=batch.stop)
        return
    shown = set() if runs.is_empty() else set(runs["policy"])
    reasons = {policy: why_not(parse_policy(policy), factory) for policy in policies}
    say_unavailable({policy: reason for policy, reason in reasons.items() if policy not in shown})
    possible = [policy for policy in policies if not reasons[policy]]
    missing = missing_runs(runs, possible, trace_ids)
    if missing:
        with st.container(horizontal=True, vertical_alignment="center", border=True):
            st.markdown(_what_it_takes(missing, factory), width="stretch")
            st.button(
                f"Replay {counted(sum(map(len, missing.values())), 'missing run')}",
                key="run",
                type="primary",
                icon=":material/play_arrow:",
                on_click=_start,
                args=(list(trace_ids), possible, BatchOptions(factory.profile.name, processes=2, heads=factory.heads_text)),
            )


def _what_it_takes(missing: Mapping[str, Sequence[str]], factory: Factory) -> str:
    """Which models the missing runs load, and how long they take at most."""
    found, time = estimated(missing, factory)
    each = ", ".join(f"**{name}** on {counted(len(names), 'trace')}" for name, names in missing.items())
    loaded = f"loads {' and '.join(found.models)}" if found.models else "loads no model"
    return f"Not replayed yet: {each}. This {loaded} and takes {time}."


def _start(trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> None:
    background().start(trace_ids, policies, options)


def divergences(runs: pl.DataFrame, baseline: str, rows: Sequence[dict[str, Any]]) -> None:
    """For each trace, the first turn whose context differs from the baseline's; either side opens its own turn."""
    names = {row["trace_id"]: trace_label(row) for row in rows}
    heads = run_store().heads(run_ids=runs["run_id"].to_list())
    bases = {head.trace_id: head for head in heads if head.policy == baseline}
    policies = sorted({head.policy for head in heads})
    pairs = [head for head in heads if head.policy != baseline and head.trace_id in bases]
    lines = []
    for head in pairs[:MOST_PAIRS]:
        found = first_divergence(open_run(bases[head.trace_id]), open_run(head))
        at = found.t if found.t is not None else 0
        lines.append(
            {
                "Trace": names.get(head.trace_id, head.trace_id),
                "Policy": head.policy,
                "First differs at turn": found.t,
                "Difference": found.sentence,
                "Baseline's turn": _link(head.trace_id, policies, baseline, at),
                "Policy's turn": _link(head.trace_id, policies, head.policy, at),
            }
        )
    if not lines:
        st.caption("Choose a second policy to see where its context first differs.")
        return
    column = st.column_config.LinkColumn(display_text="open")
    st.dataframe(
        lines,
        hide_index=True,
        height=table_height(len(lines), most=320),
        column_config={"Baseline's turn": column, "Policy's turn": column},
    )
    if len(pairs) > len(lines):
        st.caption(f"First {len(lines):,} of {len(pairs):,} pairs. Choose fewer traces or policies to see the others.")


def _link(trace_id: str, policies: Sequence[str], policy: str, turn: int) -> str:
    """Beside this page, so that it also holds where the dashboard is served under a path."""
    return "replay?" + urlencode({"trace": trace_id, "policies": list(policies), "policy": policy, "turn": turn}, doseq=True)
