"""A policy that acts on a running agent decides as it does in a replay, goes on after a stop, and forgets what was edited away."""

from pathlib import Path

import pytest

from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.acting import Acting
from pamer_lab.trajectory.values import Message, Trace
from tests.policies.rivals import SMALL_RIVALS
from tests.policies.test_rivals import repeating
from tests.runs.making import SMALL, resources_of, timeline_of, turns_of, untimed

POLICIES = ["base", "sliding-window:2", "pamer" + SMALL, "pamer+:inject=append" + SMALL, *SMALL_RIVALS[:4]]


def blocks_of(trace: Trace) -> tuple[list[Message], list[list[Message]]]:
    pieces = timeline_of(trace).pieces
    return list(trace.messages[: pieces.prefix_end]), [list(block.of(trace.messages)) for block in pieces.blocks]


@pytest.mark.parametrize("policy", POLICIES)
def test_turns_are_those_of_a_replay_and_a_stopped_session_goes_on(policy: str, tmp_path: Path) -> None:
    trace = repeating()
    prefix, blocks = blocks_of(trace)
    wanted = turns_of(trace, policy, workspace=tmp_path / "replay")
    resources = resources_of(tmp_path / "live")
    acting = Acting(parse_policy(policy), resources, trace.tools, prefix)
    for number, block in enumerate(blocks):
        if number == 7:
            resources.save()
            acting = Acting(parse_policy(policy), resources_of(tmp_path / "live"), trace.tools, acting.growing.messages, acting.turns)
        act = acting.decide()
        assert acting.decide().turn is act.turn, "asked again, it is not decided again"
        acting.add(block)
    assert [untimed(turn) for turn in acting.turns] == wanted


@pytest.mark.parametrize("policy", POLICIES)
def test_an_edited_history_is_decided_as_if_it_had_always_been_so(policy: str, tmp_path: Path) -> None:
    trace = repeating()
    prefix, blocks = blocks_of(trace)
    acting = Acting(parse_policy(policy), resources_of(tmp_path / "live"), trace.tools, prefix)
    for block in blocks[:9]:
        acting.decide()
        acting.add(block)
    acting.decide()
    other = [*blocks[:5], *blocks[10:]]
    history = [*prefix, *(message for block in other for message in block)]
    assert acting.follow(history) == 4
    acting.decide()
    edited = Trace("t", "t", "made", (*history, Message("assistant", "next")), trace.tools)
    acting.add([Message("assistant", "next")])
    assert [untimed(turn) for turn in acting.turns] == turns_of(edited, policy, workspace=tmp_path / "replay")


def test_a_history_that_only_grew_forgets_nothing_and_one_that_shrank_does() -> None:
    trace = repeating()
    prefix, blocks = blocks_of(trace)
    acting = Acting(parse_policy("base"), resources_of(), trace.tools, prefix)
    grown = list(prefix)
    for block in blocks[:4]:
        assert acting.follow(grown) == 0
        acting.decide()
        grown += block
    assert acting.follow(grown) == 0 and len(acting.turns) == 4
    acting.decide()
    assert acting.follow([*prefix, *blocks[0]]) == 3 and [turn.t for turn in acting.turns] == [0, 1]
    assert acting.follow([*prefix, *blocks[0], Message("user", "wait")]) == 1, "the current point has another history now"
