"""One decision point under two conditions: the blocks each shows the model, their tokens, and both texts side by side.

Conditions select as in a study (`studies.compact.view`) with its caps, but always with the embedded models; a caption says so if the study
used others. No state is computed and no probe is used.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pamer_lab.analysis.compact import caps_of
from pamer_lab.figures.text import counted, one_line
from pamer_lab.models.embedder import Embedder, load_embedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.studies.compact.registry import all_conditions, condition
from pamer_lab.studies.compact.values import Resources
from pamer_lab.studies.compact.view import ContextView, Piece, context_at, resources_for
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study
from pamer_lab.trajectory.recorded import History
from pamer_lab.ui.shared.loaders import stored_trace, trace_rows
from pamer_lab.ui.shared.picker import pick_trace
from pamer_lab.ui.shared.state import out_of_range, settle
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import body, table, table_height
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace import StoredTrace

AT_A_TIME = 6
"""Items whose text is on the page at once."""
WORDS = {"older": "kept", "recent": "recent", "tools": "kept", "prefix": "kept"}


@st.cache_resource(max_entries=1, show_spinner="Loading the embedding model…")
def _embedder() -> Embedder:
    return load_embedder(load_profile("embedded"), "cpu")


@st.cache_resource(max_entries=2, show_spinner=False)
def _resources(*, embedder: bool) -> Resources:
    return resources_for(embedder=_embedder() if embedder else None)


@st.cache_resource(max_entries=6, show_spinner=False)
def _view(trace_id: str, t: int, name: str, caps: tuple[int, ...], history: History, _stored: StoredTrace) -> ContextView:
    resources = _resources(embedder="embedder" in condition(name, caps).needs)
    if _stored.row["tokenizer"] == resources.counts.tokenizer:
        resources.counts.know(trace_id, _stored.message_tokens)
    return context_at(_stored.trace, t, name, resources, caps, history)


def _other_models(sides: Sequence[ContextView], caps: tuple[int, ...], study: Study) -> None:
    """The study's embedding model and tokenizer, if this view uses others."""
    asked = {
        "embedder": _embedder().name if any("embedder" in condition(side.condition, caps).needs for side in sides) else "",
        "tokenizer": sides[0].tokenizer,
    }
    for what, here in asked.items():
        there = study.settings.get(what)
        if here and there and here != there:
            word = "chose evidence" if what == "embedder" else "counted tokens"
            st.caption(f"The study {word} with {in_code(str(there), 60)}; this view uses {in_code(here, 60)}, so results may differ.")


def context_pair(study: Study | None) -> None:
    """Pickers, the table of blocks, and the texts."""
    rows = trace_rows()
    if study is not None:
        # Traces of the study first, since their labels are known.
        known = {entry["trace_id"] for entry in study.decisions}
        rows = sorted(rows, key=lambda row: row["trace_id"] not in known)
    trace_id = pick_trace(rows)
    if trace_id is None:
        return
    stored, transcript = stored_trace(trace_id)
    turns = stored.trace.turns
    if turns < 2:
        st.info("This trace has no decision point with history. Choose one with at least two turns.")
        return
    caps = caps_of(study)
    t, first, second = _choose(turns, caps)
    history: History = "recorded" if study is not None and study.settings.get("history") == "recorded" else "full"
    whole, *sides = (_view(trace_id, t, name, caps, history, stored) for name in ("full", first, second))
    _headline(sides, study)
    if study is not None:
        _other_models(sides, caps, study)
    if whole.rebuilt:
        st.caption(f"Recorded history, as in the study: {counted(whole.rebuilt, 'memory operation')} applied, blocks renumbered.")
    what = {} if whole.rebuilt else {int(row["block"]): str(row["what"]) for row in transcript.outline}
    _blocks(whole, sides, what)
    _texts(whole, sides)


def _choose(turns: int, caps: tuple[int, ...]) -> tuple[int, str, str]:
    names = {one.name: one.label for one in all_conditions(caps)}
    asked = out_of_range("point", turns)
    if asked is not None:
        st.warning(f"Decision point {asked:,} in this link does not exist; those of this trace are 1 to {turns - 1:,}.")
    settle("point", range(1, turns), turns - 1)
    settle("left", list(names), "full")
    settle("right", list(names), "raw-top3")
    one, two, three = st.columns([2, 3, 3], gap="medium", vertical_alignment="bottom")
    t = int(one.number_input(f"Decision point, 1 to {turns - 1}", 1, turns - 1, key="point", help=HINTS["decision"]))
    left = two.selectbox("Left", list(names), key="left", format_func=names.__getitem__, help=HINTS["condition"])
    right = three.selectbox("Right", list(names), key="right", format_func=names.__getitem__, help=HINTS["condition"])
    st.query_params.update({"point": str(t), "left": left, "right": right})
    return t, left, right


def _headline(sides: Sequence[ContextView], study: Study | None) -> None:
    parts = [f"**{side.label}** {side.tokens:,} tokens ({side.share_pct:.1f} % of {side.full_tokens:,})" for side in sides]
    for entry in study.decisions if study is not None else []:
        if (entry["trace_id"], entry["t"]) == (sides[0].trace_id, sides[0].t):
            parts += [f"{target} {'needed' if entry[target] else 'not needed'}" for target in TARGETS if target in entry]
    st.markdown(" · ".join(parts) + f" · measured with {sides[0].tokenizer}", help=HINTS["share"])
    for side in sides:
        if side.note:
            st.caption(f"{side.label}: {side.note}.")


def _word(side: ContextView, piece: Piece) -> str:
    """What a condition does with a part of the full history."""
    own = next((one for one in side.pieces if one.block == piece.block and (one.block is not None or one.kind == piece.kind)), None)
    if own is None:
        return "left out"
    return f"evidence {own.rank}, score {own.score:.3f}" if own.kind == "evidence" else WORDS[own.kind]


def _name(piece: Piece) -> str:
    return {"tools": "tool descriptions", "prefix": "system and task"}.get(piece.kind, f"block {piece.block}")


def _blocks(whole: ContextView, sides: Sequence[ContextView], what: dict[int, str]) -> None:
    """Every part of the history before the decision and what each condition does with it."""
    left, right = sides[0].label, sides[1].label + (" (right)" if sides[0].label == sides[1].label else "")
    rows: list[dict[str, Any]] = []
    for piece in whole.pieces:
        one, other = (_word(side, piece) for side in sides)
        rows.append(
            {
                "Item": _name(piece),
                "What": what.get(piece.block, "") if piece.block is not None else "",
                "Tokens": piece.tokens,
                left: one,
                right: other,
                "Differs": "≠" if (one == "left out") != (other == "left out") else "",
            }
        )
    table(rows, key="pair-blocks", height=table_height(len(rows), most=360))


def _texts(whole: ContextView, sides: Sequence[ContextView]) -> None:
    """Both contexts as text, part by part and aligned; omitted parts are marked."""
    used = [piece for piece in whole.pieces if any(_word(side, piece) != "left out" for side in sides)]
    pages = -(-len(used) // AT_A_TIME)
    st.markdown(f"**Both contexts as text**, {counted(len(used), 'part')}")
    page = st.pagination(pages, key="pair-page") - 1 if pages > 1 else 0
    for number, piece in enumerate(used[page * AT_A_TIME : (page + 1) * AT_A_TIME]):
        for place, (column, side) in enumerate(zip(st.columns(2, gap="medium"), sides, strict=True)):
            with column:
                word = _word(side, piece)
                if word == "left out":
                    st.caption(f"{_name(piece)}: left out by {one_line(side.label, 60)}")
                    continue
                st.caption(f"{_name(piece)}, {word}")
                body(piece.text, key=f"pair-{whole.t}-{page}-{number}-{place}")
