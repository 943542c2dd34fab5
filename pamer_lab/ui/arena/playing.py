"""Playing from the Arena page: the command runs in the background and the page follows it."""

import os

import streamlit as st

from pamer_lab.arena.plan import DEFAULT_POLICIES, Plan
from pamer_lab.arena.world import Level
from pamer_lab.config import WORKSPACE_VARIABLE
from pamer_lab.jobs import LINES_VARIABLE, Line, OneAtATime, Process, Work
from pamer_lab.policies.registry import live_policies, parse_policy
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode, reviewer_mode
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.text import in_code

FOLLOW_SECONDS = 2.0
MOST_TASKS = 200


@st.cache_resource(max_entries=4, show_spinner=False)
def _jobs(path: str) -> OneAtATime[Work]:
    return OneAtATime()


def jobs() -> OneAtATime[Work]:
    """Arenas in the background; one at a time for all sessions of this server."""
    return _jobs(str(workspace().path))


def start(plan: Plan) -> None:
    """Play in a separate process; finished episodes are kept whatever happens."""
    place = str(workspace().path)
    refuse_in_reviewer_mode("Playing", workspace().path)
    words = ["--tasks", str(plan.tasks), "--seed", str(plan.seed), "--level", plan.level, "--policy", ",".join(plan.policies)]

    def play(work: Work) -> None:
        process = Process("pamer_lab.cli", "arena", *words, environment=os.environ | {WORKSPACE_VARIABLE: place, LINES_VARIABLE: "1"})
        process.no_more()
        process.stop_on(work.stopping)
        for line in process.answers(Line):
            work.progress = line.progress or work.progress
            work.error = line.error
        process.wait()
        if work.stopping.is_set():
            work.error = "stopped; finished tasks are kept, and running it again continues from there"

    jobs().queue(Work, play)


def form(*, opened: bool = False) -> None:
    """The form that starts an arena."""
    if reviewer_mode():
        return
    light = [name for name in live_policies() if not parse_policy(name).needs_models]
    with st.expander("Play", expanded=opened, icon=":material/play_arrow:"), st.form("arena-form", border=False):
        policies = st.multiselect(
            "Policies", list(dict.fromkeys([*DEFAULT_POLICIES, *light])), DEFAULT_POLICIES[:6], accept_new_options=True
        )
        one, two, three = st.columns(3)
        tasks = one.number_input("Tasks", 1, MOST_TASKS, 20)
        seed = two.number_input("Seed", 0, 10_000, 1)
        level = three.text_input("Level (facts-distance-noise)", Level().name)
        if st.form_submit_button("Play", type="primary"):
            plan = Plan(tasks=int(tasks), seed=int(seed), level=level, policies=tuple(policies))
            Level.parse(level)
            plan.named()
            start(plan)
            st.rerun()


@st.fragment(run_every=FOLLOW_SECONDS)
def follow() -> None:
    """Progress of the running arena, with a button that stops it."""
    work = jobs().current
    if work is None:
        st.rerun()
    assert work is not None
    progress = work.progress
    bar, stop = st.columns([8, 1], vertical_alignment="center")
    bar.progress(progress.share if progress else 0.0, progress.line if progress else "Starting…")
    if stop.button("Stop", disabled=work.stopping.is_set(), key="arena-stop"):
        work.stop()


def ended() -> None:
    """Why the last arena ended early."""
    work = jobs().latest
    if work is not None and not work.running and work.error:
        st.warning(in_code(work.error, 300))
