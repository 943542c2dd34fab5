"""Choosing a profile and the heads that vote on its model, and saying what those heads are."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pamer_lab.errors import LabError
from pamer_lab.factory import Factory
from pamer_lab.figures.text import counted, layer_words
from pamer_lab.models.profiles import Profile, known_profiles, load_profile
from pamer_lab.models.trust import trust, unconfirmed
from pamer_lab.probes.registry import fitting_heads
from pamer_lab.ui.shared.gate import may_read_this_computer
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

FITTING = "default"
"""The choice of the default heads for the profile's model. The URL holds labels, so names are shown unchanged."""


def choose_profile(place: DeltaGenerator) -> str:
    """The choice among built-in profiles and those used by runs of this workspace."""
    return place.selectbox("Profile", known_profiles(workspace().path), key="profile", bind="query-params", help=HINTS["profile"])


def choose_heads(place: DeltaGenerator, profile: str, device: str = "auto") -> Factory:
    """The heads of a profile's model by name; the choice is in the URL."""
    found = load_profile(profile, workspace().path)
    name = Factory(found, workspace()).model_name
    names = [entry.name for entry in fitting_heads(name, workspace().path)]
    picked = place.selectbox("Heads", [FITTING, *names], key="heads", bind="query-params", help=HINTS["heads"], disabled=not names)
    ask_to_confirm(found)
    return Factory(found, workspace(), device, "" if picked == FITTING else picked)


def ask_to_confirm(profile: Profile) -> None:
    """Show where an unconfirmed profile would send texts and keys; a browser that opened the printed link can confirm it."""
    places = unconfirmed(profile)
    if not places:
        return
    shown = "\n".join(f"- {in_code(place)}" for place in places)
    st.warning(f"This profile comes from a file and has not been confirmed yet. With it, PaMER Lab would send:\n{shown}")
    if may_read_this_computer():
        st.button("Trust this profile", key="trust-profile", icon=":material/verified_user:", on_click=_trust, args=(profile,))
    else:
        st.caption("Confirm it with `pamer-lab doctor --profile NAME --trust-profile`, or open the link printed at start.")


def describe_heads(factory: Factory) -> None:
    """One line: which heads vote, what they read, and how they were made."""
    try:
        row = factory.heads.row()
    except LabError:
        return  # the policy that needs them says so
    corpus, auroc = row["corpus"], row["auroc"]
    made = (
        f"trained on {corpus['decision_points']:,} decisions of {counted(corpus['traces'], 'trace')}"
        if corpus
        else "training corpus unknown"
    )
    score = (
        f"AUROC {auroc['mean']:.3f} ± {auroc['sd']:.3f} ({counted(auroc['seeds'], 'seed')}, their own test splits)"
        if auroc
        else "AUROC unknown"
    )
    hint = "no hint" if row["hint"] == "none" else f"{row['hint']} hint"
    st.caption(
        f"Voting heads: {in_code(row['name'], 64)} ({row['source']}) read {in_code(row['model'], 64)} at "
        f"{in_code(layer_words(row['layer']), 20)}, "
        f"{hint}; "
        f"{made}; {score}; sha256 {in_code(row['sha256'][:12], 12)}." + (f" Default: {row['why_default']}." if row["default"] else "")
    )


def _trust(profile: Profile) -> None:
    trust(profile)
