"""The three rule triggers fire where they should, and only on what lies before the decision."""

import json

from pamer_lab.studies.observables import triggers
from pamer_lab.trajectory.values import Message, ToolCall, Trace


def trace(*steps: tuple[dict[str, str], str]) -> Trace:
    messages = [Message("user", "task")]
    for number, (arguments, result) in enumerate(steps):
        messages.append(Message("assistant", "", (ToolCall(f"c{number}", "tool", json.dumps(arguments)),)))
        messages.append(Message("tool", result, tool_call_id=f"c{number}"))
    messages.append(Message("assistant", "done"))
    return Trace("t", "q", "test", tuple(messages))


LONG = "x" * 500


def test_three_similar_queries_fire_and_only_after_the_third() -> None:
    steps = [({"query": text}, LONG) for text in ("founder of the museum", "the museum founder", "weather today", "museum of the founder")]
    assert [row[0] for row in triggers(trace(*steps))] == [False, False, False, False, True]


def test_similar_queries_further_apart_than_ten_do_not_fire() -> None:
    between = [({"query": f"word{number} thing{number}"}, LONG) for number in range(9)]
    steps = [({"query": "same words"}, LONG), ({"query": "same words"}, LONG), *between, ({"query": "same words"}, LONG)]
    assert not triggers(trace(*steps))[-1][0]


def test_four_short_results_in_a_row_fire_and_a_long_one_starts_again() -> None:
    steps = [({}, "short")] * 3 + [({}, LONG)] + [({}, "short")] * 4
    assert [row[1] for row in triggers(trace(*steps))] == [False] * 8 + [True]


def test_a_place_opened_again_fires_until_the_next_step() -> None:
    steps = [({"url": "http://a/b"}, LONG), ({"url": "http://a/c"}, LONG), ({"url": "HTTP://a/b/"}, LONG), ({"query": "new"}, LONG)]
    assert [row[2] for row in triggers(trace(*steps))] == [False, False, False, True, False]


def test_arguments_that_are_not_json_are_passed_over() -> None:
    odd = Trace(
        "t",
        "q",
        "test",
        (Message("assistant", "", (ToolCall("c", "run", "ls -la"),)), Message("tool", "x", tool_call_id="c"), Message("assistant", "y")),
    )
    assert triggers(odd) == [(False, False, False)] * 2
