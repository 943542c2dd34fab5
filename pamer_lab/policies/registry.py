"""Names -> policies: `name`, `name:value` or `name:value:key=value`.

Adding a policy is one file and one line in `POLICIES` (`docs/adding-a-policy.md`). An unknown name or parameter is answered
with the known ones.
"""

import dataclasses
from typing import Any

from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.policies.base import Base
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.pamer import Pamer
from pamer_lab.policies.pamer_no_compression import PamerNoCompression
from pamer_lab.policies.pamer_no_recall import PamerNoRecall
from pamer_lab.policies.pamer_plus import PamerPlus
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
"""Policy name -> its class: a frozen dataclass whose fields are the parameters, the first one being the unnamed one."""

DEFAULT_POLICIES = ("base", "sliding-window:5", "periodic-summary:5", "pamer", "pamer+", "pamer-no-recall", "pamer-no-compression")
"""The policies of spec 8 with the parameters we show by default."""


def parse_policy(text: str) -> Policy:
    """The policy that a user's text names."""
    name, *given = [part.strip() for part in text.strip().split(":")]
    if name not in POLICIES:
        raise UnknownNameError("policy", name, list(POLICIES))
    kind = POLICIES[name]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for part in given:
        key, equals, value = part.partition("=")
        if not equals:
            key, value = _unnamed(name, part, fields, values), part
        if key not in fields or key in values:
            raise InputError(f"policy {name!r} takes {_listed(fields)}, each once; {part!r} is not one of them")
        values[key] = _value(name, fields[key], value)
    policy: Policy = kind(**values)
    return policy


def parse_policies(text: str) -> list[Policy]:
    """Several policies separated by commas; the same one twice is taken once."""
    found = {policy.name: policy for policy in map(parse_policy, filter(None, (part.strip() for part in text.split(","))))}
    if not found:
        raise InputError(f"no policy is named; known: {', '.join(POLICIES)}")
    return list(found.values())


def describe_policies() -> list[dict[str, Any]]:
    """Name, description, parameters with defaults, and stated deviations of every policy."""
    return [
        {
            "name": name,
            "description": kind.description,
            "parameters": {field.name: field.default for field in dataclasses.fields(kind)},
            "deviations": list(kind.deviations),
        }
        for name, kind in POLICIES.items()
    ]


def _unnamed(name: str, part: str, fields: dict[str, Any], values: dict[str, Any]) -> str:
    """The parameter that a bare value belongs to: a word its choices know, else the first number."""
    for key, field in fields.items():
        if part in field.metadata.get("choices", ()):
            return key
    first = next((key for key in fields if key not in values), "")
    if not first:
        raise InputError(f"policy {name!r} takes {_listed(fields)}; {part!r} is one too many")
    return first


def _value(name: str, field: Any, text: str) -> Any:
    choices = field.metadata.get("choices", ())
    if choices:
        if text not in choices:
            raise InputError(f"policy {name!r}: {field.name} is one of {', '.join(choices)}, not {text!r}")
        return text
    least = field.metadata.get("least", 0)
    if not text.isdecimal() or len(text) > 9 or int(text) < least:
        raise InputError(f"policy {name!r}: {field.name} is an integer of at least {least}, not {text!r}")
    return int(text)


def _listed(fields: dict[str, Any]) -> str:
    return ", ".join(fields) if fields else "no parameters"
