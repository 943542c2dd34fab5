"""The tour on the home page: a chart of a demo and links for newcomers and reviewers; and the small charts of the table."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pamer_lab import figures
from pamer_lab.decisions import Action
from pamer_lab.figures.numbers import counted, short
from pamer_lab.runs.store import newest
from pamer_lab.runs.values import Run, RunInfo
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.runs import open_runs, run_heads, run_key, run_store
from pamer_lab.ui.shared.text import DEMO, counted_with, in_code
from pamer_lab.ui.shared.words import HINTS

POINTS = 40
"""Points of a small picture."""
MESSAGES_AT_ONCE = 60_000
"""Messages read for small pictures in one drawing of the page; what is left appears with the next."""
FIRST = "museum-case"
"""The demo the tours begin with, where it is here."""
SHOWN = ("pamer", "pamer+")


@st.cache_resource(max_entries=4, show_spinner=False)
def _pictures(path: str) -> dict[str, list[int]]:
    """Small pictures by trace id; a trace's id is a hash of its content, so they never change."""
    return {}


def pictures(rows: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """Tokens before some turns of each trace, evenly spread."""
    known = _pictures(str(workspace().path))
    wanted, messages = [], 0
    for row in rows:
        if row["trace_id"] not in known and messages <= MESSAGES_AT_ONCE:
            wanted.append(row["trace_id"])
            messages += row["messages"]
    if wanted:
        known |= {name: thinned(sizes) for name, sizes in workspace().contexts_before(wanted).items()}
    return known


def thinned(values: Sequence[int], points: int = POINTS) -> list[int]:
    """At most `points` values, the first and the last among them."""
    if len(values) <= points:
        return list(values)
    return [values[round(number * (len(values) - 1) / (points - 1))] for number in range(points)]


@st.cache_data(max_entries=64, show_spinner=False)
def _first(path: str, run_id: str, finished: str, action: Action) -> int | None:
    return run_store().first_turn(run_id, action)


def first_turn(head: RunInfo | None, action: Action) -> int:
    """The first turn at which a run did something; 0 where it never did."""
    return (_first(str(workspace().path), head.run_id, head.finished, action) or 0) if head else 0


def tour(rows: Sequence[dict[str, Any]]) -> None:
    """A picture that is true, and the two paths."""
    row = next((row for row in rows if row["name"].startswith(FIRST)), max(rows, key=lambda row: int(row["turns"])))
    heads = newest(run_heads(row["trace_id"]), SHOWN, "embedded")
    runs = [run for run in open_runs(list(heads.values())) if run.turns]
    left, right = st.columns([5, 4], gap="large")
    if runs:
        with left:
            _picture(row, runs)
    with right if runs else left:
        _links("**Two minutes for a newcomer**", _newcomer(row, heads))
    with right:
        _links("**Two minutes for a reviewer**", _reviewer(row, heads))


def _picture(row: dict[str, Any], runs: Sequence[Run]) -> None:
    raw = runs[0].turns[-1].raw_tokens
    ends = ", ".join(f"{run.head.policy} {short(run.turns[-1].active_tokens)}" for run in runs)
    answer = (
        f"{in_code(row['name'], 40)}: {counted(len(runs[0].turns), 'turn')}, {short(raw)} tokens raw at the end; {ends}; "
        f"{counted_with(runs[0].head.tokens_kind, runs[0].head.tokenizer)}. Actions are fixed.{DEMO if runs[0].head.demo else ''}"
    )
    of = tuple(run_key(run) for run in runs)
    figure = drawing("home-context", of, lambda colours: figures.context(runs, colours, raw=True))
    show_chart("What would the model still have had before it?", figure, answer, key="home-context", hint=HINTS["active"])


Link = tuple[str, str, str, dict[str, Any]]
"""Words, page, icon, state."""


def _newcomer(row: dict[str, Any], heads: dict[str, RunInfo]) -> list[Link]:
    trace, pamer = row["trace_id"], heads.get("pamer")
    turn, block = first_turn(pamer, "compress"), max(0, min(7, row["turns"] - 1))
    policies = ["base", *heads] if heads else ["base", "sliding-window:5", "periodic-summary:5"]
    place = {"trace": trace, "policies": policies, "turn": str(turn)} | ({"policy": "pamer"} if pamer else {})
    links: list[Link] = [
        ("Read a recorded run, block by block", "pages/trace.py", "article", {"trace": trace, "block": str(block)}),
        ("See what a policy would have kept, and why", "pages/replay.py", "replay", place),
    ]
    if pamer:
        links.append(("Ask what five votes of five would change", "pages/replay.py", "tune", place | {"vote": "5"}))
    links.append(("Compare policies over all traces", "pages/growth.py", "trending_up", {}))
    return links


def _reviewer(row: dict[str, Any], heads: dict[str, RunInfo]) -> list[Link]:
    plus = heads.get("pamer+")
    links: list[Link] = [("Was the right evidence brought back? Judge it", "pages/audit.py", "fact_check", {})]
    if plus:
        turn = first_turn(plus, "recall")
        place = {"trace": row["trace_id"], "policies": ["base", "pamer+"], "policy": "pamer+", "turn": str(turn), "view": "Sent and seen"}
        links.append(("Compare what was sent with what the model would see", "pages/replay.py", "compare_arrows", place))
        links.append(("See which evidence later actions used, and where it was", "pages/replay.py", "search", place | {"more": "Evidence"}))
    links += [
        ("Check that every stored byte has its hash", "pages/audit.py", "verified", {"part": "Is the store whole?", "check": "true"}),
        ("Hold it against the paper's own numbers", "pages/published.py", "menu_book", {}),
    ]
    return links


def _links(title: str, links: Sequence[Link]) -> None:
    st.markdown(title)
    for number, (words, page, icon, state) in enumerate(links, 1):
        st.page_link(page, label=f"{number}. {words}", icon=f":material/{icon}:", query_params=state or None)
