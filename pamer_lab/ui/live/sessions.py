"""Which live sessions there are and which one is open; how a proxy is started where there is none."""

import time
from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, one_line
from pamer_lab.live.watching import State, Watched, state_of
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.prices import current_prices

SIGNS: dict[State, str] = {"active": "●", "idle": "◐", "ended": "○"}
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
        "Requests pass through unchanged unless a policy edits them. docs/live.md has the lines for common agents."
    )


def pick_session() -> str:
    """The open session's name; empty where there is none."""
    lines, older = watched().sessions(current_prices())
    if not lines:
        return ""
    known = {line["session"]: line for line in lines}
    asked = st.query_params.get("session", "")
    if asked and asked not in known:
        st.warning("The session of this link is not among the sessions of this workspace.")
        del st.query_params["session"]
    proxies, now = watched().proxies(), time.time()
    running = sum(state_of(line, proxies, now) != "ended" for line in lines)
    label = f"Session ({counted(running, 'session')} running, {len(lines) - running + older:,} ended)"
    picked = st.selectbox(
        label,
        list(known),
        key="session",
        bind="query-params",
        format_func=lambda name: _label(known[name], state_of(known[name], proxies, now)) if name in known else str(name),
        help=f"The {len(lines):,} that changed last." if older else None,
    )
    return str(picked or lines[0]["session"])


def _label(line: dict[str, Any], state: State) -> str:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(line["started"]))
    client = one_line(line["client"] or line["api"], 30)
    return f"{SIGNS[state]} {began} · {client} · {line['policy']} · {counted(line['turns'], 'turn')} · {one_line(line['session'], 24)}"
