"""Every block in exactly one state, every token in exactly one item: for all policies, on random traces."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pamer_lab.decisions import Decision, Item, letters
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.ledger import LedgerError, check, expand
from pamer_lab.runs.recount import faults
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Trace
from tests.runs.making import PAMER, PLAIN, long_trace, timeline_of, turns_of
from tests.strategies import conversation

RULES = [":minimum=0:retained=1", ":minimum=30", ":minimum=0:retained=0:top=1"]


def traces() -> st.SearchStrategy[Trace]:
    """Random traces, incomplete blocks included."""
    found = conversation(complete=False, max_blocks=9).filter(lambda messages: any(message.role == "assistant" for message in messages))
    return found.map(lambda messages: Trace("t-random", "q", "random", tuple(messages)))


def assert_ledger(trace: Trace, turns: list[Turn]) -> None:
    """A recount that shares no code with the ledger, and what people see of it."""
    timeline = timeline_of(trace)
    assert faults(timeline, turns) == []
    for turn in turns:
        rows = expand(turn.items, timeline.block_tokens)
        assert sum(row["tokens"] for row in rows) == turn.active_tokens  # type: ignore[misc]
        assert [row["blocks"][0] for row in rows if row["kind"] == "block"] == [n for n, letter in enumerate(turn.states) if letter == "A"]  # type: ignore[index]
    counted = totals(timeline, turns)
    assert counted["main_input"] == sum(turn.active_tokens for turn in turns)
    assert counted["saving"]["saved"] == counted["base_total"] - counted["total"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trace=traces(), policy=st.sampled_from(PLAIN))
def test_the_ledger_adds_up_for_plain_policies_on_random_traces(trace: Trace, policy: str) -> None:
    assert_ledger(trace, turns_of(trace, policy))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trace=traces(), policy=st.sampled_from(PLAIN), data=st.data())
def test_the_future_changes_nothing_and_a_session_can_be_taken_up_anywhere(trace: Trace, policy: str, data: st.DataObject) -> None:
    turns = turns_of(trace, policy)
    cut = data.draw(st.integers(0, len(turns) - 1))
    end = timeline_of(trace).pieces.blocks[cut].start + 1
    shorter = Trace("t-random", "q", "random", trace.messages[:end])
    assert turns_of(shorter, policy) == turns[: cut + 1]
    assert turns_of(trace, policy, tuple(turns[:cut])) == turns


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memories")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    trace=traces(),
    policy=st.sampled_from(PAMER),
    rule=st.sampled_from([":minimum=0:retained=1", ":minimum=30", ":minimum=0:retained=0:top=1"]),
)
def test_the_ledger_adds_up_for_pamer_on_random_traces(folder: Path, trace: Trace, policy: str, rule: str) -> None:
    turns = turns_of(trace, policy + rule, workspace=folder)
    assert_ledger(trace, turns)
    # PaMER never loses a block: what is not shown is in memory.
    assert not any("." in turn.states for turn in turns)


def answer(*items: Item) -> Decision:
    head = timeline_of(long_trace(4)).at(3).head()
    return Decision("pass", "made", (*head, *items))


def test_wrong_answers_are_refused() -> None:
    history = timeline_of(long_trace(4)).at(3)
    (whole,) = history.raw([(0, 3)])
    first, second = history.raw([(0, 1), (1, 2)])
    check(answer(whole), history)
    wrong = {
        "out of order": answer(second, first),
        "doubled": answer(whole, first),
        "unknown": answer(replace(first, spans=((3, 4),))),
        "miscounted": answer(replace(whole, tokens=1)),
        "more than exist": answer(Item("summary", 5, ((2, 5),), "m", "text")),
        "in part of nothing": answer(Item("evidence", 5, ((0, 1),), "m", "text", in_part=(1,))),
        "a summary in part": answer(Item("summary", 5, ((0, 1),), "m", "text", in_part=(0,))),
        "no head": Decision("pass", "made", (whole,)),
        "an edited fallback": replace(answer(first), action="fallback"),
    }
    for given_answer in wrong.values():
        with pytest.raises(LedgerError, match=r"\b3\b"):
            check(given_answer, history)


def test_a_block_has_the_strongest_state_that_applies() -> None:
    history = timeline_of(long_trace(7)).at(6)
    texts = [
        Item("recalled", 5, ((0, 4),), "m1", "recalled"),
        Item("evidence", 5, ((1, 2),), "m1", "evidence"),
    ]
    made = Decision("recall", "made", (*history.head(), *texts, *history.raw([(2, 3), (4, 5)])), stored=((0, 4),))
    assert letters(made, 6) == "RXARA."


def test_a_prefix_only_trace_of_one_turn_has_an_empty_ledger() -> None:
    trace = Trace("t", "q", "made", (Message("user", "hi"), Message("assistant", "hello")))
    (turn,) = turns_of(trace, "base")
    assert turn.states == "" and turn.active_tokens == timeline_of(trace).prefix_tokens
