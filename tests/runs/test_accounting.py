"""Totals, prefix cache and prices against sums done by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pamer_lab.decisions import Item, Spent
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.ledger import LedgerError
from pamer_lab.runs.prefix_cache import cached_tokens, common_start
from pamer_lab.trajectory.values import Usage
from tests.runs.making import estimated, long_trace, timeline_of, turns_of


def test_totals_of_a_window_are_the_sums_over_its_turns() -> None:
    trace = long_trace(6)
    timeline, turns = timeline_of(trace), turns_of(trace, "sliding-window:2")
    blocks, head = timeline.block_tokens, timeline.prefix_tokens + timeline.tools_tokens
    inputs = [head + sum(blocks[max(0, t - 2) : t]) for t in range(6)]
    counted = totals(timeline, turns)
    assert counted["main_input"] == sum(inputs) and counted["peak_active"] == max(inputs)
    assert counted["main_output"] == sum(timeline.output_tokens)
    assert counted["base_total"] == sum(head + sum(blocks[:t]) for t in range(6)) + counted["main_output"]
    assert counted["total"] == counted["main_input"] + counted["main_output"]
    assert counted["reduction_pct"] == pytest.approx(100 * (1 - counted["total"] / counted["base_total"]))
    # Nothing is shared but tools and prefix once the window slides; before that, everything earlier is.
    assert counted["cached_input"] == inputs[0] + inputs[1] + 3 * head
    assert counted["saving"] == {
        "left_out": blocks[0] * 3 + blocks[1] * 2 + blocks[2],
        "added": 0,
        "auxiliary": 0,
        "saved": counted["base_total"] - counted["total"],
    }


def test_model_calls_are_auxiliary_and_rules_are_local_work() -> None:
    trace = long_trace(3)
    timeline, turns = timeline_of(trace), turns_of(trace, "base")
    turns[1] = replace(turns[1], spent=(Spent("summary", 100, 20, "server"), Spent("features", 900, local=True, model="smol")))
    turns[2] = replace(turns[2], spent=(Spent("summary", 50, 10, "server"), Spent("router", 7, 3, "rule", local=True)))
    counted = totals(timeline, turns)
    assert (counted["aux_input"], counted["aux_output"]) == (150, 30)
    assert counted["auxiliary"] == {"summary": {"input": 150, "output": 30, "calls": {"server": 2}}}
    assert set(counted["local_work"]) == {"features", "router"}
    assert counted["if_called"]["auxiliary"] == 10 and counted["if_called"]["total"] == counted["total"] + 10
    assert counted["total"] == counted["base_total"] + 180


def test_repeated_calls_and_calls_without_usage_are_counted_and_no_tokens_are_invented_for_them() -> None:
    trace = long_trace(3)
    turns = turns_of(trace, "base")
    turns[1] = replace(turns[1], action="fallback", spent=(Spent("summary", 300, 60, "server", calls=4, unknown=1),))
    turns[2] = replace(turns[2], spent=(Spent("summary", 100, 20, "server"), Spent("router", 0, 0, "server", unknown=1)))
    counted = totals(timeline_of(trace), turns)
    assert counted["auxiliary"] == {
        "router": {"input": 0, "output": 0, "calls": {"server": 1}, "unknown_calls": 1},
        "summary": {"input": 400, "output": 80, "calls": {"server": 5}, "unknown_calls": 1},
    }
    assert (counted["aux_input"], counted["aux_output"]) == (400, 80)


def test_a_saving_that_does_not_add_up_is_refused() -> None:
    trace = long_trace(4)
    turns = turns_of(trace, "sliding-window:1")
    turns[3] = replace(turns[3], states="AAA")
    with pytest.raises(LedgerError, match=r"\d+ - \d+"):
        totals(timeline_of(trace), turns)


def test_recorded_usage_stands_beside_our_count() -> None:
    trace = long_trace(3)
    said = replace(trace, messages=tuple(replace(m, usage=Usage(1000, 50, 400)) if m.role == "assistant" else m for m in trace.messages))
    turns = turns_of(said, "base")
    recorded = totals(timeline_of(said), turns)["recorded"]
    assert recorded == {"kind": "recorded", "input": 3000, "output": 150, "cached": 1200, "turns_with_usage": 3}
    assert totals(timeline_of(trace), turns_of(trace, "base"))["recorded"] is None


def test_the_cached_part_is_the_longest_common_prefix() -> None:
    counter, sums = estimated().counter, [0, 10, 20, 30, 40]
    head = Item("prefix", 5)
    raw = [Item("blocks", 20, ((0, 2),)), Item("blocks", 30, ((0, 3),)), Item("blocks", 20, ((1, 3),))]
    assert cached_tokens([], [head], sums, counter) == 0
    assert cached_tokens([head, raw[0]], [head, raw[1]], sums, counter) == 25
    assert cached_tokens([head, raw[1]], [head, raw[2]], sums, counter) == 5
    one, two = (Item("recalled", 12, ((0, 1),), "m", text) for text in ("same start, end one", "same start, end two"))
    assert 5 + 6 <= cached_tokens([head, one, raw[0]], [head, two, raw[0]], sums, counter) < 5 + 12
    assert cached_tokens([head, one, raw[0]], [head, raw[0]], sums, counter) == 5


@given(shared=st.text(max_size=40), one=st.text(max_size=9), other=st.text(max_size=9))
def test_the_text_that_two_requests_start_with_is_found_to_the_character(shared: str, one: str, other: str) -> None:
    first, second = shared + one, shared + other
    found = common_start(first, second)
    assert first.startswith(found) and second.startswith(found) and len(found) >= len(shared)
    assert first[len(found) : len(found) + 1] != second[len(found) : len(found) + 1] or first == second
