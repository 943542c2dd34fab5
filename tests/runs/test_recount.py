"""The second count finds what the first must not let through."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pamer_lab.decisions import Item
from pamer_lab.runs.recount import faults
from tests.runs.making import SMALL, long_trace, timeline_of, turns_of


def test_a_sound_run_has_no_fault(tmp_path: Path) -> None:
    trace = long_trace(9)
    for policy in ("base", "sliding-window:2", "periodic-summary:2", "pamer" + SMALL, "pamer+" + SMALL):
        assert faults(timeline_of(trace), turns_of(trace, policy, workspace=tmp_path)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"states": "AAA"}, "3 states for 4 earlier blocks"),
        ({"states": "AA?A"}, "states for 4 earlier blocks"),
        ({"states": "AAAS"}, "the active blocks are not those"),
        ({"active_tokens": 1}, "the turn has 1"),
        ({"cached_tokens": 10**6}, "1000000 cached tokens"),
    ],
)
def test_a_wrong_turn_is_named(change: dict[str, Any], fault: str) -> None:
    trace = long_trace(5)
    turns = turns_of(trace, "base")
    turns[4] = replace(turns[4], **change)
    found = faults(timeline_of(trace), turns)
    assert found and found[0].startswith("turn 4: ") and any(fault in text for text in found)


def test_doubled_lost_and_unordered_blocks_and_missing_turns_are_seen() -> None:
    trace = long_trace(5)
    turns, timeline = turns_of(trace, "base"), timeline_of(trace)
    *head, raw = turns[4].items
    doubled = replace(turns[4], items=(*head, raw, raw))
    lost = replace(turns[4], items=tuple(head), active_tokens=turns[4].active_tokens - raw.tokens, states="SSSS")
    told = replace(lost, items=(*head, Item("summary", 0, ((0, 3),), "m", "text")), states="SSS.")
    assert faults(timeline, [*turns[:4], doubled]) and len(faults(timeline, turns[:4])) == 1
    assert "absent" in faults(timeline, [*turns[:4], lost])[0]
    assert not any("absent" in text for text in faults(timeline, [*turns[:4], told]))
