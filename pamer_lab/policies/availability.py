"""Whether a policy can run here, what it would load, and how long that should take; nothing is loaded to find out.

What always holds: a policy is called unavailable only with the reason and the command that would help.
"""

from pathlib import Path
from typing import Any

from pamer_lab.models.embedded import SMOLLM2
from pamer_lab.models.frozen import is_here
from pamer_lab.models.profiles import EMBEDDED, Profile
from pamer_lab.policies.controlled import Controlled
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.resources import heads_identity
from pamer_lab.probes.artefact import FACTS, TRAIN, shipped_folder


def needs_models(policy: Policy) -> bool:
    """Whether hidden states are read for this policy."""
    return isinstance(policy, Controlled)


def frozen_name(profile: Profile) -> str:
    """The frozen model's name as people know it."""
    model = profile.frozen_model.model
    return SMOLLM2.name if model == EMBEDDED else Path(model).name


def why_not(policy: Policy, profile: Profile) -> str:
    """Why a policy cannot run with a profile, as a sentence with its remedy; empty where it can."""
    if not needs_models(policy):
        return ""
    name = frozen_name(profile)
    if not (shipped_folder(name) / FACTS).exists():
        return f"no trained heads for {name} are installed, so nothing can vote. Train some: {TRAIN}"
    if not is_here(profile.frozen_model.model):
        remedy = "pamer-lab prepare" if profile.frozen_model.model == EMBEDDED else f"hf download {profile.frozen_model.model}"
        return f"the weights of {name} are not on this machine. Get them: {remedy}"
    return ""


def other_heads(settings: dict[str, Any], policy: Policy, profile: Profile) -> bool:
    """Whether a run with these settings was made with other heads than those installed for the profile now."""
    return needs_models(policy) and settings.get("heads") != heads_identity(profile)


def loads(policy: Policy, profile: Profile) -> list[str]:
    """Names of the models a policy would load."""
    if not needs_models(policy):
        return []
    embedding = profile.embedding.model
    return [frozen_name(profile), "all-MiniLM-L6-v2" if embedding == EMBEDDED else Path(embedding).name]
