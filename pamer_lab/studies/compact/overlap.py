"""Where two conditions read the same text, so that their rows cannot differ by what was read.

Invariant: two conditions that read nothing but text have equal `reads` exactly if they read equal blocks at every point of the study.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pamer_lab.studies.compact.groups import FULL
from pamer_lab.studies.compact.retrieved import Retrieved
from pamer_lab.studies.compact.selectors.recency import ByRecency
from pamer_lab.studies.compact.states import Readings
from pamer_lab.studies.compact.values import Condition, Reading


def overlap(condition: Condition, readings: Readings) -> dict[str, Any]:
    """What a row says of its text: `reads`, a hash of the blocks of all points (empty where there is more than text); of retrieved
    ones `points_unlike_recency`, against the newest as many blocks; of capped ones `points_cap_changed`."""
    own = readings.of(condition)
    found: dict[str, Any] = {"reads": "" if condition.group.more_than_text else fingerprint(own)}
    if isinstance(condition, Retrieved):
        found["points_unlike_recency"] = unlike(own, readings.of(Retrieved(ByRecency(), condition.k)))
        if condition.cap:
            found["points_cap_changed"] = unlike(own, readings.of(replace(condition, cap=0)))
    return found


def differences(conditions: Sequence[Condition], readings: Readings) -> dict[str, int]:
    """How many rows of each condition read another text than Recent2: where few do, its row says little."""
    base = next((readings.of(one) for one in conditions if one.name == "recent2"), None)
    if base is None:
        return {}
    return {one.name: unlike(readings.of(one), base) for one in conditions if one.group != FULL and not one.group.more_than_text}


def unlike(readings: Sequence[Reading], others: Sequence[Reading]) -> int:
    """Points at which the two read other blocks."""
    return sum(own.blocks != other.blocks for own, other in zip(readings, others, strict=True))


def fingerprint(readings: Sequence[Reading]) -> str:
    return hashlib.sha256(repr([reading.blocks for reading in readings]).encode()).hexdigest()[:16]
