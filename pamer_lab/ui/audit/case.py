"""One selection of PaMER+: the query, what was chosen and nearly chosen, and whether the archive matches the trace.

Everything a trace or a model wrote goes through `body`, `st.text` or a table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pamer_lab.audit.provenance import Provenance, Step
from pamer_lab.audit.store import restored_tokens
from pamer_lab.figures.text import counted, one_line, share
from pamer_lab.memory.summary import readable
from pamer_lab.runs.values import RunInfo
from pamer_lab.ui.audit.data import step_of
from pamer_lab.ui.audit.queue import OUTCOME_COLOURS
from pamer_lab.ui.shared.text import counted_with, in_code
from pamer_lab.ui.shared.widgets import body, choose_part, table
from pamer_lab.ui.shared.words import HINTS

VIEWS = ["Chosen and nearly chosen", "All candidates", "Query", "Router's answer"]
CHECKS = {
    "equal": ("✓ identical to the uploaded trace", "green"),
    "differs": ("✕ differs from the uploaded trace", "red"),
    "not archived": ("✕ the raw block is missing from the archive", "red"),
    "damaged": ("✕ the archived block does not match its hash", "red"),
    "no trace": ("the trace is not in this workspace, so it cannot be compared", "orange"),
    "unknown step": ("no memory covers this step anymore", "orange"),
}
CACHES = {
    "empty_selection": "nothing was chosen",
    "invalid_packet": "the recall agent's packet was invalid and was not cached",
    "selector_changed": "different steps than last time; packet rebuilt",
    "material_changed": "same steps, but their text or the agent changed; packet rebuilt",
    "hit": "same steps as before; cached packet used",
    "miss": "first selection of the session; packet built",
}
MOST_SHOWN = 4
"""Steps per column whose text is shown at once."""


def title(row: Mapping[str, Any], head: RunInfo | None, name: str) -> None:
    """Which selection this is."""
    badge = f":{OUTCOME_COLOURS.get(row['outcome'], 'gray')}-badge[{_plain(row['outcome'])}]"
    policy = f" under {in_code(head.policy, 60)}" if head else ""
    demo = " :gray-badge[demo]" if head and head.demo else ""
    st.markdown(f"**Turn {row['turn']}** of {in_code(name, 60)}{policy} {badge}{demo}", width="stretch")


def facts(row: Mapping[str, Any], head: RunInfo | None, version: int) -> None:
    """The outcome of the selection, the tokens it saved, and the components that made it."""
    st.text(_sentence(str(row["reason"])))
    chosen, covered, restored = int(row["chosen_tokens"] or 0), int(row["covered_tokens"] or 0), restored_tokens(row)
    parts = []
    if covered:
        parts.append(
            f"**{restored:,} of {covered:,}** archived tokens restored{_of_chosen(restored, chosen)}; "
            f"{covered - restored:,} ({share(covered - restored, covered)}) saved"
        )
    if row["cache"]:
        parts.append(f"cache: **{_plain(row['cache']).replace('_', ' ')}** ({CACHES.get(row['cache'], 'unknown outcome')})")
    at = f"memory table read at version {row['table_version']}"
    parts.append(f"{at}, now {version}" if row["table_version"] <= version else f"{at} of the original workspace")
    parts.append(f"router {in_code(str(row['router']), 60)}, agent {in_code(str(row['agent']), 60)}")
    counted_by = f" Tokens {counted_with(head.tokens_kind, head.tokenizer)}." if head else ""
    st.caption(" · ".join(parts), help=f"{HINTS['cache']}{counted_by}")


def _of_chosen(restored: int, chosen: int) -> str:
    return f" ({chosen:,} chosen)" if restored != chosen else ""


def _plain(word: Any) -> str:
    """A known value; anything else from an imported file is reduced to letters."""
    return "".join(letter for letter in str(word)[:40] if letter.isalnum() or letter in " _") or "unknown"


def _sentence(text: str) -> str:
    short = one_line(text, 400)
    return short[:1].upper() + short[1:] + ("" if short.endswith((".", "…")) else ".")


def evidence(row: Mapping[str, Any], known: Provenance) -> None:
    """What the reviewer needs to judge the selection."""
    view = choose_part(VIEWS, key="look")
    if view == VIEWS[1]:
        _candidates(row, known)
    elif view == VIEWS[2]:
        st.caption("The router's input: the task and recent blocks, without the future action.")
        body(str(row["query"]), key=f"query-{row['audit_id']}")
    elif view == VIEWS[3]:
        st.caption("Untrusted: only what Algorithm 2 accepts is used.")
        body(str(row["answer"]), key=f"answer-{row['audit_id']}")
    else:
        _sides(row, known)


def _sides(row: Mapping[str, Any], known: Provenance) -> None:
    """The situation, the chosen steps, and the best rejected ones."""
    ranks = {int(entry["step"]): entry for entry in row["candidates"] or []}
    chosen = [int(step) for step in row["steps"] or []]
    near = [int(entry["step"]) for entry in row["near_misses"] or []]
    if row["goal"]:
        st.text(f"Goal: {one_line(str(row['goal']), 300)}")
    situation, left, right = st.columns([4, 5, 5], gap="medium")
    with situation:
        st.markdown("**What the agent did next**", help=HINTS["situation"])
        action = known.next_action(int(row["turn"]))
        with st.container(border=True):
            if action:
                body(action, key=f"next-{row['audit_id']}")
            else:
                st.caption("The trace is not in this workspace.")
    with left:
        st.markdown(f"**Chosen** ({len(chosen)})", help=HINTS["chosen"])
        _steps(row, chosen, ranks, "chosen", "No step was chosen.")
    with right:
        st.markdown(f"**Nearly chosen** ({len(near)})", help=HINTS["near"])
        _steps(row, near, ranks, "near", "No other step was considered.")


def _steps(row: Mapping[str, Any], steps: Sequence[int], ranks: Mapping[int, Mapping[str, Any]], side: str, none: str) -> None:
    if not steps:
        st.caption(none)
    shown = steps
    if len(steps) > MOST_SHOWN:
        page = st.pagination(-(-len(steps) // MOST_SHOWN), key=f"{side}-page-{row['audit_id']}")
        shown = steps[(page - 1) * MOST_SHOWN : page * MOST_SHOWN]
    cited, in_part = set(row["cited_steps"] or []), set(row["restored_in_part"] or [])
    for number in shown:
        step = step_of(row["session_id"], row["trace_id"], number)
        entry = ranks.get(number)
        place = f" · rank {entry['rank']}, score {_score(entry['score'])}" if entry else ""
        quoted = f" · {'restored in part' if number in in_part else 'restored'}" if number in cited else ""
        with st.container(border=True):
            tokens = f" · {counted(step.tokens, 'token')}" if step.tokens else ""
            st.markdown(f"**Step {number}**{place}{tokens}{quoted}", help=HINTS["step"])
            words, colour = CHECKS[step.check]
            st.markdown(f":{colour}[{words}]{_hashes(step)}")
            if step.detail:
                st.text(one_line(readable(step.detail), 200))
            body(step.text, key=f"{side}-{row['audit_id']}-{number}")


def _hashes(step: Step) -> str:
    if step.check == "differs":
        return f" · archived {in_code(step.raw_hash[:12])}, uploaded {in_code(step.trace_hash[:12] or 'none')}"
    return f" · sha256 {in_code(step.raw_hash[:12])}…" if step.raw_hash else ""


def _score(value: Any) -> str:
    return f"{float(value):.3f}" if isinstance(value, int | float) else "none"


def _candidates(row: Mapping[str, Any], known: Provenance) -> None:
    """What the router considered, best first."""
    entries = row["candidates"] or []
    if not entries:
        st.caption("This router gives no scores, so there are no candidates to list.")
        return
    chosen, cited, details = set(row["steps"] or []), set(row["cited_steps"] or []), known.details
    in_part = set(row["restored_in_part"] or [])
    table(
        [
            {
                "Rank": entry["rank"],
                "Step": entry["step"],
                "Score": entry["score"],
                "Chosen": "✓" if entry["step"] in chosen else "",
                "Restored": "in part" if entry["step"] in in_part else "✓" if entry["step"] in cited else "",
                "What happened": readable(details.get(entry["step"], "")),
                "Summary": str(entry["memory_id"]),
            }
            for entry in entries
        ],
        column_config={"Score": st.column_config.NumberColumn(format="%.3f", help=HINTS["score"])},
    )
    st.caption(f"A selection stores its best {counted(len(entries), 'candidate')}. Scores are comparable within one selection only.")
