"""One live session: its headline, chart, requests, fallbacks and controls, redrawn as requests come."""

import time
from typing import Any

import polars as pl
import streamlit as st

from pamer_lab.errors import InputError
from pamer_lab.figures.live import MARKS, live_context, marked
from pamer_lab.figures.text import counted, one_line, short
from pamer_lab.figures.theme import SIGNS
from pamer_lab.live.watching import State, control, state_of
from pamer_lab.policies.registry import live_policies
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.live.sessions import ORDER, watched
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.gate import may_read_this_computer
from pamer_lab.ui.shared.prices import current_prices
from pamer_lab.ui.shared.text import counted_with, in_code
from pamer_lab.ui.shared.widgets import sentences, table, table_height
from pamer_lab.ui.shared.words import HINTS

LOOK_EVERY = 2.0
"""Seconds between refreshes of a session whose proxy is running."""
REFUSED = "live-refused"
"""Session key: the last refusal, by session name; it is kept across refreshes until the next action."""
FAULTS = 5
"""Maximum fallbacks and failed answers that are listed above the table."""
STATE_WORDS: dict[State, str] = {
    "active": ":green-badge[:material/radio_button_checked: running]",
    "idle": ":gray-badge[:material/pause_circle: waiting for a request]",
    "ended": ":gray-badge[:material/stop_circle: proxy stopped]",
}


def follow(name: str) -> None:
    """The session, redrawn automatically while its proxy runs."""
    prices = current_prices()
    line = watched().session(name, prices)
    if line is None:
        st.info("This session no longer exists.")
        return
    ended = state_of(line, watched().proxies()) == "ended"
    st.fragment(_draw, run_every=None if ended else LOOK_EVERY)(name)


def _draw(name: str) -> None:
    with sentences():
        line = watched().session(name, current_prices())
        if line is None:
            st.rerun()
        assert line is not None
        state = state_of(line, watched().proxies())
        st.markdown(_headline(line, state), help=HINTS["live_cost"])
        _controls(line, state)
        if refused := st.session_state.get(REFUSED, {}).get(name):
            st.error(in_code(refused, 300))
        _faults(line)
        _chart(line)
        _requests(line)


def _headline(line: dict[str, Any], state: State) -> str:
    seen = [row for row in line["requests"] if row["model_tokens"] is not None]
    last = seen[-1] if seen else None
    parts = [STATE_WORDS[state], counted(line["turns"], "turn")]
    if last:
        parts.append(f"model sees **{short(last['model_tokens'])}** of {short(last['client_tokens'])} tokens")
    if (ratio := line["cost"].get("vs_base")) is not None:
        parts.append(f"cost **{ratio:.2f}×** pass-through so far (simulated)")
    parts += [counted(line["edits"], "edit"), counted(line["fallbacks"], "fallback")]
    if line["errors"]:
        parts.append(counted(line["errors"], "failed response"))
    if line["paused"]:
        parts.append(":orange-badge[paused: requests pass through]")
    if line["stopped"]:
        parts.append(f":orange-badge[editing stopped] {in_code(line['stopped'], 160)}")
    return " · ".join(parts)


def _controls(line: dict[str, Any], state: State) -> None:
    """Pause, change of policy, and links to other pages."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = {"trace": line["trace_id"], "policies": line["policy"]}
        if watched().in_library(line):
            st.page_link("pages/replay.py", label="Open in Replay", icon=":material/replay:", query_params=place)
            st.page_link("pages/trace.py", label="Open transcript", icon=":material/article:", query_params={"trace": line["trace_id"]})
        else:
            st.caption("The trace appears in the library after its first response.")
        if state == "ended" or reviewer_mode():
            return
        allowed = may_read_this_computer()
        why = None if allowed else "To control sessions, open the link that was printed when the dashboard started."
        word = "resume" if line["paused"] else "pause"
        icon = "play_arrow" if line["paused"] else "pause"
        if st.button(word.capitalize(), key="live-pause", icon=f":material/{icon}:", disabled=not allowed, help=why):
            _change(line, word)
        choices = list(dict.fromkeys([line["policy"], *live_policies()]))
        wanted = st.selectbox(
            "Policy of this session",
            choices,
            key=f"live-policy-{line['session']}-{line['policy']}",
            accept_new_options=True,
            on_change=_forget,
            width=320,
            help=why,
        )
        if wanted and wanted != line["policy"] and st.button("Switch", key="live-switch", disabled=not allowed, type="primary"):
            _change(line, "policy", wanted)


def _change(line: dict[str, Any], what: Any, policy: str = "") -> None:
    _forget()
    try:
        control(watched().proxies(), line, what, policy)
    except InputError as error:
        st.session_state[REFUSED] = {line["session"]: error.sentence}
        return
    st.rerun()


def _forget() -> None:
    st.session_state.pop(REFUSED, None)


def _faults(line: dict[str, Any]) -> None:
    faults = [row for row in line["requests"] if row["fallback"] or row["error"]]
    for row in faults[-FAULTS:]:
        what = "Fallback" if row["fallback"] else "Failed response"
        st.error(f"{what} at turn {row['t']}: {in_code(row['fallback'] or row['error'], 300)}", icon=":material/error:")
    if len(faults) > FAULTS:
        st.caption(f"{len(faults) - FAULTS:,} earlier ones are in the table.")


def _chart(line: dict[str, Any]) -> None:
    rows = [row for row in line["requests"] if row["client_tokens"] is not None]
    if not rows:
        st.caption("No request has been read yet.")
        return
    tokens = line["tokens"]
    billed = tokens["billed"]
    known = [f"{short(billed[part])} {word}" for part, word in _BILLED.items() if billed[part] is not None]
    said = f" Billed by the provider (recorded): {', '.join(known)}." if known else " The provider reported no usage."
    if billed["calls_without_usage"]:
        said += f" {counted(billed['calls_without_usage'], 'response')} came without usage."
    how = counted_with(tokens["kind"], tokens["tokenizer"])
    if len(line["policies"]) > 1:
        said += f" Policies in order: {in_code(ORDER.join(line['policies']), 200)}."
    show_chart(
        "Context size per turn",
        drawing(
            "live",
            (line["session"], len(line["requests"]), len([row for row in rows if row["usage"]])),
            lambda colours: live_context(rows, colours),
        ),
        f"Client's history and the model's view, {how}, n = {counted(len(rows), 'request')}.{said} {_MARKED}",
        key="live-context",
        hint=HINTS["active"],
        csv=lambda: requests_csv(line),
    )


_MARKED = ", ".join(f"{sign} {name}" for name, (sign, _, _) in MARKS.items()) + "."
_BILLED = {"uncached": "uncached", "read": "cache read", "write": "cache write", "output": "output"}


def _requests(line: dict[str, Any]) -> None:
    """One line per request, the newest first."""
    rows = _table(line)
    if not rows:
        return
    column = st.column_config
    table(
        rows,
        height=table_height(len(rows), most=420),
        column_config={
            "Turn": column.NumberColumn(width=60),
            "Time": column.TextColumn(width=80),
            "What happened": column.TextColumn(width="large"),
            "Sent → seen": column.TextColumn(width=130, help="Tokens in the client's request → tokens the model saw."),
            "Read / write / new": column.TextColumn(width=150, help="Input as the provider reports it: cache read, cache write, new."),
            "Output": column.TextColumn(width=70),
            "ms": column.NumberColumn(width=70, help="Milliseconds that the request spent in the proxy.", format="%.1f"),
            "First byte, ms": column.NumberColumn(width=90, help="Milliseconds until the model server's first byte.", format="%.0f"),
        },
    )


def _table(line: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "Turn": row["t"],
            "Time": time.strftime("%H:%M:%S", time.localtime(row["at"])),
            "What happened": _happened(row),
            "Sent → seen": f"{_tokens(row['client_tokens'])} → {_tokens(row['model_tokens'])}",
            "Read / write / new": " / ".join(_tokens((row["usage"] or {}).get(part)) for part in ("read", "write", "uncached")),
            "Output": _tokens((row["usage"] or {}).get("output")),
            "ms": row["ms"].get("total"),
            "First byte, ms": row["ms"].get("upstream_first_byte"),
        }
        for row in reversed(line["requests"])
    ]


def requests_csv(line: dict[str, Any]) -> str:
    """The table of requests, newest first as on the screen, with exact token counts and how they were made."""
    own = {
        "Session": line["session"],
        "tokenizer": line["tokens"]["tokenizer"],
        "tokens_kind": line["tokens"]["kind"],
    }
    exact = [
        {"Policy": row["policy"], "client_tokens": row["client_tokens"], "model_tokens": row["model_tokens"]}
        | {f"billed_{part}": (row["usage"] or {}).get(part) for part in _BILLED}
        for row in reversed(line["requests"])
    ]
    rows = [shown | tokens | own for shown, tokens in zip(_table(line), exact, strict=True)]
    return csv_text(pl.DataFrame(rows, infer_schema_length=None))


def _tokens(count: int | None) -> str:
    return "?" if count is None else short(count)


def _happened(row: dict[str, Any]) -> str:
    if row["fallback"]:
        return f"{SIGNS['fallback']} sent unchanged: {one_line(row['fallback'], 300)}"
    mark = marked(row)
    said = f"{MARKS[mark][0]} {mark}" if mark else f"{SIGNS['pass']} pass"
    if row["edit"] and mark != "edit":
        said += ", edit"
    if row["again"]:
        said += ", repeated request"
    if row["refused"]:
        said += f", the edited request was refused ({row['refused']})"
    reason = f": {one_line(row['reason'], 300)}" if row["reason"] else ""
    return said + reason + (f" — response: {one_line(row['error'], 200)}" if row["error"] else "")
