"""What every rival policy must do: resume anywhere, see nothing of the future, keep the tool protocol, and account for every block."""

import random

import pytest
from msgspec.structs import replace

from pamer_lab.policies.registry import POLICIES, describe_policies, parse_policy
from pamer_lab.runs.recount import faults
from pamer_lab.trajectory.values import Trace
from tests.policies.rivals import SMALL_RIVALS
from tests.runs.making import call, long_trace, make_trace, timeline_of, turns_of

TURNS = 14
ELSEWHERE = {"acm", "self-gc", "selfcompact", "sculptor", "llmlingua-2", "swe-pruner"}
"""Rivals that need recorded calls, a chat model or weights: tried in `test_methods.py`, `test_sculptor.py` and `test_weights.py`."""


def repeating() -> Trace:
    """Searches of different sizes, one of them large, every fourth of them asked again."""
    blocks = [
        call(
            n,
            f"clue {n % 4}",
            f"Document D{n:04d} of {1900 + n}:\n"
            + "\n".join(f"word{n * 7 + k} D{n:04d}" for k in range(900 if n == 6 else 10 + 15 * (n % 3))),
        )
        for n in range(TURNS)
    ]
    return make_trace(blocks, trace_id="t-repeating")


@pytest.mark.parametrize("policy", SMALL_RIVALS)
def test_a_rival_acts_and_every_turn_adds_up(policy: str) -> None:
    trace = repeating()
    turns = turns_of(trace, policy)
    assert faults(timeline_of(trace), turns) == []
    assert any(turn.active_tokens < turn.raw_tokens for turn in turns), "the parameters are such that it acts"


@pytest.mark.parametrize("policy", SMALL_RIVALS)
def test_a_rival_goes_on_after_any_turn_as_if_it_had_never_stopped(policy: str) -> None:
    complete = turns_of(repeating(), policy)
    for known in range(TURNS):
        assert turns_of(repeating(), policy, tuple(complete[:known])) == complete


@pytest.mark.parametrize("policy", SMALL_RIVALS)
def test_a_rival_sees_nothing_of_the_future(policy: str) -> None:
    trace, at = repeating(), 9
    start = timeline_of(trace).pieces.blocks[at].start
    blocks = [block.of(trace.messages) for block in timeline_of(trace).pieces.blocks[at:]]
    random.Random(4).shuffle(blocks)
    other = replace(trace, messages=(*trace.messages[:start], *(message for block in blocks for message in block)))
    ours, theirs = turns_of(trace, policy)[: at + 1], turns_of(other, policy)[: at + 1]
    # The recorded answer of turn `at` is the future too.
    assert [replace(turn, output_tokens=0) for turn in ours] == [replace(turn, output_tokens=0) for turn in theirs]


@pytest.mark.parametrize("policy", SMALL_RIVALS)
def test_a_rivals_name_is_read_back_as_itself(policy: str) -> None:
    assert parse_policy(parse_policy(policy).name) == parse_policy(policy)


def test_every_rival_is_tried_here_and_looks_like_no_other() -> None:
    tried = {name.partition(":")[0] for name in SMALL_RIVALS}
    told = {entry["name"]: entry for entry in describe_policies() if entry["family"] in ("host", "method", "pruning")}
    assert tried == set(told) - ELSEWHERE
    families = {entry["family"] for entry in told.values()}
    looks = [(kind.look.colour, kind.look.dash) for kind in POLICIES.values() if kind.family in families]
    assert len(looks) == len(set(looks)), "no two lines of a family look alike"


def test_short_traces_pass_through_at_the_published_settings() -> None:
    trace = long_trace(6)
    base = [turn.active_tokens for turn in turns_of(trace, "base")]
    for name in (
        "auto-compact",
        "observation-masking",
        "masking-summary",
        "keep-last-tokens",
        "truncate-results",
        "dedupe-reads",
        "sam",
        "memgpt",
    ):
        assert [turn.active_tokens for turn in turns_of(trace, name)] == base, name
