"""Odd traces through every rival: requests keep calls and results together, and nothing after a turn matters to it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from pamer_lab.policies.rebuilt import rebuilt
from pamer_lab.runs.recount import faults
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace
from tests.policies.rivals import SMALL_RIVALS
from tests.runs.making import PLAIN, estimated, timeline_of, turns_of

TURNS = 8
BIG = " ".join(f"Doc{n} word{n * 3}" for n in range(80))
POLICIES = [*PLAIN, *SMALL_RIVALS]


def acts(*calls: str, said: str = "next", arguments: str = "{}") -> Message:
    return Message("assistant", said, tuple(ToolCall(name, "read", arguments) for name in calls))


def result(name: str, text: str = BIG) -> Message:
    return Message("tool", text, tool_call_id=name)


def parallel(n: int) -> list[Message]:
    return [acts(f"a{n}", f"b{n}", f"c{n}"), result(f"a{n}"), result(f"b{n}", f"short {n}"), result(f"c{n}")]


def out_of_order(n: int) -> list[Message]:
    return [acts(f"a{n}", f"b{n}"), result(f"b{n}"), result(f"a{n}", "asked first")]


def late(n: int) -> list[Message]:
    """The result of one step comes after the next one has begun."""
    return [acts(f"a{n}"), acts(f"b{n}"), result(f"b{n}"), result(f"a{n}")]


def partly_answered(n: int) -> list[Message]:
    return [acts(f"a{n}", f"b{n}"), result(f"a{n}"), *([result(f"b{n}")] if n % 3 else [])]


def unanswered(n: int) -> list[Message]:
    return [acts(f"a{n}", said=BIG)]


def empty(n: int) -> list[Message]:
    return [acts(f"a{n}", said="", arguments=""), result(f"a{n}", "" if n % 2 else BIG)]


def in_text(n: int) -> list[Message]:
    return [acts(said=f"I say {n}"), Message("user", BIG)]


def with_reminders(n: int) -> list[Message]:
    return [acts(f"a{n}"), result(f"a{n}"), Message("system", f"reminder {n} {BIG}"), Message("user", "go on")]


def same_ids(n: int) -> list[Message]:
    return [acts("x"), replace(result("x", f"{BIG} {n}"), error=n % 4 == 0)]


KINDS: list[Callable[[int], list[Message]]] = [
    parallel,
    out_of_order,
    late,
    partly_answered,
    unanswered,
    empty,
    in_text,
    with_reminders,
    same_ids,
]
START = (Message("system", "s"), Message("user", "task"))
TRACES = {kind.__name__: (*START, *(message for n in range(TURNS) for message in kind(n))) for kind in KINDS}
TRACES |= {
    "one_turn": (*START, acts(said="done")),
    "only_an_answer": (acts(said="done"),),
    "no_task": tuple(message for n in range(TURNS) for message in parallel(n)),
}


def apart(messages: Sequence[Message]) -> int:
    """Results without a call of the last answer before them, and calls that the next answer finds open."""
    found = 0
    waiting: list[str] = []
    for message in messages:
        if message.role == "assistant":
            found, waiting = found + len(waiting), [call.id for call in message.tool_calls]
        elif message.role == "tool" and message.tool_call_id in waiting:
            waiting.remove(message.tool_call_id)
        else:
            found += message.role == "tool"
    return found + len(waiting)


@pytest.mark.parametrize("kind", TRACES)
def test_calls_and_results_stay_together_and_the_future_changes_nothing(kind: str) -> None:
    trace = Trace(kind, kind, "made", TRACES[kind], (Tool("read", "reads"),))
    line, tokens = timeline_of(trace), estimated()
    at = line.turns // 2
    later = (acts("q", said=BIG), result("q", "Doc5 " * 90), acts("r"))
    other = replace(trace, messages=(*trace.messages[: line.pieces.blocks[at].start], *later))
    for policy in POLICIES:
        turns = turns_of(trace, policy, workspace=Path("unused"))
        assert faults(line, turns) == [], policy
        for turn in turns:
            history = line.at(turn.t)
            request = rebuilt(turn, history)
            assert apart(request) <= apart(history.messages), (policy, turn.t)
            assert tokens.total(request) + line.tools_tokens == turn.active_tokens, (policy, turn.t)
        assert turns_of(trace, policy, tuple(turns[:at])) == turns, policy
        before, after = ([replace(turn, output_tokens=0) for turn in found[: at + 1]] for found in (turns, turns_of(other, policy)))
        assert before == after, policy
