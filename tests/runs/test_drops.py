"""Drops: which blocks leave a request for good, when, and which later action misses what was in them."""

from msgspec.structs import replace

from pamer_lab.runs.drops import Lost, drops, drops_json
from pamer_lab.runs.engine import replay
from pamer_lab.runs.evidence import fates
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace, timeline_of, turns_of
from tests.runs.test_evidence import hand_made


def test_a_window_drops_one_block_per_turn_and_names_the_evidence_that_went() -> None:
    timeline = timeline_of(hand_made())
    turns = turns_of(hand_made(), "sliding-window:2")
    found = drops(turns, timeline.block_tokens, fates(timeline, turns))
    assert [(drop.t, drop.blocks) for drop in found] == [(3, [0]), (4, [1]), (5, [2])]
    assert [drop.tokens for drop in found] == timeline.block_tokens[:3]
    lost = {(entry.value, entry.used_at, drop.t) for drop in found for entry in drop.lost}
    assert lost == {("Tom Rice", 3, 3), ("D4711", 4, 4), ("1907", 5, 3)}
    assert drops_json(found)["blocks"] == 3 and drops_json(found)["evidence_lost"] == 3
    assert found[1].lost == (Lost("D4711", "id", 1, 4),)


def test_a_block_that_a_summary_or_memory_keeps_is_not_dropped(workspace: Workspace) -> None:
    run = replay(long_trace(9), "periodic-summary:3", workspace)
    assert any("S" in turn.states for turn in run.turns) and drops(run.turns, run.head.block_tokens) == []


def test_a_block_that_comes_back_and_goes_again_is_dropped_twice(workspace: Workspace) -> None:
    run = replay(long_trace(5), "base", workspace)
    states = ["", "A", ".A", "AAA", ".AAA"]
    turns = [replace(turn, states=text) for turn, text in zip(run.turns, states, strict=True)]
    found = drops(turns, run.head.block_tokens)
    assert [(drop.t, drop.blocks) for drop in found] == [(2, [0]), (4, [0])] and drops_json(found)["blocks"] == 1
