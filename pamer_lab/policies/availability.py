"""Whether a policy can run here, what it would load, and how long that should take; nothing is loaded to find out.

A policy is called unavailable only with the reason and the command that would help.
"""

from typing import Any

from pamer_lab.errors import LabError
from pamer_lab.factory import NO_CHAT, Factory
from pamer_lab.models.frozen import model_name
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.registry import offered_policies, parse_policy


def why_not(policy: Policy, factory: Factory) -> str:
    """Why a policy cannot run with a profile and its heads, as a sentence with its remedy; empty where it can."""
    try:
        _ = factory.tokens
    except LabError as error:
        return str(error)
    if "chat" in policy.needs and factory.profile.chat.kind == "none":
        return NO_CHAT.format(profile=factory.profile.name)
    return factory.why_not() if policy.needs_models else ""


def runnable(factory: Factory) -> tuple[list[str], dict[str, str]]:
    """All policies with their default parameters that can run here, and for the others why not."""
    found = {name: why_not(parse_policy(name), factory) for name in offered_policies()}
    return [name for name, reason in found.items() if not reason], {name: reason for name, reason in found.items() if reason}


def is_light(policy: Policy, factory: Factory) -> bool:
    """Whether a policy runs without any model, so that a page may run it unasked."""
    if policy.needs_models or {"chat", "embedder"} & {*policy.needs}:
        return False
    return not ("summariser" in policy.needs and factory.profile.chat.kind != "none")


def other_heads(settings: dict[str, Any], policy: Policy, factory: Factory) -> bool:
    """Whether a run with these settings was made with other heads than those that would vote now."""
    if not policy.needs_models or settings.get("heads") == {}:  # a probe that was given voted, not heads
        return False
    try:
        now = factory.heads_identity()
    except LabError:
        return False  # there are none to compare with
    return bool(settings.get("heads", {}).get("sha256") != now.get("sha256"))


def loads(policy: Policy, factory: Factory) -> list[str]:
    """Names of the models a policy would load."""
    embedding = factory.profile.embedding.model
    frozen = [factory.model_name] if policy.needs_models else []
    return [*frozen, "all-MiniLM-L6-v2" if embedding == "embedded" else model_name(embedding)] if "embedder" in policy.needs else frozen
