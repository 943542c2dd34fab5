"""`inject=append` and the priced gate in the live controller."""

import dataclasses
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.controller import ControllerSettings, FixedProbe, Votes
from pamer_lab.controller.gate import FULL, Gate
from pamer_lab.controller.pamer_plus import StepRecaller
from pamer_lab.controller.recall import OPENING
from pamer_lab.controller.recall_agent import QuotingAgent
from pamer_lab.controller.router import RouterQuery, Routing, SelectionRecord
from pamer_lab.decisions import blocks_of
from pamer_lab.memory import MemoryStore
from pamer_lab.prices import find_prices
from pamer_lab.storage import Database
from tests.controller.world import NO, YES, controller, history, turn

APPEND = ControllerSettings(inject="append", minimum_candidate_tokens=600)
PREFIX = 2
"""Messages before the first block."""
NEVER = 1_000_000
"""Turns, for a probe that votes for no further compression."""


class EveryProbe:
    """Votes for compression at every n-th turn."""

    name = "every"

    def __init__(self, n: int) -> None:
        self.n, self.asked = n, itertools.count(1)

    def vote(self, messages: Any, tools: Any, active_tokens: int) -> Votes:
        return Votes(YES if next(self.asked) % self.n == 0 else NO, (0.5,) * 5)


class TurningRouter:
    """Asks for two steps of the first memory, one of them new, and now and then for none."""

    name = "turning"

    def __init__(self) -> None:
        self.asked = itertools.count()

    def route(self, query: RouterQuery) -> Routing:
        number, memory = next(self.asked), query.memory.memories[0]
        steps = sorted({memory.steps[number // 2 % len(memory.steps)], memory.steps[0]})
        found = {"summary_ids": [memory.memory_id], "raw_steps_needed": steps, "goal": ""}
        return Routing(found if number % 5 else {"summary_ids": [], "raw_steps_needed": [], "goal": ""})


class Records:
    def __init__(self) -> None:
        self.kept: list[SelectionRecord] = []

    def record(self, record: SelectionRecord) -> None:
        self.kept.append(record)


def plus(folder: Path, records: Records) -> dict[str, Any]:
    store, counter = MemoryStore(Database(folder)), EstimatedCounter()
    agent = QuotingAgent(counter, max_tokens=2_000)
    return {"store": store, "recaller": StepRecaller(store, TurningRouter(), agent, counter, query_characters=900, recorder=records)}


def is_recalled(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith(OPENING)


def as_anthropic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation as Anthropic's API takes it: results are user content, neighbours of one role are one message."""
    made: list[dict[str, Any]] = []
    for message in messages[1:]:
        match message["role"]:
            case "assistant":
                calls = [{"type": "tool_use", "id": call["id"]} for call in message.get("tool_calls", [])]
                role, parts = "assistant", [{"type": "text", "text": message["content"]}, *calls]
            case "tool":
                role, parts = "user", [{"type": "tool_result", "tool_use_id": message["tool_call_id"]}]
            case _:
                role, parts = "user", [{"type": "text", "text": message["content"]}]
        if made and made[-1]["role"] == role:
            made[-1]["content"] += parts
        else:
            made.append({"role": role, "content": parts})
    return made


def check_shapes(messages: list[dict[str, Any]]) -> None:
    """Each call is answered right behind it, in OpenAI's shape and in Anthropic's."""
    for place, message in enumerate(messages):
        calls = {call["id"] for call in message.get("tool_calls", [])}
        answers = itertools.takewhile(lambda item: item["role"] == "tool", messages[place + 1 :])
        assert calls <= {item["tool_call_id"] for item in answers}
    for before, after in itertools.pairwise(as_anthropic(messages)):
        used = [part["id"] for part in before["content"] if part["type"] == "tool_use"]
        first = after["content"][: len(used)]
        assert [part.get("tool_use_id") for part in first] == used, "results come first in the user message behind a call"


@pytest.mark.parametrize("kind", ["pamer", "pamer+"])
def test_between_two_compressions_every_request_is_a_beginning_of_the_next(tmp_path: Path, kind: str) -> None:
    records = Records()
    made = controller(tmp_path, settings=APPEND, probe=EveryProbe(5), **(plus(tmp_path, records) if kind == "pamer+" else {}))
    before: list[dict[str, Any]] = []
    actions, inserted = [], 0
    for turns in range(1, 30):
        chat = history(turns)
        sent, decision = made.transform("s", chat)
        sent = list(sent)
        check_shapes(sent)
        assert decision.action != "fallback" and not decision.error
        if decision.action != "compress":
            assert sent[: len(before)] == before
        assert [message for message in sent if not is_recalled(message)] == [
            *chat[:PREFIX],
            *(message for number in _active(decision) for message in turn(number)),
        ]
        assert sum(item.tokens for item in decision.items) == decision.tokens_after
        shown = [item for item in decision.items if item.text]
        named = [item.source.split() if kind == "pamer" else blocks_of(item.spans) for item in shown]
        names = [name for entry in named for name in entry]
        assert len(names) == len(set(names)), "each memory or step once"
        inserted += decision.action == "recall"
        assert decision.action != "compress" or not shown, "an epoch ends with its compression"
        before, actions = sent, [*actions, decision.action]
    assert actions.count("compress") >= 3 and inserted >= 3 and actions.count("pass") > 3
    if kind == "pamer+":
        assert {record.outcome for record in records.kept} == {"accepted", "present", "empty"}
        again = [record for record in records.kept if record.outcome == "present"]
        assert all(record.steps and not record.cited_steps and not record.restored_tokens for record in again)


def _active(decision: Any) -> list[int]:
    return [number for item in decision.items if item.kind == "blocks" for number in range(*item.spans[0])]


def test_recall_waits_while_the_newest_block_has_an_open_call(tmp_path: Path) -> None:
    probe = EveryProbe(1)
    made = controller(tmp_path, settings=APPEND, probe=probe)
    for turns in (4, 5):
        _, compressed = made.transform("s", history(turns))
    assert compressed.action == "compress"
    probe.n = NEVER
    chat = [*history(6), turn(6)[0]]
    sent, decision = made.transform("s", chat)
    assert decision.action == "pass" and not any(map(is_recalled, sent)) and sent[-1] is chat[-1]
    sent, decision = made.transform("s", [*history(8)])
    assert decision.action == "recall" and is_recalled(list(sent)[-1])


def test_a_history_that_was_rewritten_keeps_no_memory_behind_the_old_blocks(tmp_path: Path) -> None:
    probe = EveryProbe(1)
    made = controller(tmp_path, settings=APPEND, probe=probe)
    made.transform("s", history(5))
    probe.n = NEVER
    sent, decision = made.transform("s", history(6))
    assert decision.action == "recall"
    chat = history(6)
    chat[-1]["content"] = "Something else."
    sent, decision = made.transform("s", chat)
    assert sum(map(is_recalled, sent)) == 1 and decision.action == "recall" and not decision.error


def test_a_session_goes_on_after_a_restart_as_if_there_had_been_none(tmp_path: Path) -> None:
    def work(folder: Path, restart: bool) -> list[str]:
        made, probe, requests = controller(folder, settings=APPEND, probe=(one := EveryProbe(5))), one, []
        for turns in range(1, 20):
            sent, decision = made.transform("s", history(turns))
            requests.append(json.dumps(list(sent), sort_keys=True))
            if restart:
                made = controller(folder, settings=APPEND, probe=probe)
                made.continue_with("s", decision.items)
        return requests

    assert work(tmp_path / "one", restart=False) == work(tmp_path / "two", restart=True)


GATE = Gate(prices="test", read=0.1, write=1.25, lifetime=300.0, horizon=20, window=0)


@pytest.mark.parametrize(
    ("removed", "behind", "turns"), [(1_000, 1_000, 10.5), (11_500, 1_000, 0.0), (100, 1_000, 114.0), (0, 0, 0.0), (5, 0, 0.0)]
)
def test_the_gate_counts_the_turns_until_an_edit_has_paid_back(removed: int, behind: int, turns: float) -> None:
    assert GATE.payback(removed, behind) == pytest.approx(turns)
    # Step by step: what is paid with the edit and without it, turn after turn.
    with_edit, without, after = GATE.write * behind, GATE.read * (removed + behind), 0
    while with_edit > without + 1e-9:
        with_edit, without, after = with_edit + GATE.read * behind, without + GATE.read * (removed + behind), after + 1
    assert after == pytest.approx(turns, abs=1)


def test_free_reads_and_prices_without_a_premium_divide_by_nothing() -> None:
    free = Gate("free", 0.0, 1.0, 300.0, 20, 0)
    assert not free.ask(removed=10, behind=10, tokens=30, idle=None).edit
    assert Gate("flat", 0.0, 0.0, 300.0, 20, 0).ask(removed=10, behind=10, tokens=30, idle=None).edit
    assert Gate.of(find_prices("no-cache"), horizon=0, window=0).ask(removed=1, behind=99, tokens=99, idle=0.0).edit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_appended_memory_counts_as_behind_the_edit_where_the_gate_knows_of_it() -> None:
    knows = dataclasses.replace(GATE, appended=True)
    sizes = {"removed": 1_000, "behind": 1_000, "tokens": 4_000}
    assert GATE.ask(**sizes, idle=None, appended=2_000).turns == GATE.ask(**sizes, idle=None).turns
    assert knows.ask(**sizes, idle=None, appended=2_000).turns == GATE.payback(1_000, 3_000)
    assert "appended" not in GATE.as_settings() and Gate(**knows.as_settings()) == knows and Gate(**GATE.as_settings()) == GATE


def test_the_gate_waits_says_so_and_edits_when_the_cache_is_cold(tmp_path: Path) -> None:
    clock = Clock()
    gate = Gate("test", 0.1, 1.25, 300.0, 3, 0)
    settings = ControllerSettings(minimum_candidate_tokens=100)
    made = controller(tmp_path, settings=settings, probe=FixedProbe(YES), gate=gate, clock=clock)
    made.transform("s", history(2))
    clock.now += 299
    _, warm = made.transform("s", history(3))
    behind = sum(item.tokens for item in warm.items if item.kind == "blocks") - warm.candidate_tokens
    turns = math.ceil(gate.payback(warm.candidate_tokens, behind))
    assert warm.action == "pass" and sum(warm.votes) == 5 and turns > 20
    assert {"5 of 5", f"{turns} turns", "horizon 3"} <= {text for text in ("5 of 5", f"{turns} turns", "horizon 3") if text in warm.reason}
    clock.now += 601
    _, cold = made.transform("s", history(3))
    assert cold.action == "compress"


def test_the_gate_edits_once_enough_has_gathered_or_the_window_is_nearly_full(tmp_path: Path) -> None:
    def first(gate: Gate, folder: str) -> int:
        made = controller(tmp_path / folder, settings=ControllerSettings(minimum_candidate_tokens=100), probe=FixedProbe(YES), gate=gate)
        return next(turns for turns in range(1, 60) if made.transform("s", history(turns), idle=1.0)[1].action == "compress")

    near, far, full = first(Gate("t", 0.1, 1.25, 300.0, 3, 0), "near"), first(Gate("t", 0.1, 1.25, 300.0, 30, 0), "far"), 9_000
    assert far == 3 < near, "a longer horizon edits earlier"
    pressed = first(Gate("t", 0.0, 1.25, 300.0, 3, full), "full")
    tokens = controller(tmp_path / "n", probe=FixedProbe(NO)).transform("s", history(pressed))[1].tokens_before
    assert FULL * full <= tokens < full
