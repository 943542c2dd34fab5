"""The choice of what to replay: policies, profile, heads and device; it is in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.policies.availability import why_not
from pamer_lab.policies.registry import describe_policies, offered_policies, parse_policy
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.runs.store import newest
from pamer_lab.runs.values import RunInfo
from pamer_lab.ui.shared.heads_select import choose_heads, choose_profile
from pamer_lab.ui.shared.runs import run_heads
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

MOST_POLICIES = 7
GIVEN = "policies-given"
"""Session key: set if code, not the reader, has just changed the chosen policies."""


@dataclass(frozen=True)
class Choice:
    """What the reader chose."""

    policies: tuple[str, ...]
    factory: Factory
    reasons: dict[str, str]
    """Why a policy cannot run here, by policy."""

    @property
    def profile(self) -> str:
        return self.factory.profile.name

    def options(self, processes: int = 1) -> BatchOptions:
        return BatchOptions(self.profile, self.factory.device, processes=processes, heads=self.factory.heads_text)

    def newest(self, trace_id: str) -> dict[str, RunInfo]:
        """The runs to show: those of the chosen heads if any were chosen, else the newest of any."""
        found = run_heads(trace_id)
        if self.factory.heads_text:
            chosen = self.factory.heads.heads.sha256
            found = [head for head in found if ":heads=" in head.policy or head.heads.get("sha256", chosen) == chosen]
        return newest(found, self.policies, self.profile)

    @property
    def possible(self) -> list[str]:
        return [policy for policy in self.policies if policy not in self.reasons]


def choose_policies(*, key: str = "policies", first: Sequence[str] = (), most: int = MOST_POLICIES) -> list[str]:
    """Policies by name, with parameters if wanted; the choice is in the URL.

    `first`: what a page opens with instead of the usual ones. `most`: how many may be chosen.
    """
    words = "; ".join(f"{entry['name']}: {entry['description']}" for entry in describe_policies())
    # Streamlit accepts a value or a default, not both. On a return to the page the key has no value, so the key alone says nothing.
    start = None if st.session_state.pop(GIVEN, False) else list(first) or offered_policies("first")
    picked = st.multiselect(
        "Policies",
        offered_policies(),
        default=start,
        key=key,
        bind="query-params",
        accept_new_options=True,
        max_selections=most,
        help=f"{words}. Type a name with parameters, such as sliding-window:8 or pamer+:router=archive.",
    )
    return list(dict.fromkeys(name for text in picked if (name := _named(text))))


def _named(text: str) -> str:
    """The policy's canonical name, or nothing after saying why it is invalid; the others are shown anyway."""
    try:
        return parse_policy(text).name
    except InputError as error:
        st.warning(in_code(str(error), 400))
        return ""


def choose() -> Choice:
    """Policies, profile, heads and device in one row."""
    left, middle, third, right = st.columns([5, 2, 2, 1.4], gap="medium", vertical_alignment="top")
    with left:
        policies = choose_policies()
    name = choose_profile(middle)
    device = right.selectbox("Device", ["auto", "cpu", "cuda", "mps"], key="device", bind="query-params", help=HINTS["device"])
    factory = choose_heads(third, name, device)
    reasons = {policy: reason for policy in policies if (reason := why_not(parse_policy(policy), factory))}
    return Choice(tuple(policies), factory, reasons)
