"""All conditions by name, in the order of the paper's tables. A new condition is one line here (docs/adding-a-condition.md)."""

import re
from collections.abc import Sequence

from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.studies.compact.hidden_bank import HiddenBank, Recurrent
from pamer_lab.studies.compact.recent import Distilled, FullContext, Recent, ScalarState
from pamer_lab.studies.compact.retrieved import ByChance, ByEmbedding, ByRecency, Lexical, Retrieved
from pamer_lab.studies.compact.values import Condition, Group

CAPS = (8_192, 16_384)
"""Evidence caps of the paper, in tokens."""
CAPPED_K = 3
TEACHER = FullContext("faithful")
"""Part of every study, as the reference for all other conditions."""


def all_conditions(caps: Sequence[int] = CAPS) -> tuple[Condition, ...]:
    """Every condition, with one capped variant per cap."""
    similar = HiddenBank("similarity", 5)
    return (
        TEACHER,
        FullContext("none"),
        *(Recent(count) for count in (0, 1, 2, 4)),
        *(ScalarState(Recent(count)) for count in (2, 4)),
        *(Distilled(Recent(count)) for count in (2, 4)),
        *(Retrieved(Lexical(), k) for k in (1, 3, 5)),
        *(Retrieved(ByEmbedding(), k) for k in (1, 3, 5)),
        Retrieved(ByChance(), 3),
        Retrieved(ByRecency(), 3),
        HiddenBank("uniform", 5),
        HiddenBank("recent", 5),
        *(HiddenBank("similarity", k) for k in (1, 3, 5, 8)),
        Recurrent(),
        Recurrent(bank=similar),
        *(Retrieved(ByEmbedding(), CAPPED_K, cap) for cap in caps if cap),
    )


def groups() -> dict[str, Group]:
    """The groups of all conditions by name, in the order of the tables."""
    return {one.group.name: one.group for one in all_conditions()}


def choose(text: str, caps: Sequence[int] = CAPS) -> tuple[Condition, ...]:
    """Conditions from comma-separated names or groups, or `all`; the teacher is always included."""
    known = all_conditions(caps)
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = [condition.name for condition in known]
    for word in words:
        if word != "all" and word not in names and word not in groups():
            raise UnknownNameError("condition", word, ["all", *groups(), *names])
    if not words:
        raise InputError("name at least one condition: names, groups, or all")
    wanted = [one for one in known if "all" in words or one.name in words or one.group.name in words]
    return tuple(wanted) if TEACHER in wanted else (TEACHER, *wanted)


def condition(name: str, caps: Sequence[int] = CAPS) -> Condition:
    """One condition by its name; the error for an unknown name lists the known ones."""
    known = {one.name: one for one in all_conditions(caps)}
    if name not in known:
        raise UnknownNameError("condition", name, list(known))
    return known[name]


def parse_caps(text: str) -> tuple[int, ...]:
    """`8K,16K,500` -> tokens."""
    caps = []
    for word in text.split(","):
        number = word.strip().upper()
        if not number:
            continue
        digits, factor = (number[:-1], 1024) if number.endswith("K") else (number, 1)
        if not re.fullmatch("0{0,20}[1-9][0-9]{0,8}", digits):
            raise InputError(f"--caps takes comma-separated token counts, such as 8K,16K or 512, not {text!r}")
        caps.append(int(digits) * factor)
    return tuple(dict.fromkeys(caps))
