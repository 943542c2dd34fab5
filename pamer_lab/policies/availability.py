"""Whether a policy can run here, and which models it would load; nothing is loaded to find out.

An unavailable policy is always reported with the reason and the command that helps.
"""

from collections.abc import Sequence
from typing import Any, get_args

from pamer_lab.errors import LabError
from pamer_lab.factory import NO_CHAT, Factory
from pamer_lab.models.frozen import model_name
from pamer_lab.models.profiles import EMBEDDED
from pamer_lab.policies.interface import Family, Policy
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.presets import PRESETS
from pamer_lab.policies.registry import POLICIES, offered_policies, parse_policies, parse_policy
from pamer_lab.policies.resources import factory_of
from pamer_lab.probes.draft_probe import why_no_probe
from pamer_lab.workspace import Workspace

ALL, LIGHT, PROGRAMS = "all", "light", "programs"
"""Words in a list of policies: all that can run here, those of them that need no model, and all presets."""
GROUPS = {ALL, LIGHT, PROGRAMS, *get_args(Family)} - {*POLICIES}
"""Words that name several policies; `pamer` names the policy, not its family."""


def why_not(policy: Policy, factory: Factory) -> str:
    """Why a policy cannot run with a profile and its heads, as a sentence with its remedy; empty if it can."""
    try:
        _ = factory.tokens
    except LabError as error:
        return str(error)
    if ("chat" in policy.needs or getattr(policy, "asks_chat", False)) and factory.profile.chat.kind == "none":
        return NO_CHAT.format(profile=factory.profile.name)
    if getattr(policy, "reads_drafts", False) and (missing := why_no_probe(factory.model_name, factory.workspace.path)):
        return missing
    if isinstance(policy, PlainPolicy) and (missing := policy.missing()):
        return missing
    return factory_of(policy, factory).why_not() if policy.needs_models else ""


def runnable(factory: Factory) -> tuple[list[str], dict[str, str]]:
    """All policies (with default parameters) that can run here, and for each of the others the reason why not."""
    found = {name: why_not(parse_policy(name), factory) for name in offered_policies()}
    return [name for name, reason in found.items() if not reason], {name: reason for name, reason in found.items() if reason}


def refused(names: Sequence[str], trace_ids: Sequence[str], workspace: Workspace) -> dict[str, str]:
    """Policies that can replay none of these traces, and why."""
    asked = {name: policy for name in names if isinstance(policy := parse_policy(name), PlainPolicy) and policy.reads_recorded_calls}
    found: dict[str, str] = {}
    for name, policy in asked.items():
        reasons = [policy.refuses(workspace.trace(trace_id).trace) for trace_id in trace_ids]
        if reasons and all(reasons):
            found[name] = reasons[0]
    return found


def expanded(text: str, factory: Factory) -> tuple[list[str], dict[str, str]]:
    """The policies that a user's list names, and why some policies of a group are left out.

    A list may also contain `all`, `light` (no model at all) or a family (`host`, `method`, ...): the policies of that group that can
    run here, with default parameters; or `programs`: all presets with their own parameters.
    """
    words = [word.strip() for part in text.split(",") for word in (PRESETS if part.strip() == PROGRAMS else (part,)) if word.strip()]
    groups = GROUPS & {*words}
    can, cannot = runnable(factory) if groups else ([], {})
    names: list[str] = []
    for word in words:
        names += [name for name in can if _belongs(name, word, factory)] if word in groups else [parse_policy(word).name]
    if not names:
        parse_policies("")  # raises an error that lists the known policies
    return list(dict.fromkeys(names)), {
        name: reason for name, reason in cannot.items() if any(_belongs(name, word, None) for word in groups)
    }


def _belongs(name: str, group: str, factory: Factory | None) -> bool:
    policy = parse_policy(name)
    return group in (ALL, policy.family) or (group == LIGHT and factory is not None and is_light(policy, factory))


def is_light(policy: Policy, factory: Factory) -> bool:
    """Whether a policy runs without any model, so that a page may run it without asking."""
    if policy.needs_models or {"chat", "embedder", "weights"} & {*policy.needs}:
        return False
    return not ("summariser" in policy.needs and factory.profile.chat.kind != "none")


def other_heads(settings: dict[str, Any], policy: Policy, factory: Factory) -> bool:
    """Whether a run with these settings was made with different heads from those that would vote now."""
    if not policy.needs_models or settings.get("heads") == {}:  # a given probe voted, not trained heads
        return False
    try:
        now = factory_of(policy, factory).heads_identity()
    except LabError:
        return False  # there are no heads to compare with
    return bool(settings.get("heads", {}).get("sha256") != now.get("sha256"))


def loads(policy: Policy, factory: Factory) -> list[str]:
    """Names of the models that a policy would load into this process: none of a server, and hashing has none."""
    embedding = factory.profile.embedding
    frozen = [factory.model_name] if policy.needs_models else []
    if "embedder" not in policy.needs or embedding.kind != "sentence-transformers":
        return frozen
    return [*frozen, "all-MiniLM-L6-v2" if embedding.model == EMBEDDED else model_name(embedding.model)]
