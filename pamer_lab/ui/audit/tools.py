"""Below the queue: agreement and quality, export and import, and the check of the store."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from pamer_lab.audit.agreement import Quality, all_agreements, quality
from pamer_lab.audit.doubts import doubts
from pamer_lab.audit.exchange import FORMATS, IMPORTED
from pamer_lab.audit.queue import Entry
from pamer_lab.audit.store import steps_of
from pamer_lab.figures.text import counted
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.redaction import Redaction
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.audit.data import exported, exported_findings, findings, imported, reviews, versions
from pamer_lab.ui.shared.share import choose_redaction, show_findings
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import choose_part, sentences, table, table_height
from pamer_lab.ui.shared.words import HINTS

MIME = {".csv": "text/csv", ".jsonl": "application/jsonl", ".parquet": "application/vnd.apache.parquet"}
PARTS = ["Agreement and quality", "Export and import", "Verify stored data"]
MOST_LISTED = 200
KINDS = {
    "missing": "raw blocks that a memory refers to but that are missing",
    "mismatched": "raw blocks and memories that do not match their hash",
    "duplicates": "memories that cover the same steps as an earlier one",
    "damaged": "memories that are damaged in another way",
    "unreadable": "tables that cannot be read",
    "orphans": "raw blocks that no memory refers to (harmless)",
}


def tools(queue: Sequence[Entry]) -> None:
    """Only the open part is computed."""
    part = choose_part(PARTS, key="part", renamed={"Is the store whole?": PARTS[2]})
    if part == PARTS[1]:
        exchange()
    elif part == PARTS[2]:
        store_check()
    else:
        standing(queue)


def standing(queue: Sequence[Entry]) -> None:
    """The quality of the shown selections according to reviewers, and how far reviewers agree."""
    names = {entry.audit_id for entry in queue}
    given = [review for review in reviews() if review.audit_id in names]
    if not given:
        st.caption(
            "There are no reviews yet. The router's precision and recall appear with the first verdict, agreement with the second reviewer."
        )
        return
    selected = steps_of([dict(entry.row) for entry in queue])
    found = quality(given, selected)
    left, right = st.columns(2, gap="large")
    with left:
        _quality(found)
        doubtful = doubts(given, selected)
        if doubtful:
            st.warning(
                f"{counted(len(doubtful), 'review')} in this queue should be checked again, marked `?` in the list. "
                f"{in_code('pamer-lab audit check')} lists them; none was changed."
            )
    with right:
        pairs = all_agreements(given)
        if not pairs:
            st.caption("Agreement needs a second reviewer.")
            return
        table(
            [
                {
                    "Reviewers": " and ".join(pair.reviewers),
                    "Reviewed by both": pair.common,
                    "Same verdict": None if pair.agreed is None else round(100 * pair.agreed, 1),
                    "Kappa": pair.kappa,
                    "Note": pair.reason,
                }
                for pair in pairs
            ],
            column_config={
                "Kappa": st.column_config.NumberColumn(format="%.3f", help=HINTS["kappa"]),
                "Same verdict": st.column_config.NumberColumn(format="%.1f %%"),
            },
        )


def _quality(found: Quality) -> None:
    """Verdicts first; then scores in which every verdict counts, each with its n."""
    st.markdown(f"**{counted(found.total, 'review')}**: " + ", ".join(f"{count:,} {verdict}" for verdict, count in found.verdicts.items()))
    bound = "at most " if found.unnamed else ""
    for name, value, of, hint in (
        ("Precision", found.precision, counted(found.chosen, "chosen step"), HINTS["precision"]),
        ("Recall", found.recall, counted(found.wanted, "wanted step"), HINTS["recall_rate"]),
        ("Exact match", found.exact, counted(found.total, "review"), HINTS["exact"]),
    ):
        st.markdown(f"{name}: {bound}**{value:.3f}** (n = {of})" if value is not None else f"{name}: not defined yet", help=hint)
    unnamed = f" {counted(found.unnamed, 'negative verdict')} without steps: counted as one step at fault each." if found.unnamed else ""
    st.caption(f"Router vs. reviewers in this queue, measured.{unnamed}")


def exchange() -> None:
    """Selections with all reviews and revisions as one file, and back."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Export** all selections and reviews, with every revision, to one file.")
        redact = choose_redaction("audit-redact")
        show_findings(exported_findings(redact))
        with st.container(horizontal=True):
            for ending in FORMATS:
                st.download_button(
                    ending[1:].upper(),
                    partial(_file, ending, redact),
                    f"pamer-audit{ending}",
                    MIME[ending],
                    key=f"export{ending}",
                    on_click="ignore",
                    icon=":material/download:",
                )
        st.caption("The file contains the text of queries and answers. Check it before you share it.")
    with right:
        number = st.session_state.setdefault("audit-files", 0)
        endings = (".json",) if reviewer_mode() else IMPORTED
        words = "Import reviews from a share page" if reviewer_mode() else "Import an exported audit, or reviews from a share page"
        file = st.file_uploader(words, [ending[1:] for ending in endings], key=f"audit-{number}")
        if file is not None:
            with sentences():
                st.session_state["audit-added"] = imported(file.name, file.getvalue())
                st.session_state["audit-files"] = number + 1
                st.rerun()
        added: dict[str, int] | None = st.session_state.get("audit-added")
        if added is not None:
            new = f"{counted(added['selection'], 'selection')} and {counted(added['review'], 'review')}"
            st.success(f"Added {new}. Existing entries are unchanged.")


def _file(ending: str, redact: Redaction) -> bytes:
    return exported(ending, redact)[0]


def store_check() -> None:
    """Orphans, missing blocks and hash mismatches, with the table versions."""
    known = versions()
    st.caption(
        " · ".join(f"table {name}: version {number}" if number else f"table {name}: not created yet" for name, number in known.items()),
        help="The LanceDB version of each table; it increases with every commit.",
    )
    if not known[MEMORIES.name] and not known[BLOCKS.name]:
        st.info("No memories are stored yet, so there is nothing to verify.")
        return
    if not st.toggle("Verify stored data", key="check", bind="query-params", help=HINTS["store"]):
        return
    found = findings().as_dict()
    said = f"{counted(found['memories'], 'memory', 'memories')} and {counted(found['blocks'], 'raw block')} read"
    if found["clean"]:
        st.success(f"{said}: all memories are intact, and every raw block matches its hash.")
    else:
        remedy = in_code("pamer-lab memory check --repair")
        st.error(f"{said}. Damaged records found. Run {remedy} to repair them; blocks of deleted memories become active again.")
    counts: list[dict[str, Any]] = [{"What": words, "Found": len(found[kind])} for kind, words in KINDS.items()]
    table(counts)
    entries = [{"Kind": kind, "Record": entry} for kind in KINDS for entry in found[kind][:MOST_LISTED]]
    if entries:
        table(entries, height=table_height(len(entries), most=300))
