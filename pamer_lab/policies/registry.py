"""Names -> policies: `name`, `name:value` or `name:value:key=value`.

Adding a policy is one file and one line in `POLICIES` (`docs/adding-a-policy.md`). An unknown name or parameter is answered
with the known ones.
"""

from typing import Any

from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.policies.base import Base
from pamer_lab.policies.interface import Offered, Policy
from pamer_lab.policies.pamer import Pamer
from pamer_lab.policies.pamer_no_compression import PamerNoCompression
from pamer_lab.policies.pamer_no_recall import PamerNoRecall
from pamer_lab.policies.pamer_plus import PamerPlus
from pamer_lab.policies.parameters import parameters_of, read_parameters
from pamer_lab.policies.periodic_summary import PeriodicSummary
from pamer_lab.policies.sliding_window import SlidingWindow

POLICIES: dict[str, Any] = {
    "base": Base,
    "sliding-window": SlidingWindow,
    "periodic-summary": PeriodicSummary,
    "pamer": Pamer,
    "pamer+": PamerPlus,
    "pamer-no-recall": PamerNoRecall,
    "pamer-no-compression": PamerNoCompression,
}
"""Policy name -> its class: a frozen dataclass that states everything about itself (`interface.Policy`); its fields are the
parameters, the first one being the unnamed one."""


def offered_policies(*offered: Offered) -> tuple[str, ...]:
    """Policies with their default parameters, by where they are offered; without a word, all of them, the preselected first."""
    order: tuple[Offered, ...] = offered or ("first", "also", "asked")
    return tuple(kind().name for where in order for kind in POLICIES.values() if kind.offered == where)


DEFAULT_POLICIES = offered_policies("first", "also")
"""What `replay` runs where no policy is named."""


def parse_policy(text: str) -> Policy:
    """The policy that a user's text names."""
    name, *given = [part.strip() for part in text.strip().split(":")]
    if name not in POLICIES:
        raise UnknownNameError("policy", name, list(POLICIES))
    policy: Policy = POLICIES[name](**read_parameters(name, POLICIES[name], given))
    return policy


def parse_policies(text: str) -> list[Policy]:
    """Several policies separated by commas; the same one twice is taken once."""
    found = {policy.name: policy for policy in map(parse_policy, filter(None, (part.strip() for part in text.split(","))))}
    if not found:
        raise InputError(f"no policy is named; known: {', '.join(POLICIES)}")
    return list(found.values())


def describe_policies() -> list[dict[str, Any]]:
    """What every policy states about itself: its parameters with their defaults and what they take, sources, deviations, needs."""
    return [
        {
            "name": name,
            "description": kind.description,
            "parameters": {key: parameter.default for key, parameter in parameters_of(kind).items()},
            "takes": {key: parameter.takes for key, parameter in parameters_of(kind).items()},
            "sources": list(kind.sources),
            "deviations": list(kind.deviations),
            "needs": list(kind.needs),
        }
        for name, kind in POLICIES.items()
    ]
