"""Base, sliding window and periodic summary on small traces."""

import pytest

from pamer_lab.errors import ModelError
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.trajectory.values import Message, ToolCall
from tests.runs.making import call, long_trace, make_trace, turns_of


def test_base_shows_everything_at_every_turn() -> None:
    turns = turns_of(long_trace(6), "base")
    assert [turn.states for turn in turns] == ["", "A", "AA", "AAA", "AAAA", "AAAAA"]
    assert all(turn.active_tokens == turn.raw_tokens for turn in turns)


def test_a_sliding_window_keeps_the_newest_blocks_and_forgets_the_rest() -> None:
    assert [turn.states for turn in turns_of(long_trace(5), "sliding-window:2")] == ["", "A", "AA", ".AA", "..AA"]


def test_a_sliding_window_counts_complete_blocks_only() -> None:
    unanswered = [Message("assistant", "", (ToolCall("c9", "search", "{}"),))]
    trace = make_trace([call(0, "a", "b"), unanswered, call(2, "a", "b"), call(3, "a", "b"), call(4, "a", "b")])
    assert turns_of(trace, "sliding-window:2")[3].states == "AAA"
    assert turns_of(trace, "sliding-window:2")[4].states == "..AA"


def test_a_sliding_window_with_a_budget_waits_until_the_request_is_over_it() -> None:
    trace = long_trace(8)
    free = turns_of(trace, "base")
    limit = free[4].raw_tokens
    states = [turn.states for turn in turns_of(trace, f"sliding-window:2:budget={limit}")]
    assert states[4] == "AAAA" and states[5] == "...AA"


def test_a_periodic_summary_resets_or_accumulates() -> None:
    trace = long_trace(8)
    reset, added = turns_of(trace, "periodic-summary:2"), turns_of(trace, "periodic-summary:2:accumulate")
    for turns in (reset, added):
        assert [turn.states for turn in turns] == ["", "A", "AA", "SSA", "SSAA", "SSSSA", "SSSSAA", "SSSSSSA"]
        assert [turn.action for turn in turns] == ["pass", "pass", "pass", "compress", "pass", "compress", "pass", "compress"]
    assert [sum(bool(item.text) for item in turn.items) for turn in reset] == [0, 0, 0, 1, 1, 1, 1, 1]
    assert [sum(bool(item.text) for item in turn.items) for turn in added] == [0, 0, 0, 1, 1, 2, 2, 3]
    assert reset[7].spent[0].local and reset[7].spent[0].input_tokens > added[7].spent[0].input_tokens


def test_an_incomplete_block_is_never_summarised() -> None:
    unanswered = [Message("assistant", "", (ToolCall("c9", "search", "{}"),))]
    trace = make_trace([call(0, "a", "b"), unanswered, *[call(n, "a", "b") for n in range(2, 6)]])
    assert turns_of(trace, "periodic-summary:2")[5].states == "SASAA"


def test_a_summary_that_fails_sends_the_request_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ModelError("no answer")

    monkeypatch.setattr(ExtractiveSummariser, "summarise", fail)
    turn = turns_of(long_trace(4), "periodic-summary:2")[3]
    assert (turn.action, turn.states, turn.error) == ("fallback", "AAA", "no answer")
    assert turn.active_tokens == turn.raw_tokens
