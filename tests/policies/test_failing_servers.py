"""Every policy that writes summaries or asks, with a server that fails at some turns: the run goes on, every call is paid for, and a run
that was stopped anywhere goes on as if it had not been."""

import dataclasses
import json
from typing import Any

import pytest

from pamer_lab.errors import ModelError
from pamer_lab.memory.llm_summary import LlmSummariser
from pamer_lab.models.chat import ChatAnswer, ChatUsage
from pamer_lab.models.usage import set_usage
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.recount import faults
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Turn
from tests.policies.rivals import SMALL_RIVALS
from tests.runs.making import PARTS, call, make_trace, resources_of, timeline_of, untimed

DOWN, SHAKY = {3, 4}, {5, 8}
"""Turns at which every call fails, and turns at which every second one does."""
TRACE = make_trace(
    [call(n, f"q{n}", f"Document D{n:04d} " + " ".join(f"word{n * 7 + k}" for k in range(60))) for n in range(10)]
    + [call(10, "the word3 of D0000 again", "D0000 says word3"), call(11, "end", "none")],
    trace_id="t-failing",
)
POLICIES = [
    *(name for name in SMALL_RIVALS if "summariser" in parse_policy(name).needs),
    "sam:500:page=200:read=pages",
    "periodic-summary:2",
    "periodic-summary:2:accumulate:keep=0",
    "selfcompact:2:window=6000",
    "sculptor:every=2:keep=1",
    "self-gc:window=1500:payback=50",
]


class Flaky:
    """Answers in a few words or, to a schema, as the policies like it; at some turns calls fail."""

    name = "flaky"

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.calls: list[int] = []
        """The turn of each call."""

    def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> ChatAnswer:
        self.calls.append(self.turn)
        usage = ChatUsage(100, 10, "measured")
        if self.turn in DOWN or (self.turn in SHAKY and self.calls.count(self.turn) % 2 == 0):
            error = ModelError("no answer")
            set_usage(error, usage)
            raise error
        points = {"closed_unit": True, "summarisable": True, "progress": True, "stuck": False, "evidence": "D0001"}
        operation = "fold" if "fold" in str(schema) else "hide"
        plan = {"operations": [{"step": step, "operation": operation, "summary": ""} for step in range(12)]}
        return ChatAnswer(json.dumps(points if "closed_unit" in str(schema) else plan) if schema else "a few words", usage)


def played(policy: str, monkeypatch: pytest.MonkeyPatch, known: tuple[Turn, ...] = ()) -> tuple[list[Turn], Flaky]:
    chat = Flaky(len(known))
    monkeypatch.setattr(RunResources, "chat", property(lambda self: chat))
    resources = resources_of(parts=dataclasses.replace(PARTS, summariser=LlmSummariser(chat, max_tokens=200, retries=0)))
    turns = [*known]
    for turn in replay_turns(timeline_of(TRACE), parse_policy(policy), resources, known):
        turns.append(untimed(turn))
        chat.turn += 1
    return turns, chat


@pytest.mark.parametrize("policy", POLICIES)
def test_a_failure_stops_no_run_and_every_call_is_paid_for_at_its_turn(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, chat = played(policy, monkeypatch)
    assert faults(timeline_of(TRACE), turns) == [] and chat.calls
    paid = [turn.t for turn in turns for entry in turn.spent for _ in range(entry.calls) if not entry.local]
    assert paid == chat.calls


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_goes_on_after_a_failure_as_if_it_had_never_stopped(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complete, _ = played(policy, monkeypatch)
    # PACE has its forms written again where it goes on, so it can only go on where the server answers.
    for cut in sorted({*range(len(complete))} - (DOWN | SHAKY if policy.startswith("pace") else set())):
        assert played(policy, monkeypatch, tuple(complete[:cut]))[0] == complete, cut
