"""A policy's parameters: the fields of its dataclass, each a whole number, a number, a flag or one of some words.

Bounds are in the field's metadata: `least` (0 where none is given), `most`, or `choices` for words.
"""

import dataclasses
import re
from typing import Any, get_type_hints

from pamer_lab.errors import InputError

MOST_DIGITS = 9
"""Digits of a number before and after its point."""
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
        """What may be given, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind is bool:
            return "true or false"
        upper = "up" if self.most is None else f"to {self.most}"
        return f"a {'whole ' if self.kind is int else ''}number from {self.least} {upper}"

    def read(self, text: str) -> Any:
        """The value that a user's text gives; `ValueError` where it gives none."""
        if self.choices:
            if text in self.choices:
                return text
        elif self.kind is bool:
            if text.lower() in _FLAGS:
                return _FLAGS[text.lower()]
        elif _NUMBERS[self.kind].fullmatch(text):
            value = self.kind(text)
            if value >= self.least and (self.most is None or value <= self.most):
                return value
        raise ValueError(text)


def parameters_of(policy: Any) -> dict[str, Parameter]:
    """The parameters of a policy class, by name, in their order."""
    hints = get_type_hints(policy)
    return {field.name: Parameter(field.name, hints[field.name], field.default, **field.metadata) for field in dataclasses.fields(policy)}


def read_parameters(name: str, policy: Any, given: list[str]) -> dict[str, Any]:
    """`["7", "keep=2"]` -> values by parameter; what cannot be is refused with what the policy takes."""
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
    """The parameter that a bare value belongs to: one whose choices know the word, else the first that is free."""
    for key, parameter in known.items():
        if part in parameter.choices:
            return key
    first = next((key for key in known if key not in values), "")
    if not first:
        raise InputError(f"policy {name!r} takes {_listed(known)}; {part!r} is one too many")
    return first


def _listed(known: dict[str, Parameter]) -> str:
    return ", ".join(known) if known else "no parameters"
