"""Replays from a page: what they take, the button that starts them, and progress while they run.

Policies without models run immediately if a trace has no run yet, so that a fresh install shows results. Everything else waits for the
button and runs in its own process.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pamer_lab.errors import Cancelled, LabError
from pamer_lab.factory import Factory
from pamer_lab.figures.text import counted, time_range
from pamer_lab.policies.availability import is_light, other_heads
from pamer_lab.policies.registry import parse_policy
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.background import Batch
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.estimate import Estimate, estimate
from pamer_lab.runs.store import newest
from pamer_lab.runs.values import STATUS_WORDS, RunInfo
from pamer_lab.ui.shared.following import LOOK_EVERY, progress_bar, waiting_list
from pamer_lab.ui.shared.loaders import rows_named, table_version, workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.run_choice import Choice
from pamer_lab.ui.shared.runs import background, run_store, timeline_of, version
from pamer_lab.ui.shared.state import only_followed_a_link
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import BASES
from pamer_lab.workspace import TRACES

AT_ONCE, SECONDS_AT_ONCE = 400, 10.0
"""Limits of immediate replays with policies without models: the turns of a trace, and the seconds that a page spends on them."""
STARTING = "Starting a worker process"
DRAWN = "drawn-turns"
"""Session key: the number of stored turns by run when the page was last drawn."""
AWAITED = "awaited"
"""Session key: runs that the reader started and has not seen; when all have ended, the first one opens at its first event."""


def heads_shown(trace_id: str, choice: Choice) -> dict[str, RunInfo]:
    """The runs to show; policies without models are replayed first if they have no run, unless a link asked for them."""
    found = choice.newest(trace_id)
    linked = only_followed_a_link(trace_id, choice.policies, choice.profile)
    light = [policy for policy in choice.possible if policy not in found and is_light(parse_policy(policy), choice.factory)]
    light = [policy for policy in light if policy not in _in_hand(trace_id)]
    if linked or reviewer_mode() or not light:
        return found
    timeline, _ = timeline_of(trace_id, choice.profile)
    if timeline.turns > AT_ONCE:
        return found
    options = ReplayOptions(profile=choice.profile, device=choice.factory.device)
    replay_at_once([(trace_id, policy) for policy in light], options, counted(timeline.turns, "turn"))
    return choice.newest(trace_id)


def replay_at_once(pairs: Sequence[tuple[str, str]], options: ReplayOptions, what: str) -> None:
    """Replay traces through policies without models right away; if that fails, existing runs are still shown.

    Whatever is not done within `SECONDS_AT_ONCE` stops before its next turn; the reader can continue it with the button.
    """
    end = time.monotonic() + SECONDS_AT_ONCE
    options = replace(options, cancelled=lambda: time.monotonic() > end)
    policies = ", ".join(dict.fromkeys(policy for _, policy in pairs))
    try:
        with st.spinner(f"Replaying {what} through {policies}…"):
            for trace_id, policy in pairs:
                replay(trace_id, policy, workspace(), options)
    except Cancelled:
        st.caption("Not all replays are finished; continue with the button below.")
    except LabError as error:
        st.warning(f"A policy without models could not be replayed; existing runs are shown. {in_code(str(error), 400)}")


def _in_hand(trace_id: str) -> set[str]:
    """The policies whose replay of this trace is running or queued."""
    jobs = background()
    batches = [batch for batch in (jobs.current, *jobs.waiting) if batch is not None and trace_id in batch.trace_ids]
    return {policy for batch in batches for policy in batch.policies}


def run_panel(trace_id: str, choice: Choice, found: dict[str, RunInfo]) -> None:
    """The progress of a running replay, and missing runs with their cost and a button that runs them or queues them behind it."""
    if reviewer_mode():
        return
    batch, in_hand = background().current, _in_hand(trace_id)
    if batch is not None:
        follow(batch, trace_id)
    last_batch(trace_id)
    say_unavailable({policy: reason for policy, reason in choice.reasons.items() if policy not in found})
    todo = [policy for policy in choice.possible if policy not in in_hand and (policy not in found or found[policy].status != "done")]
    old = [
        policy
        for policy in choice.possible
        if policy in found and policy not in (*todo, *in_hand) and _other_heads(found[policy], choice.factory)
    ]
    if old:
        _offer_again(trace_id, old, choice)
    if not todo:
        return
    started = [policy for policy in todo if policy in found and found[policy].status != "done"]
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(what_it_takes(trace_id, todo, choice), width="stretch")
        name = "Queue" if batch is not None else "Continue" if started else "Run"
        st.button(
            f"{name} {counted(len(todo), 'policy', 'policies')}",
            key="run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start,
            args=([trace_id], todo, choice.options()),
        )
    for policy in started:
        head, turns = found[policy], run_store().stored_count(found[policy].run_id)
        why = in_code(head.error, 300) if head.status == "failed" else STATUS_WORDS["cancelled"]  # a killed run counts as stopped
        st.warning(f"**{policy}** has {turns:,} of {counted(head.turns, 'turn')}: {why}.")


def _other_heads(head: RunInfo, factory: Factory) -> bool:
    return other_heads(head.settings, parse_policy(head.policy), factory)


def _offer_again(trace_id: str, old: Sequence[str], choice: Choice) -> None:
    """Shows runs made with other heads unchanged, and offers to run the installed heads."""
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        words = f"**{', '.join(old)}**: these runs used other heads than the installed ones."
        st.markdown(f"{words} With the installed heads: {what_it_takes(trace_id, old, choice)}", width="stretch")
        st.button(
            "Run with installed heads",
            key="run_again",
            icon=":material/replay:",
            on_click=start,
            args=([trace_id], old, choice.options()),
        )


def say_unavailable(reasons: Mapping[str, str]) -> None:
    """Which policies cannot run here, one note per reason."""
    for reason in dict.fromkeys(filter(None, reasons.values())):
        policies = ", ".join(policy for policy, own in reasons.items() if own == reason)
        st.info(f"Not available here: **{policies}**. {in_code(reason, 300)}", icon=":material/block:")


def start(trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> None:
    """Start a replay, or queue it behind a running one and say so."""
    batch = background().start(trace_ids, policies, options)
    if batch in background().waiting:
        st.toast("Another replay is running. Yours is queued and starts when it ends.", icon=":material/hourglass:")
    st.session_state[AWAITED] = (trace_ids[0], tuple(policies))


@st.cache_data(max_entries=32, show_spinner=False)
def _estimate(
    path: str, at: tuple[tuple[int, int], ...], todo: tuple[tuple[str, tuple[str, ...]], ...], models: tuple[str, ...], _factory: Factory
) -> Estimate:
    return estimate(dict(todo), _factory)


def estimated(todo: Mapping[str, Sequence[str]], factory: Factory) -> tuple[Estimate, str]:
    """The cost of replaying these traces, and the time in words."""
    asked = tuple((policy, tuple(trace_ids)) for policy, trace_ids in todo.items())
    models = (factory.profile.name, factory.device, factory.heads_text)
    found = _estimate(str(workspace().path), (version(), table_version(TRACES)), asked, models, factory)
    return found, f"{time_range(found.least, found.seconds)} ({BASES[found.basis]})"


def what_it_takes(trace_id: str, todo: Sequence[str], choice: Choice) -> str:
    found, time = estimated({policy: [trace_id] for policy in todo}, choice.factory)
    device = "" if choice.factory.device == "auto" else f" on {choice.factory.device}"
    loaded = f"loads {' and '.join(found.models)}{device}" if found.models else "loads no model"
    return f"**{', '.join(todo)}** over {counted(found.turns // len(todo), 'turn')}: {loaded}, {time}."


def last_batch(trace_id: str) -> None:
    """Errors of the last batch, if it included this trace."""
    last = background().latest
    if last is None or trace_id not in last.trace_ids:
        return
    if last.error:
        st.warning(in_code(last.error, 400))
    for outcome in last.failures:
        if outcome.trace_id == trace_id:
            st.error(f"{outcome.policy}: {in_code(outcome.error or STATUS_WORDS.get(outcome.status, outcome.status), 400)}")


@st.fragment(run_every=LOOK_EVERY)
def follow(batch: Batch, trace_id: str = "") -> None:
    """Progress, the newest turn of each run, and a way to stop; the page is redrawn when it ends.

    Names the replayed traces, and says so if `trace_id`, which the page shows, is not among them.
    """
    if not batch.running or _moved_on(batch, trace_id):
        st.rerun()
    line = batch.progress.line if batch.progress else STARTING
    other = "For another trace: " if trace_id and trace_id not in batch.trace_ids else ""
    with st.container(border=True, key="following"):
        st.markdown(f"{other}**{', '.join(batch.policies)}** over {_traces_in_words(batch.trace_ids)}")
        progress_bar(batch, line, key="stop")
        for policy in batch.policies:
            _newest_turn(batch, policy)
        waiting_list(background().waiting, lambda other: f"{', '.join(other.policies)} over {_traces_in_words(other.trace_ids)}")


def _moved_on(batch: Batch, trace_id: str) -> bool:
    """Whether enough new turns are stored for the page to be redrawn.

    Each redraw waits for a few more turns than the last, so that a long run does not disturb the reader every second.
    """
    if trace_id not in batch.trace_ids:
        return False
    stored = {
        head.run_id: run_store().stored_count(head.run_id)
        for head in newest(run_store().heads(trace_id=trace_id), list(batch.policies), batch.options.profile).values()
    }
    drawn = st.session_state.get(DRAWN)
    now = (trace_id, stored)
    if drawn is None or drawn[0] != trace_id:
        st.session_state[DRAWN] = now
        return False
    more = any(count - drawn[1].get(run_id, 0) >= max(1, drawn[1].get(run_id, 0) // 20) for run_id, count in stored.items())
    if more:
        st.session_state[DRAWN] = now
    return more


def _traces_in_words(trace_ids: Sequence[str]) -> str:
    if len(trace_ids) > 1:
        return counted(len(trace_ids), "trace")
    return ", ".join(in_code(trace_label(row), 80) for row in rows_named(trace_ids).values()) or "a trace"


def next_step(trace_id: str, choice: Choice) -> str:
    """What to do when no run of the chosen policies exists."""
    batch = background().current
    if reviewer_mode():
        return "Reviewer mode cannot start replays. Choose other policies or another trace."
    if batch is not None:
        if trace_id in batch.trace_ids and set(batch.policies) & set(choice.policies):
            return "It will appear here with its first turns."
        if _in_hand(trace_id) & set(choice.policies):
            return "It is queued and starts when the replay above ends."
        if choice.possible:
            return "Queue one with the button above."
    return "Start one with the button above." if choice.possible else "None of them can run here; see the reasons above."


def _newest_turn(batch: Batch, policy: str) -> None:
    for trace_id in batch.trace_ids:
        head = newest(run_store().heads(trace_id=trace_id), [policy], batch.options.profile).get(policy)
        if head is None or head.status != "running":
            continue
        turn = run_store().last_turn(head.run_id)
        if turn is not None:
            votes = f", {sum(turn.votes)} of {len(turn.votes)} heads voted yes" if turn.votes else ""
            st.caption(f"{policy}: turn {turn.t} of {head.turns:,}, {counted(turn.active_tokens, 'token')}, {turn.action}{votes}")
            return
