"""The form for replays: what to replay, what that takes, and progress while it runs.

Policies without models run at once where a trace has no run yet, so that a fresh install shows results. Everything else waits for the
button and runs in its own process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from pamer_lab.access import reviewer_mode
from pamer_lab.errors import LabError
from pamer_lab.figures.numbers import counted, duration
from pamer_lab.models.profiles import PROFILES, Profile, load_profile
from pamer_lab.policies.availability import needs_models, other_heads, why_not
from pamer_lab.policies.registry import ALL_SEVEN, POLICIES, describe_policies, parse_policy
from pamer_lab.replay.background import Batch
from pamer_lab.replay.batch import BatchOptions
from pamer_lab.replay.engine import ReplayOptions, replay
from pamer_lab.replay.estimate import Estimate, estimate
from pamer_lab.replay.store import newest
from pamer_lab.replay.values import RunHead
from pamer_lab.ui.shared.loaders import table_version, trace_rows, workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.runs import background, run_heads, run_store, timeline_of, version
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace import TRACES

DEFAULT = [name for name in ("base", "sliding-window:5", "periodic-summary:5", "pamer", "pamer+") if name.partition(":")[0] in POLICIES]
MOST_POLICIES = 7
AT_ONCE = 400
"""Turns up to which policies without models are replayed at once."""
LOOK_EVERY = 1.0
"""Seconds between two looks at a replay that runs."""
AWAITED = "awaited"
"""Session key of the runs that the reader started and has not seen; the first of them opens at its first event when all have ended."""


@dataclass(frozen=True)
class Choice:
    """What the reader chose."""

    policies: tuple[str, ...]
    profile: Profile
    device: str
    reasons: dict[str, str]
    """Why a policy cannot run here, by policy."""

    @property
    def possible(self) -> list[str]:
        return [policy for policy in self.policies if policy not in self.reasons]


def choose_policies(*, key: str = "policies") -> list[str]:
    """Policies by name, own parameters allowed; the choice is in the URL."""
    known = list(dict.fromkeys([*DEFAULT, *ALL_SEVEN]))
    words = "; ".join(f"{entry['name']}: {entry['description']}" for entry in describe_policies())
    picked = st.multiselect(
        "Policies",
        known,
        default=DEFAULT,
        key=key,
        bind="query-params",
        accept_new_options=True,
        max_selections=MOST_POLICIES,
        help=f"{words}. Type a name with its own parameters, such as sliding-window:8.",
    )
    return list(dict.fromkeys(parse_policy(text).name for text in picked))


def choose(trace_id: str) -> Choice:
    """Policies, profile and device in one row."""
    left, middle, right = st.columns([5, 2, 2], gap="medium", vertical_alignment="top")
    with left:
        policies = choose_policies()
    name = middle.selectbox("Profile", list(PROFILES), key="profile", bind="query-params", help=HINTS["profile"])
    device = right.selectbox("Device", ["auto", "cpu", "cuda", "mps"], key="device", bind="query-params", help=HINTS["device"])
    profile = load_profile(name)
    reasons = {policy: reason for policy in policies if (reason := why_not(parse_policy(policy), profile))}
    return Choice(tuple(policies), profile, device, reasons)


def heads_shown(trace_id: str, choice: Choice) -> dict[str, RunHead]:
    """The runs to show; policies without models are replayed first where there is no run."""
    found = newest(run_heads(trace_id), choice.policies, choice.profile.name)
    light = [policy for policy in choice.possible if policy not in found and not needs_models(parse_policy(policy))]
    if reviewer_mode() or not light or background().current is not None:
        return found
    timeline, _ = timeline_of(trace_id, choice.profile.name)
    if timeline.turns > AT_ONCE:
        return found
    options = ReplayOptions(profile=choice.profile.name, device=choice.device)
    replay_at_once([(trace_id, policy) for policy in light], options, counted(timeline.turns, "turn"))
    return newest(run_heads(trace_id), choice.policies, choice.profile.name)


def replay_at_once(pairs: Sequence[tuple[str, str]], options: ReplayOptions, what: str) -> None:
    """Traces through policies without models, here and now; where that fails, the runs that exist are shown all the same."""
    policies = ", ".join(dict.fromkeys(policy for _, policy in pairs))
    try:
        with st.spinner(f"Replaying {what} through {policies}…"):
            for trace_id, policy in pairs:
                replay(trace_id, policy, workspace(), options)
    except LabError as error:
        st.warning(f"A policy without models could not be replayed; the runs that exist are shown. {in_code(str(error), 400)}")


def run_panel(trace_id: str, choice: Choice, found: dict[str, RunHead]) -> None:
    """What is missing, what it would take, the button; or the progress of what runs."""
    if reviewer_mode():
        return
    batch = background().current
    if batch is not None:
        follow(batch, trace_id)
        return
    last_batch(trace_id)
    for policy, reason in choice.reasons.items():
        if policy not in found:
            st.info(f"**{policy}** is not available here: {in_code(reason, 300)}", icon=":material/block:")
    todo = [policy for policy in choice.possible if policy not in found or found[policy].status != "done"]
    old = [policy for policy in choice.possible if policy in found and policy not in todo and _other_heads(found[policy], choice.profile)]
    if old:
        _offer_again(trace_id, old, choice)
    if not todo:
        return
    started = [policy for policy in todo if policy in found and found[policy].status != "done"]
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(what_it_takes(trace_id, todo, choice), width="stretch")
        name = "Continue" if started else "Run"
        options = BatchOptions(choice.profile.name, choice.device, processes=1)
        st.button(
            f"{name} {counted(len(todo), 'policy', 'policies')}",
            key="run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start,
            args=([trace_id], todo, options),
        )
    for policy in started:
        head = found[policy]
        why = in_code(head.error, 300) if head.error else "it was stopped"
        st.warning(f"**{policy}** has {run_store().stored_count(head.run_id):,} of {counted(head.turns, 'turn')}: {why}.")


def _other_heads(head: RunHead, profile: Profile) -> bool:
    return other_heads(head.settings, parse_policy(head.policy), profile)


def _offer_again(trace_id: str, old: Sequence[str], choice: Choice) -> None:
    """Runs that were made with other heads are shown as they are; the installed heads are a click away."""
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        words = f"**{', '.join(old)}**: recorded with other heads than those installed now."
        st.markdown(f"{words} With the installed ones: {what_it_takes(trace_id, old, choice)}", width="stretch")
        options = BatchOptions(choice.profile.name, choice.device, processes=1)
        st.button(
            "Run with the installed heads", key="run_again", icon=":material/replay:", on_click=start, args=([trace_id], old, options)
        )


def start(trace_ids: Sequence[str], policies: Sequence[str], options: BatchOptions) -> None:
    background().start(trace_ids, policies, options)
    st.session_state[AWAITED] = (trace_ids[0], tuple(policies))


@st.cache_data(max_entries=32, show_spinner=False)
def _estimate(path: str, at: tuple[tuple[int, int], ...], todo: tuple[tuple[str, tuple[str, ...]], ...], profile: str) -> Estimate:
    return estimate(dict(todo), workspace(), load_profile(profile))


def estimated(todo: Mapping[str, Sequence[str]], profile: str) -> tuple[Estimate, str]:
    """What replaying the traces of each policy takes, and how long that is in words."""
    asked = tuple((policy, tuple(trace_ids)) for policy, trace_ids in todo.items())
    found = _estimate(str(workspace().path), (version(), table_version(TRACES)), asked, profile)
    basis = {"measured": "from the last runs here", "guessed": "a first guess for two cores", "mixed": "partly a guess"}[found.basis]
    return found, f"about {duration(found.seconds)} ({basis})"


def what_it_takes(trace_id: str, todo: Sequence[str], choice: Choice) -> str:
    found, time = estimated({policy: [trace_id] for policy in todo}, choice.profile.name)
    loaded = f"loads {' and '.join(found.models)} on {choice.device}" if found.models else "loads no model"
    return f"**{', '.join(todo)}** over {counted(found.turns // len(todo), 'turn')}: {loaded}, {time}."


def last_batch(trace_id: str) -> None:
    """What became of the batch that ended last, as far as it was about this trace."""
    last = background().latest
    if last is None or trace_id not in last.trace_ids:
        return
    if last.error:
        st.warning(in_code(last.error, 400))
    for outcome in last.failures:
        if outcome.trace_id == trace_id:
            st.error(f"{outcome.policy}: {in_code(outcome.error or outcome.status, 400)}")


@st.fragment(run_every=LOOK_EVERY)
def follow(batch: Batch, trace_id: str = "") -> None:
    """Progress, the newest turn of each run, and a way to stop; the page is redrawn when it ends.

    Says which traces it is about, and that they are others where `trace_id`, which the page shows, is not among them.
    """
    if not batch.running:
        st.rerun()
    progress = batch.progress
    share = progress.turns_done / progress.turns if progress and progress.turns else 0.0
    line = progress.line.partition("  ")[0] if progress else "Starting; models load first where a policy needs them"
    other = "Not about the trace shown here: " if trace_id and trace_id not in batch.trace_ids else ""
    with st.container(border=True, key="following"):
        st.markdown(f"{other}**{', '.join(batch.policies)}** over {_traces_in_words(batch.trace_ids)}")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min(share, 1.0), text=line)
            st.button("Stop", key="stop", icon=":material/stop:", on_click=batch.stop, disabled=batch.stopping.is_set())
        for policy in batch.policies:
            _newest_turn(batch, policy)


def _traces_in_words(trace_ids: Sequence[str]) -> str:
    if len(trace_ids) > 1:
        return counted(len(trace_ids), "trace")
    return ", ".join(in_code(trace_label(row), 80) for row in trace_rows() if row["trace_id"] in trace_ids) or "a trace"


def next_step(trace_id: str, choice: Choice) -> str:
    """What a reader can do who finds no run of the chosen policies."""
    batch = background().current
    if reviewer_mode():
        return "Reviewer mode starts none; choose other policies or another trace."
    if batch is not None:
        return "It appears here when the replay above has ended." if trace_id in batch.trace_ids else "Wait for the replay above to end."
    return "Start one with the button above." if choice.possible else "None of them can run here, for the reasons above."


def _newest_turn(batch: Batch, policy: str) -> None:
    for trace_id in batch.trace_ids:
        head = newest(run_store().heads(trace_id=trace_id), [policy], batch.options.profile).get(policy)
        if head is None or head.status != "running":
            continue
        turn = run_store().last_turn(head.run_id)
        if turn is not None:
            votes = f", {sum(turn.votes)} of {len(turn.votes)} heads said yes" if turn.votes else ""
            st.caption(f"{policy}: turn {turn.t} of {head.turns:,}, {turn.active_tokens:,} tokens, {turn.action}{votes}")
            return
