"""The open policy and turn, and how to move: number, buttons with keys, clicks in charts. Both are in the URL.

Invariant: the open turn exists in the open run.
"""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.figures.text import counted
from pamer_lab.figures.theme import DROP_SIGN, SIGNS
from pamer_lab.runs.drops import Drop
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.keys import ALL_KEYS
from pamer_lab.ui.shared.marks import Click, Mark, marks
from pamer_lab.ui.shared.run_form import AWAITED
from pamer_lab.ui.shared.runs import background
from pamer_lab.ui.shared.state import out_of_range, settle
from pamer_lab.ui.shared.words import HINTS

CHARTS = ("context", "strip", "ledger")
"""Keys of the charts in which a turn can be clicked."""


def open_turn(turn: int, policy: str = "") -> None:
    st.session_state["turn"] = turn
    if policy:
        st.session_state["policy"] = policy


def settle_run(runs: Sequence[Run]) -> Run:
    """The open run; that of the most active policy opens first, since it answers most questions."""
    _open_awaited(runs)
    policies = [run.head.policy for run in runs]
    first = max(range(len(runs)), key=lambda number: (sum(turn.action != "pass" for turn in runs[number].turns), -number))
    settle("policy", policies, policies[first])
    return runs[policies.index(st.session_state["policy"])]


def _open_awaited(runs: Sequence[Run]) -> None:
    trace_id, policies = st.session_state.get(AWAITED, ("", ()))
    if trace_id != runs[0].head.trace_id or background().current is not None:
        return
    del st.session_state[AWAITED]
    for run in runs:
        if run.head.policy in policies:
            first = next((turn.t for turn in run.turns if turn.action != "pass"), st.session_state.get("turn", 0))
            open_turn(first, run.head.policy)
            return


def choose_policy(runs: Sequence[Run]) -> str:
    """The choice of the open policy."""
    policies = [run.head.policy for run in runs]
    with st.container():  # directly in a column the names would scroll out of sight instead of taking a second row
        picked = st.segmented_control("Policy", policies, required=True, key="policy", label_visibility="collapsed") or policies[0]
    st.query_params["policy"] = picked
    return picked


def choose_turn(run: Run, policies: Sequence[str], dropped: Sequence[Drop] = ()) -> int:
    """The open turn, with buttons, keys and clicks to move; it is marked in the charts."""

    def clicked(click: Click) -> None:
        if 0 <= click.x < count:
            open_turn(click.x, click.line if click.line in policies else "")

    count = len(run.turns)
    asked = out_of_range("turn", count)
    if asked is not None:
        st.warning(f"Turn {asked:,} in this link does not exist: the run has {count:,} turns, counted from 0. Turn {count - 1} is open.")
    lost = {drop.t: drop for drop in dropped}
    events = [turn.t for turn in run.turns if turn.action != "pass" or turn.t in lost]
    otherwise = count - 1 if asked is not None or "turn" in st.session_state else events[0] if events else 0
    settle("turn", range(count), otherwise, of=run.head.trace_id)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        turn = int(st.number_input(f"Turn, 0 to {count - 1:,}", 0, count - 1, key="turn", width=140) or 0)
        st.query_params["turn"] = str(turn)
        _step("Previous turn", "chevron_left", turn - 1 if turn else None, "k")
        _step("Next turn", "chevron_right", turn + 1 if turn + 1 < count else None, "j")
    action = run.turns[turn].action
    what = f"{DROP_SIGN} drop" if action == "pass" and turn in lost else action if action == "pass" else f"{SIGNS[action]} {action}"
    number = f"event {events.index(turn) + 1:,} of {len(events):,}" if turn in events else f"{counted(len(events), 'event')} in this run"
    before, after = [event for event in events if event < turn], [event for event in events if event > turn]
    with st.container(horizontal=True, vertical_alignment="center"):
        _step("Previous event", "first_page", before[-1] if before else None, "Shift+K")
        _step("Next event", "last_page", after[0] if after else None, "Shift+J")
        st.markdown(f"**{what}** · {number}", width="content", help=f"{HINTS['drop']} {HINTS['fallback']}")
        marks(dict.fromkeys(CHARTS, Mark(turn)), clicked, key="turn-marks")
    return turn


def _step(name: str, icon: str, target: int | None, keys: str) -> None:
    """A button that opens another turn; disabled if there is none."""
    label = f":material/{icon}:"
    hint = f"{name}. {ALL_KEYS}"
    st.button(label, key=name, help=hint, disabled=target is None, on_click=open_turn, args=(target or 0,), shortcut=keys)
