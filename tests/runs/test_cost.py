import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.decisions import Spent
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.runs.cost import FREE, NO_TIMES, RunCost, run_cost
from pamer_lab.runs.prefix_cache import Key, PrefixTree, rendered
from pamer_lab.runs.timeline import Timeline, lay_out, request_times
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Run, RunInfo, Turn
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, call, long_trace, make_trace

POLICIES = ["base", "sliding-window:2", "periodic-summary:2", f"pamer{SMALL}", f"pamer+{SMALL}"]
NEUTRAL = PriceTable(
    name="test", uncached=1.0, read=0.1, write=1.25, output=5.0, minimum_tokens=0, granularity_tokens=1, lifetime_seconds=300
)


class ByteCounter:
    """A token is a byte, so that what a provider sees can be compared to the byte."""

    name, kind, adds_up_by_line = "bytes", "measured", True

    def count(self, texts: list[str]) -> list[int]:
        return [len(text.encode()) for text in texts]


COUNTER = ByteCounter()


@dataclass
class Provider:
    """A provider that keeps every request's bytes in a tree, with the time each was last sent, and bills by it."""

    prices: PriceTable
    root: dict[int, "Node"] = field(default_factory=dict)
    ledger: list[tuple[int, int, int]] = field(default_factory=list)
    """Read, write and uncached, request by request."""

    def send(self, body: bytes, now: float) -> None:
        prices, children, found = self.prices, self.root, 0
        for byte in body:
            node = children.get(byte)
            if node is None or not now - node.used <= prices.lifetime_seconds or not prices.lifetime_seconds:
                break
            found, children = found + 1, node.children
        read, kept = self._stored(found), self._stored(len(body))
        self.ledger.append((read, kept - read, len(body) - kept))
        children = self.root
        for byte in body:
            node = children.setdefault(byte, Node())
            node.used, children = now, node.children

    def _stored(self, length: int) -> int:
        size = self.prices.granularity_tokens
        full = length // size * size
        return full if full >= self.prices.minimum_tokens and self.prices.lifetime_seconds else 0


@dataclass(slots=True)
class Node:
    used: float = 0.0
    children: dict[int, "Node"] = field(default_factory=dict)


def replayed(trace: Trace, policy: str, folder: Path) -> tuple[Run, Timeline]:
    tokens = MessageTokens(COUNTER)  # type: ignore[arg-type]
    factory = Factory(load_profile("embedded"), Workspace(folder), "cpu", parts=dataclasses.replace(PARTS, tokens=tokens))
    timeline = lay_out(trace, tokens)
    turns = list(replay_turns(timeline, parse_policy(policy), RunResources(factory, "session")))
    return run_of(turns, timeline, policy), timeline


def run_of(turns: list[Turn], timeline: Timeline, policy: str) -> Run:
    names = {"run_id": "r", "trace_id": "t", "question_id": "q", "task_id": "", "policy": policy, "profile": "embedded", "settings": {}}
    sizes = {"prefix_tokens": timeline.prefix_tokens, "tools_tokens": timeline.tools_tokens, "block_tokens": tuple(timeline.block_tokens)}
    count = len(turns)
    return Run(RunInfo(**names, tokenizer="bytes", tokens_kind="measured", turns=count, trace_turns=count, **sizes), tuple(turns))  # type: ignore[arg-type]


def body_of(turn: Turn, timeline: Timeline) -> bytes:
    """A request as its bytes."""
    trace, pieces, parts = timeline.trace, timeline.pieces, []
    for item in turn.items:
        match item.kind:
            case "tools":
                parts.append(render_tools(trace.tools))
            case "prefix":
                parts += [render_message(message) for message in trace.messages[: pieces.prefix_end]]
            case "blocks":
                blocks = pieces.blocks[slice(*item.spans[0])]
                parts += [render_message(message) for block in blocks for message in block.of(trace.messages)]
            case _:
                parts.append(rendered(item))
    return "".join(parts).encode()


def at_times(trace: Trace, gaps: list[float]) -> Trace:
    """The trace with a timestamp on every message; `gaps` are the seconds before each turn, over and over."""
    now, turn, stamped = 1_000.0, 0, []
    for message in trace.messages:
        if message.role == "assistant":
            turn += 1
        elif message.role == "tool":
            now += gaps[turn % len(gaps)]
        stamped.append(replace(message, at=now))
    return replace(trace, messages=tuple(stamped))


TIMES: dict[Literal["quick", "slow", "none"], list[float]] = {"quick": [5.0], "slow": [10.0, 40.0, 400.0, 299.0], "none": []}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("gaps", TIMES)
@pytest.mark.parametrize(
    "changes",
    [{}, {"granularity_tokens": 128, "minimum_tokens": 1024}, {"minimum_tokens": 3_000}, {"lifetime_seconds": 0}, {"lifetime_seconds": 41}],
)
def test_the_model_bills_what_a_provider_with_a_real_prefix_tree_bills(
    tmp_path: Path, policy: str, gaps: Literal["quick", "slow", "none"], changes: dict[str, int]
) -> None:
    prices = replace(NEUTRAL, **changes)
    trace = long_trace(14, words=8)
    trace = at_times(trace, TIMES[gaps]) if TIMES[gaps] else trace
    run, timeline = replayed(trace, policy, tmp_path)
    cost = run_cost(run, prices, timeline, COUNTER)  # type: ignore[arg-type]
    times = request_times(trace, len(run.turns)) or (0.0,) * len(run.turns)
    provider = Provider(prices)
    for turn in run.turns:
        provider.send(body_of(turn, timeline), times[turn.t])
    assert [(turn.read, turn.write, turn.uncached) for turn in cost.turns] == provider.ledger
    base = Provider(prices)
    for t in range(len(run.turns)):
        end = timeline.pieces.blocks[t].start
        body = render_tools(trace.tools) + "".join(render_message(message) for message in trace.messages[:end])
        base.send(body.encode(), times[t])
    output = sum(turn.output_tokens for turn in run.turns) * prices.output
    expected = sum(read * prices.read + write * prices.write + rest * prices.uncached for read, write, rest in base.ledger) + output
    assert cost.base_total == pytest.approx(expected / 1e6)
    assert cost.vs_base == pytest.approx(cost.total / cost.base_total)
    assert (policy != "base") or cost.vs_base == pytest.approx(1.0)


def test_a_request_that_comes_back_is_read_although_the_one_between_was_different(tmp_path: Path) -> None:
    run, timeline = replayed(long_trace(4), "base", tmp_path)
    first, window = run.turns[3], replace(run.turns[3], items=(*run.turns[3].items[:2], *run.turns[3].items[3:]))
    shorter = replace(window, active_tokens=sum(item.tokens for item in window.items))
    again = Run(run.head, tuple(replace(turn, t=t) for t, turn in enumerate((first, shorter, first))))
    assert run_cost(again, NEUTRAL, timeline).turns[2].read == first.active_tokens


def test_blocks_with_the_same_text_are_the_same_bytes(tmp_path: Path) -> None:
    trace = make_trace([call(0, "door", "closed") for _ in range(4)])
    run, timeline = replayed(trace, "sliding-window:1", tmp_path)
    provider = Provider(NEUTRAL)
    for turn in run.turns:
        provider.send(body_of(turn, timeline), 0.0)
    assert [turn.read for turn in run_cost(run, NEUTRAL, timeline).turns] == [read for read, _, _ in provider.ledger]


def test_a_piece_that_is_the_start_of_another_shares_what_was_sent_behind_it_too() -> None:
    """A cache sees bytes: where a message ends is nothing to it."""
    texts = {("text", "a"): "abc", ("text", "b"): "abcdef", ("text", "c"): "dexyz", ("text", "d"): "defg", ("text", "e"): "ab"}
    one, longer, rest, end, start = ((key, len(text)) for key, text in texts.items())

    def shared(*requests: list[tuple[Key, int]]) -> int:
        tree = PrefixTree(texts.__getitem__, lambda text, whole, tokens: len(text), lifetime=300)
        return [tree.send(request, at) for at, request in enumerate(requests)][-1]

    assert shared([one, rest], [longer]) == 5 == shared([longer], [one, rest])
    assert shared([one, end], [longer, rest]) == 6 and shared([start], [longer]) == 2
    assert shared([start, rest], [one, rest], [longer, rest]) == 5, "of two starts the one that goes on"
    assert shared([one, rest], [start], [longer]) == 5


def costed(folder: Path, policy: str, prices: PriceTable = NEUTRAL, trace: Trace | None = None) -> RunCost:
    run, timeline = replayed(trace or long_trace(8), policy, folder)
    return run_cost(run, prices, timeline, COUNTER)  # type: ignore[arg-type]


def test_thousands_of_messages_sent_again_under_other_names_are_read() -> None:
    texts = [f"user\nmessage {number}\n" for number in range(3_000)]
    tree = PrefixTree(lambda key: texts[key[1]] if isinstance(key[1], int) else key[1], lambda start, text, tokens: tokens, lifetime=300)
    tree.send([(("block", number), 5) for number in range(len(texts))], None)
    assert tree.send([(("text", text), 5) for text in texts], None) == 5 * len(texts)


def test_auxiliary_calls_are_billed_and_what_rules_did_only_as_an_estimate(tmp_path: Path) -> None:
    run, timeline = replayed(long_trace(3), "base", tmp_path)
    spent = (Spent("summary", 1000, 100, "server"), Spent("summary", 7000, 10, "rule", local=True), Spent("features", 9, local=True))
    run = replace(run, turns=(run.turns[0], replace(run.turns[1], spent=spent), run.turns[2]))
    cost = run_cost(run, NEUTRAL, timeline).as_json()
    assert cost["auxiliary"] == pytest.approx((1000 * 1.0 + 100 * 5.0) / 1e6)
    assert cost["if_called"]["total"] - cost["total"] == pytest.approx((7000 * 1.0 + 10 * 5.0) / 1e6)
    assert cost["total"] == pytest.approx(sum(cost[name] for name in ("read", "write", "uncached", "output", "auxiliary")))


def test_a_call_within_the_main_requests_cache_is_billed_as_read_where_there_is_a_cache(tmp_path: Path) -> None:
    run, timeline = replayed(long_trace(2), "base", tmp_path)
    run = replace(run, turns=(run.turns[0], replace(run.turns[1], spent=(Spent("router", 1000, 60, "server", cached=True),))))
    assert run_cost(run, NEUTRAL, timeline).parts["auxiliary"] == pytest.approx((1000 * 0.1 + 60 * 5.0) / 1e6)
    without = replace(NEUTRAL, lifetime_seconds=0.0)
    assert run_cost(run, without, timeline).parts["auxiliary"] == pytest.approx((1000 * 1.0 + 60 * 5.0) / 1e6)


def test_a_trace_without_time_stamps_says_so_once_and_one_without_a_cache_need_not(tmp_path: Path) -> None:
    assert costed(tmp_path, "base").notes == [NO_TIMES]
    assert costed(tmp_path, "base", replace(NEUTRAL, lifetime_seconds=0)).notes == []
    timed = costed(tmp_path, "base", trace=at_times(long_trace(8), [5.0]))
    assert timed.timed and timed.notes == []


def test_a_cache_of_one_request_costs_as_much_or_more_and_as_much_where_requests_only_grow(tmp_path: Path) -> None:
    one = [("window", costed(tmp_path / "w", "sliding-window:2")), ("base", costed(tmp_path / "b", "base"))]
    assert all(cost.previous_only >= cost.total - 1e-12 for _, cost in one)
    assert one[1][1].previous_only == pytest.approx(one[1][1].total) == pytest.approx(one[1][1].base_total)
    uncached = costed(tmp_path / "n", "base", find_prices("no-cache"))
    assert uncached.previous_only == pytest.approx(uncached.total)


def test_a_table_of_zeros_gives_no_ratio_and_says_why(tmp_path: Path) -> None:
    free = replace(NEUTRAL, uncached=0.0, read=0.0, write=0.0, output=0.0)
    cost = costed(tmp_path, "sliding-window:2", free)
    assert cost.vs_base is None and cost.total == 0 and FREE in cost.notes and cost.as_json()["if_called"]["vs_base"] is None


def test_an_empty_run_costs_nothing() -> None:
    timeline = lay_out(make_trace([]), MessageTokens(COUNTER))  # type: ignore[arg-type]
    cost = run_cost(run_of([], timeline, "base"), NEUTRAL, timeline)
    assert cost.total == 0 and cost.vs_base is None and cost.expensive() == [] and cost.uncached_share == 0


def test_times_never_run_backwards_and_gaps_in_them_are_filled() -> None:
    trace = at_times(long_trace(4), [5.0])
    messages = list(trace.messages)
    messages[3] = replace(messages[3], at=None)
    messages[5] = replace(messages[5], at=1.0)
    times = request_times(replace(trace, messages=tuple(messages)), 4)
    assert len(times) == 4 and list(times) == sorted(times) and times[0] == 1_000.0
    assert request_times(long_trace(4), 4) == ()


def test_rewritten_tokens_are_those_the_previous_request_had_behind_the_edit(tmp_path: Path) -> None:
    cost = costed(tmp_path, "sliding-window:2")
    _, timeline = replayed(long_trace(8), "sliding-window:2", tmp_path)
    sizes = timeline.block_tokens
    # From turn 3 on the oldest of two blocks leaves, and the other one is sent again behind the gap.
    assert all(turn.rewritten > 0 for turn in cost.turns[3:]) and all(turn.rewritten <= sizes[turn.t - 2] for turn in cost.turns[3:])
    assert all(turn.rewritten == 0 for turn in costed(tmp_path, "base").turns)
    assert cost.expensive(3) == sorted(cost.turns, key=lambda turn: -sum(turn.money(NEUTRAL).values()))[:3]


def test_the_chart_of_a_run_stacks_what_was_billed_and_marks_its_edits(tmp_path: Path) -> None:
    from pamer_lab.figures.cost import cost_per_turn

    run, timeline = replayed(long_trace(14, words=8), f"pamer{SMALL}", tmp_path)
    cost = run_cost(run, NEUTRAL, timeline, COUNTER)  # type: ignore[arg-type]
    drawn = cost_per_turn(run, cost)
    bars = [trace for trace in drawn.data if trace.type == "bar"]
    assert sum(sum(trace.y) for trace in bars) == pytest.approx(cost.total)
    marked = {t: again for trace in drawn.data if trace.type == "scatter" for t, again in zip(trace.x, trace.customdata, strict=True)}
    assert marked == {turn.t: cost.turns[turn.t].rewritten for turn in run.turns if turn.action != "pass"}
