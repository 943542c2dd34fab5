"""The review form: a verdict with one key, the steps the reviewer would have chosen, a note. Each save adds a revision.

Keys: 1 to 4 give the verdict and open the next selection without a review, J and K move, N opens the note.
Invariant: what is on screen is what is stored. The keys of box and buttons are unique to a selection, reviewer and revision, so that
neither steps nor a press meant for one selection reach another.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import streamlit as st

from pamer_lab.audit import Review, ReviewStore
from pamer_lab.audit.agreement import wanted_steps
from pamer_lab.audit.doubts import NEEDS_STEPS, Doubt, doubt_of
from pamer_lab.audit.queue import Entry, next_unreviewed
from pamer_lab.audit.reviews import VERDICTS
from pamer_lab.audit.tables import NOTE_CHARACTERS
from pamer_lab.errors import LabError
from pamer_lab.figures.text import one_line
from pamer_lab.memory.summary import readable
from pamer_lab.ui.audit.data import reviews
from pamer_lab.ui.audit.queue import drafts, move_selection, open_selection
from pamer_lab.ui.audit.reviewer import ask_name
from pamer_lab.ui.shared.keys import ALL_KEYS
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table
from pamer_lab.ui.shared.words import HINTS

DOUBTS: dict[Doubt, str] = {
    "steps lost": "This review is stored without steps, but an older version of this form may have shown some.",
    "nothing chosen": "This review finds a step at fault, but the router chose none.",
    "steps contradict": "The steps of this review do not fit its verdict.",
}
ASK_NAME = "Then rate each selection with one key: {}. The keys do nothing until you enter a name."
NAMES = {"right": "Right", "missing evidence": "Missing evidence", "unnecessary step": "Unnecessary step", "wrong step": "Wrong step"}


def moves(shown: Sequence[Entry], entry: Entry) -> None:
    """Previous and next in the queue."""
    names = [one.audit_id for one in shown]
    place = names.index(entry.audit_id) if entry.audit_id in names else None
    ends = {-1: 0, 1: len(names) - 1}
    for name, icon, by, key in (
        ("Previous selection", ":material/chevron_left:", -1, "k"),
        ("Next selection", ":material/chevron_right:", 1, "j"),
    ):
        st.button(
            icon,
            key=name,
            help=f"{name}. {ALL_KEYS}",
            disabled=place is None or place == ends[by],
            on_click=move_selection,
            args=(names, entry.audit_id, by),
            shortcut=key,
        )
    where = f"{place + 1:,} of {len(names):,}" if place is not None else "outside the filters"
    st.markdown(where, width="content")


def review_form(row: Mapping[str, Any], entry: Entry, shown: Sequence[Entry], reviewer: str, details: Mapping[int, str]) -> None:
    """Verdict buttons, steps and note, filled with this reviewer's newest revision."""
    said = [one for one in reviews() if one.audit_id == entry.audit_id]
    own = next((one for one in said if one.reviewer == reviewer), None)
    chosen = [int(step) for step in row["steps"] or []]
    case = f"{entry.audit_id}-{crc32(reviewer.encode())}-{own.revision + 1 if own else 0}"
    draft = drafts().get((entry.audit_id, reviewer))
    note = draft if draft is not None else own.note if own else ""
    if failed := st.session_state.pop("not-kept", ""):
        st.error(in_code(failed, 300))
    if not reviewer:
        with st.container(border=True, key="review"):
            ask_name()
            st.caption(ASK_NAME.format(", ".join(f"{number} {NAMES[verdict].lower()}" for number, verdict in enumerate(VERDICTS, 1))))
        _others(said, reviewer, set(chosen))
        return
    with st.container(border=True, key="review"):
        buttons = st.container(horizontal=True, vertical_alignment="center")
        start = _steps(own, chosen)
        wanted = st.multiselect(
            "Steps you would have chosen",
            sorted({*chosen, *range(int(row["turn"])), *start}),
            start,
            key=f"wanted-{case}",
            format_func=lambda step: f"{step}: {one_line(readable(details[step]), 50)}" if details.get(step) else str(step),
            help=HINTS["wanted"],
            placeholder="none needed",
        )
        with buttons:
            for number, verdict in enumerate(VERDICTS, 1):
                st.button(
                    NAMES[verdict],
                    key=f"verdict-{number}-{case}",
                    type="primary" if own and own.verdict == verdict else "secondary",
                    disabled=not chosen and verdict in NEEDS_STEPS,
                    shortcut=str(number),
                    help=HINTS[verdict] if chosen or verdict not in NEEDS_STEPS else HINTS["nothing chosen"],
                    on_click=_save,
                    args=(entry.audit_id, verdict, reviewer, note, shown, f"wanted-{case}", tuple(wanted)),
                )
            st.button("Note", key="note-open", icon=":material/edit_note:", shortcut="n", type="tertiary", on_click=_ask)
        if note:
            st.text(f"Note: {one_line(note, 300)}")
        if draft is not None:
            st.caption("The note is saved with your verdict. Until then it stays here as a draft.")
        _standing(own, set(chosen))
    _others(said, reviewer, set(chosen))
    if st.session_state.pop("note-wanted", False):
        st.session_state["note-text"] = note  # else a key pressed before the redraw would show the text typed for the previous selection
        _note_dialog(entry.audit_id, reviewer)


def _steps(own: Review | None, chosen: Sequence[int]) -> list[int]:
    if own is None or (own.verdict == "right" and not own.steps):
        return sorted(chosen)
    return list(own.steps)


def _ask() -> None:
    st.session_state["note-wanted"] = True


@st.dialog("Note")
def _note_dialog(audit_id: str, reviewer: str) -> None:
    """The note in a dialog that one key opens; it is stored with the next verdict, or at once if there is one already."""
    with st.form("note-form", border=False):
        st.text_area("Note for other reviewers", max_chars=NOTE_CHARACTERS, height=160, key="note-text")
        if st.form_submit_button("Save note", type="primary", on_click=_keep_note, args=(audit_id, reviewer)):
            st.rerun()
    st.caption("Ctrl+Enter saves it, together with your verdict.")


def _keep_note(audit_id: str, reviewer: str) -> None:
    """Store the note with the stored verdict, or keep it as a draft until there is one."""
    text = drafts()[audit_id, reviewer] = st.session_state["note-text"] or ""
    if own := next(reversed(ReviewStore(workspace().database).history(audit_id, reviewer)), None):
        _stored(audit_id, reviewer, own.verdict, own.steps, text, as_shown=own.as_shown)


def _save(audit_id: str, verdict: str, reviewer: str, note: str, shown: Sequence[Entry], box: str, drawn: tuple[int, ...]) -> None:
    """Save the verdict, then open the next selection. The steps are those of the box, or the drawn ones if it was not touched.

    A draft can be newer than `note`: a key may be pressed before the page is redrawn.
    """
    steps = tuple(int(step) for step in st.session_state.get(box, drawn))
    if _stored(audit_id, reviewer, verdict, steps, drafts().get((audit_id, reviewer), note)):
        st.toast(f"Saved: {NAMES[verdict]}.")
        open_selection(next_unreviewed(shown, audit_id, reviewer))


def _stored(audit_id: str, reviewer: str, verdict: str, steps: tuple[int, ...], note: str, *, as_shown: bool | None = True) -> bool:
    """Store a review and return whether that succeeded; a failure is shown on the page, and a draft is kept."""
    try:
        ReviewStore(workspace().database).save(audit_id, reviewer, verdict, steps, note, as_shown=as_shown)
    except LabError as error:
        st.session_state["not-kept"] = str(error)
        return False
    drafts().pop((audit_id, reviewer), None)
    return True


def _standing(own: Review | None, chosen: set[int]) -> None:
    """This reviewer's stored review, and whether it counts for precision and recall."""
    if own is None:
        return
    hint = " It names no other steps. Change the steps and save it again to say which." if wanted_steps(own, chosen) is None else ""
    st.caption(f"You: **{NAMES[own.verdict]}** (revision {own.revision + 1}, {own.created_at:%Y-%m-%d %H:%M} UTC).{hint}")
    if doubt := doubt_of(own, chosen):
        st.warning(f"{DOUBTS[doubt]} Check the steps and give the verdict again.", icon=":material/help:")


def _others(said: Sequence[Review], reviewer: str, chosen: set[int]) -> None:
    others = [one for one in said if one.reviewer != reviewer]
    if not others:
        return
    panel = st.expander(f"Other reviews ({len(others)})", key="others", on_change="rerun")
    if panel.open:
        with panel:
            st.caption("Hidden by default to avoid bias.")
            table(
                [
                    {
                        "Reviewer": one.reviewer,
                        "Verdict": one.verdict,
                        "Steps": ", ".join(map(str, one.steps)),
                        "Doubt": doubt_of(one, chosen) or "",
                        "Note": one.note,
                    }
                    for one in others
                ]
            )
