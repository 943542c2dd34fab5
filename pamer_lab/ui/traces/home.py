"""The home page: the picture of the demo or of the reader's own trace, the tour's links, and the sparklines of the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pamer_lab import figures
from pamer_lab.decisions import Action
from pamer_lab.figures.text import counted, short
from pamer_lab.runs.store import newest
from pamer_lab.runs.values import Run, RunInfo
from pamer_lab.ui.shared.charts import Drawing, drawing, show_chart
from pamer_lab.ui.shared.keys import ALL_KEYS, TARGET
from pamer_lab.ui.shared.loaders import catalogue, workspace
from pamer_lab.ui.shared.picker import name_of
from pamer_lab.ui.shared.runs import open_runs, policies_of_traces, run_heads, run_key, run_store
from pamer_lab.ui.shared.state import chosen
from pamer_lab.ui.shared.text import DEMO, counted_with, in_code
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace.catalogue import Filters

POINTS = 40
"""Points of a sparkline."""
MESSAGES_AT_ONCE = 60_000
"""Messages read for sparklines per page run; the remaining ones appear on the next run."""
FIRST = "museum-case"
"""The demo trace that the picture and the tour use."""
SHOWN = ("pamer", "pamer+")
COMPARED = "Agent's request vs. model's view"
"""The part of the turn view that a tour link opens."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _pictures(path: str) -> dict[str, list[int]]:
    """Sparklines by trace id; the id is a hash of the content, so they never change."""
    return {}


def pictures(rows: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """Tokens before a sample of evenly spaced turns, for each trace."""
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
    """At most `points` values, including the first and the last."""
    if len(values) <= points:
        return list(values)
    return [values[round(number * (len(values) - 1) / (points - 1))] for number in range(points)]


@st.cache_resource(max_entries=64, show_spinner=False)
def _first(path: str, run_id: str, finished: str, action: Action) -> int | None:
    return run_store().first_turn(run_id, action)


def first_turn(head: RunInfo | None, action: Action) -> int:
    """The first turn at which a run took this action; 0 if it never did."""
    return (_first(str(workspace().path), head.run_id, head.finished, action) or 0) if head else 0


@dataclass(frozen=True)
class Demo:
    """The trace the picture and the tour are about, with its newest runs by policy."""

    row: dict[str, Any]
    heads: dict[str, RunInfo]


def find_demo(rows: Sequence[dict[str, Any]]) -> Demo:
    """The demo trace, or the longest one if the demo was removed."""
    here = rows if catalogue().complete else [*rows, *catalogue(Filters(words=FIRST, searched=("name",))).rows]
    row = next((row for row in here if row["name"].startswith(FIRST)), max(rows, key=lambda row: int(row["turns"])))
    return Demo(row, newest(run_heads(row["trace_id"]), SHOWN, "embedded"))


def demo_links(demo: Demo) -> None:
    """The two ways to open the demo."""
    with st.container(horizontal=True):
        for label, page, icon, state in _newcomer(demo.row, demo.heads)[:2]:
            st.page_link(page, label=label, icon=f":material/{icon}:", query_params=state)


def picture(demo: Demo) -> None:
    """The context of the demo under each policy, from its stored runs; nothing without runs."""
    row, runs = demo.row, [run for run in open_runs(list(demo.heads.values())) if run.turns]
    if not runs:
        return
    raw = runs[0].turns[-1].raw_tokens
    ends = ", ".join(f"{run.head.policy} {short(run.turns[-1].active_tokens)}" for run in runs)
    answer = (
        f"{in_code(row['name'], 40)}, {counted(len(runs[0].turns), 'turn')}. Tokens at the end: raw history {short(raw)}, {ends}; "
        f"{counted_with(runs[0].head.tokens_kind, runs[0].head.tokenizer)}. Actions are fixed.{DEMO if runs[0].head.demo else ''}"
    )
    show_chart("Context size per turn", _drawn(runs), answer, key="home-context", hint=HINTS["active"])


def _drawn(runs: Sequence[Run]) -> Drawing:
    of = tuple(run_key(run) for run in runs)
    return drawing("home-context", of, lambda colours: figures.context(runs, colours, raw=True))


def own_trace(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The reader's trace that the other pages open; None if all are demos."""
    own = [row for row in rows if not row["demo"]]
    return next((row for row in own if row["trace_id"] == chosen("trace")), own[0] if own else None)


@st.cache_resource(max_entries=16, show_spinner=False)
def _before(path: str, trace_id: str) -> list[int]:
    return workspace().contexts_before([trace_id]).get(trace_id, [])


def own_picture(row: dict[str, Any]) -> None:
    """The context of the reader's own trace, with the ways to open it; nothing if it was removed meanwhile."""
    before = _before(str(workspace().path), row["trace_id"])
    if not before:
        return
    ends = f"{counted(len(before), 'turn')}, {before[0]:,} tokens before the first, {before[-1]:,} before the last"
    show_chart(
        "Context size before each turn",
        drawing("home-own", row["trace_id"], lambda colours: figures.history(before, colours)),
        f"{in_code(name_of(row), 60)}: {ends}; {counted_with(row['tokens_kind'], row['tokenizer'])}.",
        key="home-own",
        hint=HINTS["context"],
    )
    open_links(row["trace_id"], "this trace")


def open_links(trace_id: str, it: str) -> None:
    """The two ways to open a trace; `it` says which one."""
    with st.container(horizontal=True):
        for page, label, icon in (("trace", f"Read {it} block by block", "article"), ("replay", f"Replay {it}", "replay")):
            st.page_link(f"pages/{page}.py", label=label, icon=f":material/{icon}:", query_params={"trace": trace_id})


def make_ready(rows: Sequence[dict[str, Any]]) -> None:
    """Fill the caches that a first visit needs: the picture, the tour's links, the sparklines."""
    if not rows:
        return
    demo = find_demo(rows)
    if runs := [run for run in open_runs(list(demo.heads.values())) if run.turns]:
        _drawn(runs)
    _newcomer(demo.row, demo.heads)
    _reviewer(demo.row, demo.heads)
    pictures(rows)
    policies_of_traces(row["trace_id"] for row in rows)


def tour(demo: Demo) -> None:
    """Where to go next: links for newcomers and for reviewers."""
    left, right = st.columns(2, gap="large")
    with left:
        _links("**Two-minute tour for newcomers**", _newcomer(demo.row, demo.heads))
    with right:
        _links("**Two-minute tour for reviewers**", _reviewer(demo.row, demo.heads))
    st.caption(ALL_KEYS)


Link = tuple[str, str, str, dict[str, Any]]
"""Label, page, icon, query parameters."""


def _newcomer(row: dict[str, Any], heads: dict[str, RunInfo]) -> list[Link]:
    trace, pamer = row["trace_id"], heads.get("pamer")
    turn, block = first_turn(pamer, "compress"), max(0, min(7, row["turns"] - 1))
    policies = ["base", *heads] if heads else ["base", "sliding-window:5", "periodic-summary:5"]
    place = {"trace": trace, "policies": policies, "turn": str(turn)} | ({"policy": "pamer"} if pamer else {})
    links: list[Link] = [
        (
            "Read a recorded run block by block",
            "pages/trace.py",
            "article",
            {"trace": trace, "block": str(block), TARGET: f"block-{block}"},
        ),
        ("See what each policy keeps, and why", "pages/replay.py", "replay", place | {TARGET: "verdict"}),
    ]
    if pamer:
        links.append(("What if all five heads had to agree?", "pages/replay.py", "tune", place | {"vote": "5", TARGET: "what-if"}))
    links.append(("Compare policies on all traces", "pages/growth.py", "trending_up", {}))
    return links


def _reviewer(row: dict[str, Any], heads: dict[str, RunInfo]) -> list[Link]:
    plus = heads.get("pamer+")
    links: list[Link] = [("Review the evidence that was restored", "pages/audit.py", "fact_check", {})]
    if plus:
        turn = first_turn(plus, "recall")
        place = {
            "trace": row["trace_id"],
            "policies": ["base", "pamer+"],
            "policy": "pamer+",
            "turn": str(turn),
            "view": COMPARED,
        }
        compared = place | {TARGET: "model-view"}
        links.append(("Compare the agent's request with the model's view", "pages/replay.py", "compare_arrows", compared))
        used = place | {"more": "Evidence", TARGET: "more-tables"}
        links.append(("See which evidence later actions used", "pages/replay.py", "search", used))
    links += [
        ("Verify stored data", "pages/audit.py", "verified", {"part": "Verify stored data", "check": "true", TARGET: "audit-tools"}),
        ("Compare with the paper's results", "pages/published.py", "menu_book", {}),
    ]
    return links


def _links(title: str, links: Sequence[Link]) -> None:
    st.markdown(title)
    for number, (words, page, icon, state) in enumerate(links, 1):
        st.page_link(page, label=f"{number}. {words}", icon=f":material/{icon}:", query_params=state or None)
