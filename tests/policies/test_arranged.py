"""Edited blocks laid out turn after turn: equal to laying them out once, and what does not change stays the same object."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.decisions import Item, letters, shared_start
from pamer_lab.policies.plain import Arranged, arranged
from pamer_lab.runs.ledger import Ledger
from tests.runs.making import estimated, long_trace, timeline_of, turns_of

LINE = timeline_of(long_trace(12))
EDITS = {(block, words): Item("edited", words, ((block, block + 1),), "cut", "x" * words) for block in range(12) for words in (1, 2)}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 11), st.sampled_from([0, 1, 2])), max_size=8), min_size=2, max_size=6))
def test_any_edits_in_any_order_are_laid_out_as_if_for_the_first_time(turns: list[list[tuple[int, int]]]) -> None:
    kept = Arranged()
    for t, edits in enumerate(turns, 12 - len(turns)):
        other = {block: EDITS[block, words] if words else None for block, words in edits if block < t}
        history = LINE.at(t)
        assert kept(history, other) == tuple(arranged(history, other))


def test_items_before_a_new_edit_are_the_same_objects() -> None:
    kept, history = Arranged(), LINE.at(11)
    before = kept(history, {2: EDITS[2, 1], 5: EDITS[5, 1]})
    after = kept(history, {2: EDITS[2, 1], 5: EDITS[5, 1], 7: EDITS[7, 1]})
    assert shared_start(before, after) == 4


def test_states_that_are_carried_from_turn_to_turn_are_those_of_each_decision_alone() -> None:
    trace = long_trace(14)
    for policy in ("observation-masking:2", "keep-last-tokens:50:minimum=0", "periodic-summary:3", "masking-summary:4:m=2", "dedupe-reads"):
        for turn in turns_of(trace, policy):
            assert turn.states == letters(turn, turn.t) and turn.active_tokens == sum(item.tokens for item in turn.items)


def test_a_ledger_that_carries_finds_the_cached_tokens_that_one_without_finds() -> None:
    line, counter = timeline_of(long_trace(14)), estimated().counter
    carried, before = Ledger(), ()
    for turn in turns_of(long_trace(14), "observation-masking:3"):
        history = line.at(turn.t)
        assert carried.follow(turn, history, counter) == Ledger(before).follow(turn, history, counter)
        before = turn.items
