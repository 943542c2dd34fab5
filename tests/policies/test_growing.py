"""A growing history is what a finished trace gives at each of its points, and says from where on it is no longer what it was."""

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.blocks import MessageTokens
from pamer_lab.policies.growing import FirstOf, GrowingHistory
from pamer_lab.policies.interface import History
from pamer_lab.runs.timeline import lay_out
from pamer_lab.trajectory.values import Message, Tool, Trace
from tests.runs.making import call, estimated, long_trace
from tests.strategies import conversation

TOOLS = (Tool("search", "finds"),)


def plain(history: History) -> tuple[Any, ...]:
    lists = (history.messages, history.blocks, history.cumulative)
    return (history.t, *map(list, lists), history.prefix_end, history.prefix_tokens, history.tools, history.tools_tokens)


@settings(max_examples=60, deadline=None)
@given(conversation(complete=False))
def test_every_point_is_as_in_a_finished_trace_also_when_looked_at_after_each_message(messages: list[Message]) -> None:
    growing = GrowingHistory(estimated(), TOOLS)
    given_out: list[tuple[History, tuple[Any, ...]]] = []
    for message in messages:
        if message.role == "assistant":
            given_out.append((growing.at_now(), plain(growing.at_now())))
        growing.append([message])
        growing.at_now()
    assert all(plain(history) == before for history, before in given_out), "a history given out never changes"
    if growing.t:
        line = lay_out(Trace("t", "t", "made", tuple(messages), TOOLS), estimated())
        assert [before for _, before in given_out] == [plain(line.at(t)) for t in range(line.turns)]
        assert [plain(growing.at(t)) for t in range(line.turns)] == [plain(line.at(t)) for t in range(line.turns)]


@settings(max_examples=100, deadline=None)
@given(conversation(max_blocks=5), conversation(max_blocks=5), st.integers(0, 30))
def test_after_following_any_other_history_it_is_that_history_and_names_the_points_that_stay(
    first: list[Message], other: list[Message], cut: int
) -> None:
    second = [*first[:cut], *other]
    growing = GrowingHistory(estimated(), (), first)
    points = [*growing.starts, len(first)]
    kept = growing.follow(second)
    fresh = GrowingHistory(estimated(), (), second)
    assert plain(growing.at_now()) == plain(fresh.at_now())
    same = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    new_points = {*fresh.starts, len(second)}
    assert kept == sum(point <= same and point in new_points for point in points)


def test_each_message_is_counted_once_over_a_session() -> None:
    class Counting:
        name, kind, read = "counting", "estimated", 0

        def count(self, texts: Any) -> list[int]:
            self.read += len(texts)
            return [len(text) for text in texts]

    counter = Counting()
    growing = GrowingHistory(MessageTokens(counter, limit=1))  # type: ignore[arg-type]
    messages = long_trace(40).messages
    for message in messages:
        growing.append([message])
        growing.at_now()
    assert counter.read == len(messages)


def test_the_first_entries_of_a_list_behave_like_a_tuple_of_them() -> None:
    entries = list(accumulate([1] * 9))
    view, same = FirstOf(entries, 5), tuple(entries[:5])
    entries.append(100)
    for place in (0, 4, -1, -5, slice(None), slice(2, None), slice(-2, None), slice(None, 99), slice(None, None, -1), slice(3, 1)):
        assert view[place] == (list(same[place]) if isinstance(place, slice) else same[place])
    assert list(view) == list(same) and len(view) == 5 and 100 not in view
    for place in (5, -6):
        with pytest.raises(IndexError):
            view[place]


def test_a_block_that_gets_a_late_message_is_made_again() -> None:
    growing = GrowingHistory(estimated(), (), [Message("user", "go"), *call(0, "a", "b")])
    before = growing.at_now()
    growing.append([Message("user", "and now?")])
    assert (before.blocks[0].end, growing.at_now().blocks[0].end) == (3, 4)
    assert growing.at_now().cumulative[1] > before.cumulative[1]
