"""The list of live sessions and which one is open; how to start a proxy if there is none."""

import time
from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, one_line
from pamer_lab.live.watching import State, Watched, state_of
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.prices import current_prices
from pamer_lab.ui.shared.state import choose, chosen
from pamer_lab.ui.shared.text import in_code

SIGNS: dict[State, str] = {"active": "●", "idle": "◐", "ended": "○"}
PICKED = "picked-session"
"""Key of the picker. It is not bound to the URL: Streamlit would write the label there, which changes with every turn, not the name."""
ORDER = " → "
"""Separates the policies of a session, in the order in which they applied."""
START = """pamer-lab run --upstream https://api.example.com -- my-agent "the task"
pamer-lab serve --upstream https://api.example.com --policy pamer+:inject=append"""


@st.cache_resource(max_entries=4, show_spinner=False)
def _watched(path: str) -> Watched:
    return Watched(workspace())


def watched() -> Watched:
    """The sessions of the workspace, shared by all browsers."""
    return _watched(str(workspace().path))


def how_to_start() -> None:
    """The empty page's next step."""
    st.info("No live session has been recorded in this workspace yet. Put the proxy between an agent and its model server:")
    st.code(START, language="bash")
    st.caption(
        "The first line starts the proxy for one command and sets the base URL for that process only; the second keeps it running. "
        "Requests pass through unchanged unless a policy edits them. See docs/live.md for the commands of common agents."
    )


def pick_session() -> str:
    """The open session's name; empty where there is none."""
    wanted = chosen("session")
    lines, older = watched().sessions(current_prices(), wanted)
    if not lines:
        return ""
    known = {line["session"]: line for line in lines}
    if wanted not in known and "session" in st.query_params:
        st.warning(f"The session {in_code(wanted, 80)} in this link is not in this workspace. The most recently changed one is shown.")
    proxies, now = watched().proxies(), time.time()
    running = sum(state_of(line, proxies, now) != "ended" for line in lines)
    label = f"Session ({counted(running, 'session')} running, {len(lines) - running + older:,} ended)"
    st.session_state[PICKED] = wanted if wanted in known else lines[0]["session"]

    def changed() -> None:
        if st.session_state[PICKED] in known:  # else it is a label from before the last turn, sent along by an automatic refresh
            choose("session", st.session_state[PICKED])

    picked: str = st.selectbox(
        label,
        list(known),
        key=PICKED,
        format_func=lambda name: _label(known[name], state_of(known[name], proxies, now)) if name in known else str(name),
        on_change=changed,
        help=f"Shows the {len(lines):,} most recently changed." if older else None,
    )
    choose("session", picked)
    return picked


def _label(line: dict[str, Any], state: State) -> str:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(line["started"]))
    client = one_line(line["client"] or line["api"], 30)
    policies = one_line(ORDER.join(line["policies"]), 60)
    return f"{SIGNS[state]} {began} · {client} · {policies} · {counted(line['turns'], 'turn')} · {one_line(line['session'], 24)}"
