"""Hindsight labels one at a time: the turns that use evidence, the steps that hold it, agree or disagree, and the agreement so far."""

from typing import Any

import streamlit as st

from pamer_lab.audit.labels import LABEL_REVIEWS, LabelReview, agreement, current, sample, save
from pamer_lab.blocks import cut, split
from pamer_lab.counts import counted
from pamer_lab.errors import LabError
from pamer_lab.memory.summary import block_text
from pamer_lab.runs.evidence import Use
from pamer_lab.runs.hindsight import Rule, counted_uses, covering
from pamer_lab.runs.timeline import stored_timeline
from pamer_lab.trajectory.labels import by_hindsight
from pamer_lab.trajectory.values import Label
from pamer_lab.ui.audit.reviewer import ask_name, reviewing_as
from pamer_lab.ui.shared.loaders import table_version, workspace
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import body, table
from pamer_lab.workspace import TRACES

SAMPLE = 60
"""Labels in the sample: about fifteen of each kind."""
WORDS = {
    ("recall", True): "Recall is needed: the action uses evidence that only older steps contain.",
    ("recall", False): "Recall is not needed: the action uses nothing that only older steps contain.",
    ("compression", True): "Compression is right: nothing older is used in the next {turns}.",
    ("compression", False): "Compression is wrong: something older is used in the next {turns}.",
}

Pair = tuple[str, Label]


@st.cache_resource(max_entries=2, show_spinner="Reading hindsight labels…")
def _labels(path: str, at: tuple[int, int]) -> list[Pair]:
    return [(name, label) for name, own in workspace().labels().items() for label in own if by_hindsight(label)]


def known_labels() -> list[Pair]:
    """Every hindsight label of the workspace, with its trace."""
    return _labels(str(workspace().path), table_version(TRACES)) if any(table_version(TRACES)) else []


@st.cache_resource(max_entries=4, show_spinner=False)
def _reviews(path: str, at: tuple[int, int]) -> list[LabelReview]:
    return current(workspace().database)


@st.cache_resource(max_entries=8, show_spinner=False)
def _used(path: str, at: tuple[int, int], trace_id: str, t: int, turns: int, retained: int) -> tuple[list[Use], frozenset[int]]:
    """What these turns use, and the steps that are older than the recent window at t."""
    timeline = stored_timeline(workspace().trace(trace_id), "embedded", workspace())
    older = frozenset(split(timeline.pieces.before(t), retained).old)
    return [use for use in counted_uses(timeline) if t <= use.t < t + turns], older


def label_review() -> None:
    """The review of the sample, one label at a time."""
    pairs = known_labels()
    if not pairs:
        st.info("No trace in this workspace has hindsight labels. Create some: `pamer-lab label @workspace --rule hindsight`.")
        return
    reviewer = reviewing_as()
    if not reviewer:
        ask_name()
    drawn = sample(pairs, SAMPLE)
    reviews = _reviews(str(workspace().path), table_version(LABEL_REVIEWS)) if any(table_version(LABEL_REVIEWS)) else []
    own = {review.place: review for review in reviews if review.reviewer == reviewer}
    places = [(name, label.t, label.target, label.origin) for name, label in drawn]
    left = [number for number, place in enumerate(places) if place not in own]
    st.caption(f"{len(drawn) - len(left)} of {len(drawn)} sampled hindsight labels reviewed, of {len(pairs):,} in this workspace.")
    number = min(int(st.session_state.get("label-number", left[0] if left else 0)), len(drawn) - 1)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, icon, to in (("Previous", ":material/chevron_left:", number - 1), ("Next", ":material/chevron_right:", number + 1)):
            st.button(icon, key=f"label-{name}", help=name, disabled=not 0 <= to < len(drawn), on_click=_open, args=(to,))
        st.markdown(f"{number + 1} of {len(drawn)}", width="content")
    _case(*drawn[number], reviewer, own.get(places[number]), number, left)
    _agreement(reviews, pairs)


def _open(number: int) -> None:
    st.session_state["label-number"] = number


def _case(trace_id: str, label: Label, reviewer: str, own: LabelReview | None, number: int, left: list[int]) -> None:
    stored = workspace().trace(trace_id)
    rule = Rule.of(label)
    said = WORDS[label.target, label.value].format(turns=counted(rule.horizon, "turn"))
    st.markdown(f"**{said}** Turn {label.t} of {in_code(stored.row['name'] or trace_id, 80)}")
    with st.container(horizontal=True):
        for words, agree in (("Agree", True), ("Disagree", False)):
            chosen = own is not None and own.agree == agree
            st.button(
                words,
                key=f"label-{words}-{number}-{trace_id}",
                type="primary" if chosen else "secondary",
                disabled=not reviewer,
                on_click=_save,
                args=(LabelReview(trace_id, label.t, label.target, label.origin, label.value, reviewer, agree), number, left),
            )
    if failed := st.session_state.pop("label-not-kept", ""):
        st.error(in_code(failed, 300))
    turns = 1 if label.target == "recall" else rule.horizon
    used, older = _used(str(workspace().path), table_version(TRACES), trace_id, label.t, turns, rule.retained)
    st.markdown(
        "Evidence that these turns use, and the steps that contain it:" if used else "The rule found no use of earlier evidence here."
    )
    if used:
        table([_use_row(use, older) for use in used])
    needed = [use for use in used if older.issuperset(use.blocks)]
    blocks = cut(stored.trace.messages).blocks
    last = min(label.t + turns, len(blocks))  # a label that came with a file may ask for more turns than there are
    shown = {label.t: f"Turn {label.t}, the decision"} | {turn: f"Turn {turn}" for turn in range(label.t + 1, last)}
    shown |= {use.t: f"Turn {use.t}, which uses older evidence" for use in needed}
    shown |= {step: f"Step {step}, which contains it" for step in label.steps or covering(needed)}
    for block, title in shown.items():
        st.caption(title)
        body(block_text(blocks[block].of(stored.trace.messages)), key=f"label-{number}-{block}")


def _use_row(use: Use, older: frozenset[int]) -> dict[str, Any]:
    only = "yes" if older.issuperset(use.blocks) else "no"
    return {
        "Turn": use.t,
        "Evidence": use.value,
        "Kind": use.kind,
        "In steps": ", ".join(map(str, use.blocks)),
        "Only in older steps": only,
    }


def _save(review: LabelReview, number: int, left: list[int]) -> None:
    try:
        save(workspace().database, review)
    except LabError as error:
        st.session_state["label-not-kept"] = str(error)
        return
    st.toast("Saved.")
    _open(next((one for one in left if one > number), number))


def _agreement(reviews: list[LabelReview], pairs: list[Pair]) -> None:
    found = agreement(reviews, pairs)
    if not found[-1]["reviews"]:
        st.caption("Agreement with the hindsight labels appears with the first review.")
        return
    st.markdown("Agreement with the hindsight labels")
    table(
        [
            {
                "Label": row["target"] if row["value"] is None else f"{row['target']} {'yes' if row['value'] else 'no'}",
                "Reviews": row["reviews"],
                "Agreed": f"{100 * row['share']:.0f} % [{100 * row['interval'][0]:.0f}, {100 * row['interval'][1]:.0f}]",
            }
            for row in found
        ]
    )
