"""The first lines of Replay and Context growth: each policy in one sentence, next to the paper's live result."""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.analysis.verdict import Verdict, account, verdicts
from pamer_lab.runs.drops import Drop
from pamer_lab.runs.evidence import Fate
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.prices import costs_by_policy, current_prices
from pamer_lab.ui.shared.runs import drops_of, fates_of
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

NAME = "base"
"""The policy that others are compared with by default, if it is among them."""


def verdicts_of(runs: Sequence[Run], baseline: str = "") -> list[Verdict]:
    """Finished runs by policy against the baseline; if none is named, against `base` or else the first policy."""
    done = [run for run in runs if run.totals]
    costs = costs_by_policy(done)
    policies = list(dict.fromkeys(run.head.policy for run in done))
    evidence: dict[str, tuple[list[Fate], list[Drop]]] = {policy: ([], []) for policy in policies}
    for run in sorted(done, key=lambda run: run.head.trace_id):  # trace by trace, since the caches hold only a few
        fates, dropped = evidence[run.head.policy]
        fates += fates_of(run)
        dropped += drops_of(run)
    found = []
    for policy in policies:
        totals = [run.totals for run in done if run.head.policy == policy]
        found.append(account(policy, totals, *evidence[policy], costs.get(policy)))
    against = baseline if baseline in policies else NAME if NAME in policies else policies[0] if policies else ""
    return verdicts(found, against)


def show_verdicts(found: Sequence[Verdict], of: str, note: str = "") -> None:
    """One line per policy; `of` says what was replayed, such as `94 turns of one trace`, and `note` what the lines leave out."""
    if not found:
        return
    with st.container(key="verdict", gap="small"):
        lines = []
        for verdict in found:
            live = f" :gray[| paper, live: {verdict.live_words}]" if verdict.live_words else ""
            lines.append(f"**{verdict.policy}**: {'; '.join(verdict.parts)}{live}")
        st.markdown("  \n".join(lines), help=f"{HINTS['verdict']} {HINTS['evidence']} {HINTS['fixed']}")
        priced = any(verdict.cost_pct is not None for verdict in found)
        prices = f" Cost: simulated with prices {in_code(current_prices().dated, 80)}." if priced else ""
        st.caption(f"Replay of {of}, actions fixed; live results are from the paper, with its own agent and tasks.{prices} {note}".rstrip())
