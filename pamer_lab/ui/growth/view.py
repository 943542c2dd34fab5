"""The parts of the Context growth page: missing runs and how to make them, means per turn, first divergences."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, get_args
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import mean_context, missing_runs, opened_with, turn_table
from pamer_lab.factory import Factory
from pamer_lab.figures.text import counted, duration
from pamer_lab.policies.availability import is_light, why_not
from pamer_lab.policies.registry import offered_policies, parse_policy
from pamer_lab.report.config import RunChoice
from pamer_lab.report.replay_part import choice_of
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.background import Batch
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.runs.batch_state import BatchProgress
from pamer_lab.runs.divergence import first_divergence
from pamer_lab.runs.engine import ReplayOptions
from pamer_lab.ui.shared.following import LOOK_EVERY, progress_bar
from pamer_lab.ui.shared.loaders import catalogue, known_formats, workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.run_choice import GIVEN
from pamer_lab.ui.shared.run_form import STARTING, estimated, replay_at_once, say_unavailable
from pamer_lab.ui.shared.runs import all_runs, background, open_run, policies_of_traces, run_store, version
from pamer_lab.ui.shared.state import only_followed_a_link
from pamer_lab.ui.shared.widgets import table_height
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace.catalogue import Filters, Listed, Owners, Rewards

AT_ONCE = 1_500
"""Policies without models are replayed immediately on the shortest traces, up to this many turns in total."""
DONE = "runs-done"
"""Session key: the followed batch, and how many of its finished runs the page shows."""
MOST_COMPARED = 40
"""Maximum policies that this page shows together."""
MOST_PAIRS = 80
"""Maximum pairs of runs that are compared for their first divergence."""


@st.cache_resource(max_entries=8, show_spinner=False)
def _turns(path: str, at: tuple[int, int], run_ids: tuple[str, ...], _runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    turns = turn_table(workspace(), _runs)
    return turns, mean_context(turns)


def turns_and_means(runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The turns of these runs, and the mean context at each turn."""
    return _turns(str(workspace().path), version(), tuple(runs["run_id"]), runs)


def run_choices(runs: pl.DataFrame) -> tuple[RunChoice, ...]:
    """The choices that produce the runs of a table, for a share file."""
    return tuple(choice_of(head) for head in run_store().heads(run_ids=runs["run_id"].to_list()))


def ensure_something(rows: Sequence[dict[str, Any]], policies: Sequence[str], factory: Factory) -> None:
    """Replay policies without models immediately if runs are missing, on the shortest traces, unless a link asked for them."""
    linked = only_followed_a_link([row["trace_id"] for row in rows], list(policies), factory.profile.name)
    if linked or reviewer_mode() or background().current:
        return
    runs = all_runs(factory.profile.name, [row["trace_id"] for row in rows])
    light = [name for name in policies if is_light(policy := parse_policy(name), factory) and not why_not(policy, factory)]
    turns = {row["trace_id"]: int(row["turns"]) for row in rows}
    short = _within(turns, AT_ONCE)
    missing = [(name, policy) for policy, names in missing_runs(runs, light, short).items() for name in names]
    missing.sort(key=lambda pair: short.index(pair[0]))  # when time runs out, complete traces are missing, the longest ones
    if missing:
        replay_at_once(missing, ReplayOptions(profile=factory.profile.name), counted(len({name for name, _ in missing}), "trace"))


def _within(turns: Mapping[str, int], most: int) -> list[str]:
    """The shortest traces, up to this many turns in total."""
    ordered = sorted(turns, key=turns.__getitem__)
    sums = accumulate(turns[name] for name in ordered)
    return [name for name, total in zip(ordered, sums, strict=True) if total <= most]


def first_policies(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What the page opens with: the usual policies that need no model or have a finished run on each of these traces."""
    names = {row["trace_id"] for row in rows}
    replayed = policies_of_traces(names)
    return [
        policy
        for policy in offered_policies("first")
        if not parse_policy(policy).needs_models or all((policy, True) in replayed.get(name, ()) for name in names)
    ]


def choose_traces(rows: Sequence[dict[str, Any]]) -> Listed:
    """The traces that fit the filters by owner, format and reward; the filters are in the URL."""
    whose, formats, rewards = st.columns([3, 4, 3], gap="medium", vertical_alignment="bottom")
    owners = whose.segmented_control(
        "Origin", get_args(Owners), default=opened_with(rows), required=True, key="owners", bind="query-params", help=HINTS["demo"]
    )
    wanted = formats.multiselect(
        "Format", known_formats(), key="format", bind="query-params", placeholder="all formats", help=HINTS["format"]
    )
    reward = rewards.selectbox("Reward", get_args(Rewards), key="reward", bind="query-params", help=HINTS["reward"])
    return catalogue(Filters(formats=wanted, reward=reward, owners=owners or "all"))


def run_missing(trace_ids: Sequence[str], policies: Sequence[str], runs: pl.DataFrame, factory: Factory, first: Sequence[str] = ()) -> None:
    """Missing runs, with a button for the fast ones and one for all; or the progress of the running batch.

    If the policies are still the page's own choice (`first`), all the usual ones are offered.
    """
    if reviewer_mode():
        return
    batch = background().current
    if batch is not None:
        _follow(batch)
        return
    shown = set() if runs.is_empty() else set(runs["policy"])
    more = offered_policies("first") if list(policies) == list(first) else []
    usual = list(dict.fromkeys([*policies, *more]))
    reasons = {policy: why_not(parse_policy(policy), factory) for policy in usual}
    say_unavailable({policy: reason for policy, reason in reasons.items() if policy in policies and policy not in shown})
    possible = [policy for policy in usual if not reasons[policy]]
    missing = missing_runs(all_runs(factory.profile.name, trace_ids), possible, trace_ids)
    if not missing:
        return
    fast = {policy: names for policy, names in missing.items() if not parse_policy(policy).needs_models}
    options = BatchOptions(factory.profile.name, processes=2, heads=factory.heads_text)
    with st.container(border=True):
        text, buttons = st.columns([5, 4], vertical_alignment="center")
    text.markdown(_missing_in_words(missing, factory))
    with buttons.container(horizontal=True, horizontal_alignment="right"):
        if fast:
            _, time = estimated(fast, factory)
            st.button(
                f"Run the fast ones now ({counted(sum(map(len, fast.values())), 'run')})",
                key="run-fast",
                type="primary",
                icon=":material/bolt:",
                help=f"Policies that need no model: {time}.",
                on_click=start,
                args=(list(trace_ids), list(fast), options, policies),
            )
        found, _ = estimated(missing, factory)
        if len(missing) > len(fast):
            st.button(
                f"Run everything ({duration(found.seconds)}, {counted(sum(map(len, missing.values())), 'run')})",
                key="run",
                type="secondary" if fast else "primary",
                icon=":material/play_arrow:",
                help="Policies without a model go first on every trace; model runs are queued behind them.",
                on_click=start,
                args=(list(trace_ids), possible, options, policies),
            )


def _missing_in_words(missing: Mapping[str, Sequence[str]], factory: Factory) -> str:
    """Which models the missing runs load, and how long they take at most."""
    found, time = estimated(missing, factory)
    each = ", ".join(f"**{name}** on {counted(len(names), 'trace')}" for name, names in missing.items())
    loaded = f"loads {' and '.join(found.models)}" if found.models else "loads no model"
    return f"Not replayed yet: {each}. This {loaded} and takes {time}."


def start(trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions, chosen: Sequence[str]) -> None:
    """Start a batch, and add its policies to the chosen ones."""
    background().start(trace_ids, policies, options)
    st.session_state[GIVEN] = True
    st.session_state["policies"] = list(dict.fromkeys([*chosen, *policies]))[:MOST_COMPARED]


@st.fragment(run_every=LOOK_EVERY)
def _follow(batch: Batch) -> None:
    """Progress with a way to stop; each run that ends redraws the page."""
    done = batch.progress.runs_done if isinstance(batch.progress, BatchProgress) else 0
    before = st.session_state.get(DONE, (id(batch), 0))
    if not batch.running or (before[0] == id(batch) and done > before[1]):
        st.session_state[DONE] = (id(batch), done)
        st.rerun()
    st.session_state[DONE] = (id(batch), done)
    with st.container(border=True, key="following"):
        st.markdown(f"Replaying **{', '.join(batch.policies)}** over {counted(len(batch.trace_ids), 'trace')}. Finished runs appear below.")
        progress_bar(batch, batch.progress.line if batch.progress else STARTING, key="stop")


def divergences(runs: pl.DataFrame, baseline: str, rows: Sequence[dict[str, Any]]) -> None:
    """For each trace, the first turn whose context differs from the baseline's, with a link to that turn of either run."""
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
        placeholder="",
        height=table_height(len(lines), most=320),
        column_config={"Baseline's turn": column, "Policy's turn": column},
    )
    if len(pairs) > len(lines):
        st.caption(f"First {len(lines):,} of {len(pairs):,} pairs. Choose fewer traces or policies to see the others.")


def _link(trace_id: str, policies: Sequence[str], policy: str, turn: int) -> str:
    """Relative to this page, so that it also works if the dashboard is served under a base path."""
    return "replay?" + urlencode({"trace": trace_id, "policies": list(policies), "policy": policy, "turn": turn}, doseq=True)
