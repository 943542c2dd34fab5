"""Which blocks a compression takes, all of them or a shorter range."""

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller.plan import halved, plan
from pamer_lab.controller.request import History
from pamer_lab.memory import SessionMemory
from tests.controller.world import history


def test_a_shorter_range_is_the_oldest_part_and_the_rest_stays_active() -> None:
    request = History(MessageTokens(EstimatedCounter())).read(history(34), None)
    everything = plan(request, SessionMemory("s"), 2)
    half = everything.shortened(1)
    assert half.old == tuple(range(16)) and half.waiting == tuple(range(16, 32)) and half.recent == (32, 33)
    assert half.active == everything.active == tuple(range(34)) and half.retained == tuple(range(16, 34))
    assert half.tokens(half.retained) + half.candidate_tokens == everything.tokens(everything.active)
    assert half.left_out(half.retained) == ((0, 16),)


def test_lengths_shrink_to_one_and_then_start_again_with_everything() -> None:
    assert [halved(37, halvings) for halvings in range(8)] == [37, 18, 9, 4, 2, 1, 37, 18]
    assert [halved(1, halvings) for halvings in range(3)] == [1, 1, 1]
