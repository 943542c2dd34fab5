"""Below the queue: agreement and quality, export and import, and the check of the store."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from pamer_lab.audit.agreement import all_agreements, quality
from pamer_lab.audit.exchange import FORMATS, IMPORTED, audit_bytes, import_bytes
from pamer_lab.audit.queue import Entry
from pamer_lab.audit.store import steps_of
from pamer_lab.figures.numbers import counted
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.redaction import Redaction, own_scan
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.audit.data import exported_findings, findings, reviews, versions
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.share import choose_redaction, show_findings
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import choose_part, sentences, table, table_height
from pamer_lab.ui.shared.words import HINTS

MIME = {".csv": "text/csv", ".jsonl": "application/jsonl", ".parquet": "application/vnd.apache.parquet"}
PARTS = ["Agreement and quality", "Export and import", "Is the store whole?"]
MOST_LISTED = 200
KINDS = {
    "missing": "raw blocks that a memory names and that are not there",
    "mismatched": "raw blocks and memories that do not have their hash",
    "duplicates": "memories that cover what an earlier one covers",
    "damaged": "memories that are unsound otherwise",
    "unreadable": "tables that cannot be read",
    "orphans": "raw blocks that no memory names (left-overs, harmless)",
}


def tools(queue: Sequence[Entry]) -> None:
    """Only the open part is computed."""
    part = choose_part(PARTS, key="part")
    if part == PARTS[1]:
        exchange()
    elif part == PARTS[2]:
        store_check()
    else:
        standing(queue)


def standing(queue: Sequence[Entry]) -> None:
    """How good the shown selections are by the reviewers' word, and how far reviewers agree."""
    names = {entry.audit_id for entry in queue}
    given = [review for review in reviews() if review.audit_id in names]
    if not given:
        st.caption(
            "Nothing is reviewed yet. Precision and recall of the router appear with the first verdict, agreement with the second reviewer."
        )
        return
    found = quality(given, steps_of([dict(entry.row) for entry in queue]))
    left, right = st.columns(2, gap="large")
    with left:
        for name, value, hint in (
            ("Precision", found.precision, HINTS["precision"]),
            ("Recall", found.recall, HINTS["recall_rate"]),
            ("Exactly as the reviewer would", found.exact, ""),
        ):
            st.markdown(f"{name}: **{value:.3f}**" if value is not None else f"{name}: not defined yet", help=hint or None)
        open_ended = f"; {counted(found.unnamed, 'review')} name no steps and are left out" if found.unnamed else ""
        st.caption(
            f"Router against reviewers, steps summed over n = {counted(found.reviews, 'review')} of the shown queue{open_ended}. Measured."
        )
    with right:
        pairs = all_agreements(given)
        if not pairs:
            st.caption("Agreement needs reviews under a second name.")
            return
        table(
            [
                {
                    "Reviewers": " and ".join(pair.reviewers),
                    "In common": pair.common,
                    "Same verdict": None if pair.agreed is None else round(100 * pair.agreed, 1),
                    "Kappa": pair.kappa,
                    "Why none": pair.reason,
                }
                for pair in pairs
            ],
            column_config={
                "Kappa": st.column_config.NumberColumn(format="%.3f", help=HINTS["kappa"]),
                "Same verdict": st.column_config.NumberColumn(format="%.1f %%"),
            },
        )


def exchange() -> None:
    """Selections with all reviews and revisions as one file, and back."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Export** everything: selections, reviews and all their revisions, in one file.")
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
        st.caption("Rows hold the text of queries and answers. Look at them before you send the file to anyone.")
    with right:
        number = st.session_state.setdefault("audit-files", 0)
        endings = (".json",) if reviewer_mode() else IMPORTED
        words = (
            "Import reviews of a share page"
            if reviewer_mode()
            else "Import a file that was exported here or elsewhere, or a share page's reviews"
        )
        file = st.file_uploader(words, [ending[1:] for ending in endings], key=f"audit-{number}")
        if file is not None:
            with sentences():
                st.session_state["audit-added"] = import_bytes(workspace().database, Path(file.name), file.getvalue())
                st.session_state["audit-files"] = number + 1
                st.rerun()
        added: dict[str, int] | None = st.session_state.get("audit-added")
        if added is not None:
            new = f"{counted(added['selection'], 'selection')} and {counted(added['review'], 'review')}"
            st.success(f"{new} were new; what was known stays as it was.")


def _file(ending: str, redact: Redaction) -> bytes:
    return audit_bytes(workspace().database, ending, own_scan(redact))[0]


def store_check() -> None:
    """Orphans, missing blocks and hash mismatches, with the versions that were read."""
    known = versions()
    st.caption(
        " · ".join(f"table {name}: version {number}" if number else f"table {name}: not there yet" for name, number in known.items()),
        help="LanceDB's version of each table; it grows with every commit.",
    )
    if not known[MEMORIES.name] and not known[BLOCKS.name]:
        st.info("Nothing is remembered yet, so there is nothing to check.")
        return
    if not st.toggle("Read everything and compute every hash again", key="check", bind="query-params", help=HINTS["store"]):
        return
    found = findings().as_dict()
    said = f"{counted(found['memories'], 'memory', 'memories')} and {counted(found['blocks'], 'raw block')} read"
    if found["clean"]:
        st.success(f"{said}: every memory is whole, and every raw block has its hash.")
    else:
        remedy = in_code("pamer-lab memory check --repair")
        st.error(f"{said}: not everything is whole. {remedy} mends it; blocks of deleted memories become active again.")
    counts: list[dict[str, Any]] = [{"What": words, "Found": len(found[kind])} for kind, words in KINDS.items()]
    table(counts)
    entries = [{"Kind": kind, "Which": entry} for kind in KINDS for entry in found[kind][:MOST_LISTED]]
    if entries:
        table(entries, height=table_height(len(entries), most=300))
