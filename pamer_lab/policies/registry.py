"""Names -> policies: `name`, `name:value` or `name:value:key=value`, or a preset; and the parameters of each: the fields of its dataclass.

Adding a policy takes one file and one line in `POLICIES` (`docs/adding-a-policy.md`). The error for an unknown name or parameter lists the
known ones. Bounds are in a field's metadata: `least` (default 0), `most`, or `choices` for words.
"""

import dataclasses
import re
from functools import cache
from typing import Any, cast, get_type_hints

from pamer_lab.controller.gate import Gate
from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.policies.acm import Acm
from pamer_lab.policies.acon import Acon, AconObservation
from pamer_lab.policies.auto_compact import AutoCompact
from pamer_lab.policies.base import Base
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.clear_tool_uses import ClearToolUses
from pamer_lab.policies.comem import CoMem
from pamer_lab.policies.dedupe_reads import DedupeReads
from pamer_lab.policies.forget_half import ForgetHalf
from pamer_lab.policies.interface import Family, Offered, Policy
from pamer_lab.policies.keep_last_tokens import KeepLastTokens
from pamer_lab.policies.llmlingua2 import LlmLingua2
from pamer_lab.policies.lre import Lre
from pamer_lab.policies.masking_summary import MaskingSummary
from pamer_lab.policies.memgpt import MemGpt
from pamer_lab.policies.observation_masking import ObservationMasking
from pamer_lab.policies.openhands_condenser import OpenHandsCondenser
from pamer_lab.policies.pace import PaceCode, PacePaper
from pamer_lab.policies.pamer import Pamer, PamerNoCompression, PamerNoRecall, PamerPlus
from pamer_lab.policies.pamer_policy import CachedPamerPolicy
from pamer_lab.policies.periodic_summary import PeriodicSummary
from pamer_lab.policies.presets import PRESETS
from pamer_lab.policies.priced import PARAMETERS, Priced
from pamer_lab.policies.pruning import LinePrune, TokenPrune
from pamer_lab.policies.sam import Sam
from pamer_lab.policies.sculptor import Sculptor
from pamer_lab.policies.self_gc import SelfGc, SelfGcRules
from pamer_lab.policies.selfcompact import SelfCompact, SelfCompactRules
from pamer_lab.policies.sliding_window import SlidingWindow
from pamer_lab.policies.swe_pruner import SwePruner
from pamer_lab.policies.triggered import RandomWhen, ThresholdWhen
from pamer_lab.policies.truncate_results import TruncateResults
from pamer_lab.prices import find_prices
from pamer_lab.probes.registry import is_name

MOST_DIGITS = 9
"""Maximum number of digits before and after the decimal point."""
_NUMBERS = {
    int: re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}"),
    float: re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(\.[0-9]{{1,{MOST_DIGITS}}})?(e-[0-9]{{1,2}})?"),
}
_FLAGS = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One field of a policy."""

    name: str
    kind: type
    default: Any
    least: float = 0
    most: float | None = None
    """None: no upper bound."""
    choices: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a name"
        bounds = f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
        return f"{'an integer' if self.kind is int else 'a number'} {bounds}"

    def read(self, text: str) -> Any:
        """The value of a user's text; raises `ValueError` if it is not valid."""
        if self.choices:
            if text in self.choices:
                return text
        elif self.kind is bool:
            if text.lower() in _FLAGS:
                return _FLAGS[text.lower()]
        elif self.kind is str:
            if is_name(text):
                return text
        elif _NUMBERS[self.kind].fullmatch(text):
            value = self.kind(text)
            if value >= self.least and (self.most is None or value <= self.most):
                return value
        raise ValueError(text)


@cache
def parameters_of(policy: Any) -> dict[str, Parameter]:
    """The parameters of a policy class, by name, in order; keyword-only ones come last."""
    hints = get_type_hints(policy)
    fields = sorted(dataclasses.fields(policy), key=lambda field: bool(field.kw_only))
    return {field.name: Parameter(field.name, hints[field.name], field.default, **field.metadata) for field in fields}


def read_parameters(name: str, policy: Any, given: list[str]) -> dict[str, Any]:
    """`["7", "keep=2"]` -> values by parameter; the error for an invalid one says what the policy takes."""
    known = parameters_of(policy)
    values: dict[str, Any] = {}
    for part in given:
        key, equals, text = part.partition("=")
        if not equals:
            key, text = _unnamed(name, part, known, values), part
        if key not in known or key in values:
            raise InputError(f"policy {name!r} takes {_listed(known)}, each once; {part!r} is not one of them")
        try:
            values[key] = known[key].read(text)
        except ValueError:
            raise InputError(f"policy {name!r}: {key} is {known[key].takes}, not {text!r}") from None
    return values


def _unnamed(name: str, part: str, known: dict[str, Parameter], values: dict[str, Any]) -> str:
    """The parameter that a bare value belongs to: one whose choices include the word, else the first one not given yet."""
    for key, parameter in known.items():
        if part in parameter.choices:
            return key
    first = next((key for key in known if key not in values), "")
    if not first:
        raise InputError(f"policy {name!r} takes {_listed(known)}; {part!r} is one too many")
    return first


def _listed(known: dict[str, Parameter]) -> str:
    return ", ".join(known) if known else "no parameters"


POLICIES: dict[str, Any] = {
    "base": Base,
    "sliding-window": SlidingWindow,
    "periodic-summary": PeriodicSummary,
    "auto-compact": AutoCompact,
    "openhands-condenser": OpenHandsCondenser,
    "forget-half": ForgetHalf,
    "observation-masking": ObservationMasking,
    "masking-summary": MaskingSummary,
    "keep-last-tokens": KeepLastTokens,
    "clear-tool-uses": ClearToolUses,
    "truncate-results": TruncateResults,
    "dedupe-reads": DedupeReads,
    "acon": Acon,
    "acon-observation": AconObservation,
    "comem": CoMem,
    "memgpt": MemGpt,
    "pace-paper": PacePaper,
    "pace-code": PaceCode,
    "self-gc": SelfGc,
    "self-gc-rules": SelfGcRules,
    "sculptor": Sculptor,
    "sam": Sam,
    "lre": Lre,
    "acm": Acm,
    "selfcompact": SelfCompact,
    "selfcompact-rules": SelfCompactRules,
    "llmlingua-2": LlmLingua2,
    "swe-pruner": SwePruner,
    "lineprune-lexical": LinePrune,
    "tokenprune-idf": TokenPrune,
    "pamer": Pamer,
    "pamer+": PamerPlus,
    "pamer-no-recall": PamerNoRecall,
    "pamer-no-compression": PamerNoCompression,
    "random-when": RandomWhen,
    "threshold-when": ThresholdWhen,
}
"""Policy name -> its class: a frozen dataclass that declares everything about itself (`interface.Policy`). Its fields are the
parameters; the first one may be given without its name."""


def offered_policies(*offered: Offered) -> tuple[str, ...]:
    """Policies with default parameters, by where they are offered; without arguments all of them, preselected ones first."""
    order: tuple[Offered, ...] = offered or ("first", "also", "asked")
    return tuple(kind().name for where in order for kind in POLICIES.values() if kind.offered == where)


DEFAULT_POLICIES = offered_policies("first", "also")
"""What `replay` runs if no policy is named."""


def live_policies() -> tuple[str, ...]:
    """Policies with default parameters that can act on a running agent."""
    return tuple(name for name in offered_policies() if parse_policy(name).acts_live)


def family_of(policy: str) -> Family:
    """The family of a policy, by its name; one that no longer exists counts as a baseline."""
    kind = POLICIES.get(policy.partition(":")[0])
    return kind.family if kind else "baseline"


def parse_policy(text: str) -> Policy:
    """The policy that a user's text names, directly or by a preset."""
    name, *given = [part.strip() for part in text.strip().split(":")]
    if name in PRESETS:
        if given:
            raise InputError(f"{name!r} is an alias of {PRESETS[name].policy}; give the parameters to that policy")
        return parse_policy(PRESETS[name].policy)
    known = POLICIES | BOUNDS
    if name not in known:
        raise UnknownNameError("policy", name, [*POLICIES, *PRESETS])
    kind = known[name]
    gate = [part for part in given if part.partition("=")[0] in PARAMETERS] if "gate=priced" in given else []
    if not gate or "gate" in parameters_of(kind):
        return cast(Policy, kind(**read_parameters(name, kind, given)))
    inner: Policy = kind(**read_parameters(name, kind, [part for part in given if part not in gate]))
    return _priced(name, inner, gate)


def _priced(name: str, inner: Policy, given: list[str]) -> Policy:
    """A policy behind the price gate, whose parameters are those of PaMER's own gate."""
    own = parameters_of(CachedPamerPolicy)
    values = read_parameters(name, CachedPamerPolicy, given)
    values = {key: values.get(key, own[key].default) for key in PARAMETERS}
    changed = "".join(f":{key}={values[key]}" for key in PARAMETERS if values[key] != own[key].default)
    gate = Gate.of(find_prices(values["prices"]), horizon=values["horizon"], window=values["window"])
    return cast(Policy, Priced(inner, gate, changed))


def parse_policies(text: str) -> list[Policy]:
    """Several policies separated by commas; duplicates are dropped."""
    found = {policy.name: policy for policy in map(parse_policy, filter(None, (part.strip() for part in text.split(","))))}
    if not found:
        raise InputError(f"name at least one policy; known: {', '.join(POLICIES)}")
    return list(found.values())


def describe_policies() -> list[dict[str, Any]]:
    """What every policy declares about itself: its parameters with their defaults and what they take, sources, deviations, needs."""
    return [
        {
            "name": name,
            "description": kind.description,
            "parameters": {key: parameter.default for key, parameter in parameters_of(kind).items()},
            "takes": {key: parameter.takes for key, parameter in parameters_of(kind).items()},
            "sources": list(kind.sources),
            "deviations": list(kind.deviations),
            "needs": list(kind.needs),
            "family": kind.family,
            "acts_live": kind.acts_live,
            "facts": [{"basis": basis, "text": text} for basis, text in kind.facts],
        }
        for name, kind in POLICIES.items()
    ]


def describe_presets() -> list[dict[str, str]]:
    """Every preset with its policy and the source of its parameters."""
    return [
        {"name": name, "policy": parse_policy(preset.policy).name, "basis": preset.basis, "source": preset.source}
        for name, preset in PRESETS.items()
    ]
