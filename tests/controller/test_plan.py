"""Which blocks a compression takes, all of them or a shorter range."""

import pytest

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller.plan import Plan, plan
from pamer_lab.controller.request import History
from pamer_lab.memory import SessionMemory
from tests.controller.world import history


def planned(turns: int, words: int = 150) -> Plan:
    request = History(MessageTokens(EstimatedCounter())).read(history(turns, words=words), None)
    return plan(request, SessionMemory("s"), 2)


def test_a_shorter_range_is_the_oldest_part_and_the_rest_stays_active() -> None:
    whole = planned(34)
    half = whole.shortened(1, 1024)
    assert half.old == whole.old[: len(half.old)] and half.waiting == whole.old[len(half.old) :]
    assert half.active == whole.active == tuple(range(34)) and half.retained == tuple(range(len(half.old), 34))
    assert half.candidate_tokens < 0.6 * whole.candidate_tokens
    assert half.tokens(half.retained) + half.candidate_tokens == whole.tokens(whole.active)


@pytest.mark.parametrize("minimum", [0, 1024, 100_000])
def test_ranges_shrink_to_the_minimum_and_then_start_again_with_everything(minimum: int) -> None:
    whole = planned(34)
    ranges = [whole.shortened(halvings, minimum) for halvings in range(12)]
    again = next((place for place in range(1, 12) if ranges[place].old == whole.old), 0)
    assert again and ranges[0].old == whole.old
    sizes = [len(shorter.old) for shorter in ranges[:again]]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] >= 1
    assert all(shorter.candidate_tokens >= min(minimum, whole.candidate_tokens) for shorter in ranges)
    assert (sizes[-1] == 1) == (minimum == 0)
