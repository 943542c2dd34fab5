"""What-if sliders: decisions recomputed from the stored logits for other settings, without a model call.

The sliders are in the URL; at the run's own settings, nothing is drawn.
"""

from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, short
from pamer_lab.prices import DEFAULT
from pamer_lab.runs.stored_decisions import HORIZON
from pamer_lab.runs.values import Run
from pamer_lab.runs.whatif import Changes, WhatIf
from pamer_lab.ui.shared.prices import tables_by_name
from pamer_lab.ui.shared.runs import whatif_of
from pamer_lab.ui.shared.words import HINTS

NOTHING = "What-if needs logits, and this policy has no heads. Choose a PaMER run above."
UNANSWERED = "What-if needs logits, and no head ran at any turn of this run."
MOST_NAMED = 8
"""Changed turns that are listed."""


def whatif_panel(run: Run) -> WhatIf | None:
    """The sliders and what they change; None at the run's own settings, or if no head ran."""
    laid_out = whatif_of(run)
    st.markdown("**What if?**", help=HINTS["whatif"])
    if laid_out is None:
        st.caption(NOTHING)
        return None
    rule, heads = laid_out.rule, laid_out.logits.shape[1]
    if not heads:
        short_of = max(turn.candidate_tokens for turn in run.turns) < rule["minimum"]
        st.caption(f"No head ran: the older history never reached {rule['minimum']:,} tokens." if short_of else UNANSWERED)
        return None
    changes = _sliders(rule, heads)
    matches, of = laid_out.verified
    verified = f"verified: {matches:,} of {of:,} stored decisions reproduced"
    if changes in (Changes(vote=vote, minimum=rule["minimum"], retained=rule["retained"]) for vote in (None, rule["vote"])):
        st.caption(f"These are the run's own settings; {verified}. Move a slider to change them.")
        return None
    answer = laid_out.ask(changes)
    changed = answer.changed_turns
    before = sum(turn.active_tokens for turn in run.turns)
    after = int(answer.active_tokens.sum())
    change = 100 * (after / max(before, 1) - 1)
    more = f" and {len(changed) - MOST_NAMED:,} more" if len(changed) > MOST_NAMED else ""
    some = ", ".join(f"{t} ({answer.stored[t]} → {answer.actions[t]})" for t in changed[:MOST_NAMED]) + more
    compressions = sum(action == "compress" for action in answer.actions)
    st.markdown(
        f"**{counted(len(changed), 'turn')} would change**{': ' + some if changed else ''}. "
        f"{counted(compressions, 'compression')}; main input {short(before)} → **{short(after)}** tokens ({change:+.1f} %)."
    )
    notes = "; ".join([*answer.notes, verified])
    st.caption(f"{notes[:1].upper()}{notes[1:]}.")
    return answer


def _sliders(rule: dict[str, Any], heads: int) -> Changes:
    """The changed settings; a single head has no vote to choose."""
    vote, scale, minimum, retained = st.columns(4, gap="medium")
    votes = None
    if heads > 1:
        needed = min(rule["vote"], heads)
        votes = vote.slider(f"Votes needed (of {heads})", 1, heads, needed, key="vote", bind="query-params", help=HINTS["vote"])
    most = max(8192, rule["minimum"])
    return Changes(
        vote=votes,
        threshold_scale=scale.slider("Threshold scale", 0.1, 2.0, 1.0, 0.05, key="scale", bind="query-params", help=HINTS["scale"]),
        minimum=minimum.slider(
            "Minimum candidate size (tokens)",
            0,
            most,
            rule["minimum"],
            64,
            key="least",
            format="localized",
            bind="query-params",
            help=HINTS["candidate"],
        ),
        retained=retained.slider("Recent blocks kept", 0, 8, rule["retained"], key="kept", bind="query-params", help=HINTS["kept"]),
        **_gate(rule),
    )


def _gate(rule: dict[str, Any]) -> dict[str, Any]:
    """Horizon and prices of the priced gate, if they differ from the run's; a run without a gate gets one only if the switch is on."""
    stored = rule.get("gate") or {}
    switch, horizon, table = st.columns([2, 3, 3], gap="medium", vertical_alignment="center")
    if not stored and not switch.toggle("Only edits that pay off", key="pays", bind="query-params", help=HINTS["pays"]):
        return {}
    if stored:
        switch.markdown("Only edits that pay off", help=HINTS["pays"])
    tables = tables_by_name()
    known = stored.get("horizon", HORIZON)
    turns = horizon.slider("Horizon (turns)", 0, max(100, known), known, key="horizon", bind="query-params", help=HINTS["horizon"])
    names = list(tables)
    first = stored.get("prices", DEFAULT)
    place = names.index(first) if first in tables else 0
    name = table.selectbox("Prices for this rule", names, index=place, key="gate-prices", bind="query-params")
    same_table = bool(stored) and name == first
    return {"horizon": None if stored and turns == known else turns, "prices": None if same_table else tables[name or DEFAULT]}
