"""Published methods, on histories where the right answer follows from their description."""

import dataclasses
import json
from collections.abc import Sequence

import pytest

from pamer_lab.decisions import blocks_of
from pamer_lab.errors import InputError
from pamer_lab.models.chat import ChatAnswer, ChatUsage
from pamer_lab.models.embedder import HashingEmbedder, Matrix
from pamer_lab.policies import lre
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.trajectory import read_traces
from pamer_lab.trajectory.values import Message, ToolCall
from tests.conftest import PROJECT
from tests.runs.making import PARTS, call, make_trace, resources_of, turns_of

LONG = "\n".join(f"line {number} with some words" for number in range(40))
# A block of this trace has about 300 tokens by the estimate.
TRACE = make_trace([call(n, f"q{n}", f"Fact F{n:03d} is here. {LONG}") for n in range(12)])


def test_acon_compresses_everything_but_the_last_turn_once_it_is_over_the_limit() -> None:
    turns = turns_of(TRACE, "acon:700")
    assert [turn.states for turn in turns[:5]] == ["", "A", "AA", "AAA", "SSSA"], "two older blocks are within 700 tokens, three are not"
    assert all(sum(item.kind == "summary" for item in turn.items) <= 1 for turn in turns)
    added = turns_of(TRACE, "acon:700:rule=accumulate")
    assert sum(item.kind == "summary" for item in added[11].items) == 3


def test_acon_rewrites_large_observations_as_they_arrive() -> None:
    trace = make_trace(
        [call(0, "q", "small"), call(1, "q", " ".join(f"Entry E{n:04d} lists a town." for n in range(900))), call(2, "q", "small")]
    )
    turns = turns_of(trace, "acon-observation:1024")
    assert [turn.states for turn in turns] == ["", "A", "AS"]
    assert turns[2].spent[0].operation == "summary" and turns[2].items[-1].tokens < 1_200


def test_comem_starts_a_summary_every_k_steps_and_uses_it_one_step_later() -> None:
    turns = turns_of(TRACE, "comem:4")
    # Step 3 is the first with (s + 1) mod 4 = 0: its summary covers the steps before it and is there at step 4.
    assert [turn.states for turn in turns] == [
        *("", "A", "AA", "AAA", "SSSA", "SSSAA", "SSSAAA", "SSSAAAA"),
        *"SSSSSSSA SSSSSSSAA SSSSSSSAAA SSSSSSSAAAA".split(),
    ]
    assert [turn.t for turn in turns if turn.action == "compress"] == [4, 8]
    assert turns[8].spent[0].input_tokens > 2 * turns[4].spent[0].input_tokens, "each summary is written from all raw steps"


def test_memgpt_keeps_the_newest_thirty_percent_of_the_messages() -> None:
    turns = turns_of(TRACE, "memgpt:2000")
    first = next(turn for turn in turns if turn.action == "compress")
    assert turns[first.t - 1].active_tokens <= 2_000 < first.raw_tokens
    # Prefix of 2 messages and 2 a block: the first kept message is the assistant's at or after round(0.7 n).
    n = 2 + 2 * first.t
    start = round(0.7 * n)
    kept = next(block for block in range(first.t) if 2 + 2 * block >= start)
    assert first.states == "S" * kept + "A" * (first.t - kept)


def test_sam_flushes_everything_into_pages_and_keeps_a_cue_for_each() -> None:
    turns = turns_of(TRACE, "sam:1300:page=700")
    first = next(turn for turn in turns if turn.action == "compress")
    assert set(first.states) == {"S"} and turns[first.t - 1].active_tokens <= 1_300
    cues = [item for item in first.items if item.kind == "summary"]
    assert [blocks_of(item.spans) for item in cues] == [[0, 1], [2, 3], [4]], "two blocks of 300 tokens fit one page of 700"


def test_sam_reads_the_page_that_the_agent_comes_back_to() -> None:
    blocks = [call(n, f"q{n}", f"Fact F{n:03d} is here. {LONG}") for n in range(5)]
    trace = make_trace([*blocks, call(5, "what was F001", "nothing found"), call(6, "next", "nothing")])
    turn = turns_of(trace, "sam:1300:page=700:read=pages")[6]
    assert turn.action == "recall" and turn.restored_steps == (0, 1)
    assert turns_of(trace, "sam:1300:page=700")[6].action == "pass"


def managed(number: int, result: str, *, error: bool = False) -> list[Message]:
    asked = ToolCall(f"m{number}", "manage_context", "{}")
    return [Message("assistant", "", (asked,)), Message("tool", result, tool_call_id=f"m{number}", error=error)]


def test_acm_replays_the_agents_own_calls_and_nothing_else() -> None:
    blocks = [call(0, "a", "one"), call(1, "b", "two"), managed(2, "[summary_0] one and two"), call(3, "c", "three")]
    blocks += [managed(4, "no room", error=True), managed(5, "[summary_1] three"), call(6, "d", "four"), call(7, "e", "five")]
    trace = make_trace(blocks)
    turns = turns_of(trace, "acm")
    assert [turn.states for turn in turns] == ["", "A", "AA", "SSA", "SSAA", "SSAAA", "SSASSA", "SSASSAA"]
    assert [turn.action for turn in turns] == ["pass", "pass", "pass", "compress", "pass", "pass", "compress", "pass"]
    for known in range(len(turns)):
        assert turns_of(trace, "acm", tuple(turns[:known])) == turns


def test_acm_refuses_a_trace_without_such_calls() -> None:
    policy = parse_policy("acm")
    assert "manage_context" in policy.refuses(TRACE)  # type: ignore[attr-defined]
    assert not policy.refuses(make_trace([managed(0, "x")]))  # type: ignore[attr-defined]


class Rubric:
    """A chat that answers the rubric as told."""

    name = "rubric"

    def __init__(self, fire: bool) -> None:
        self.fire, self.prompts = fire, []  # type: ignore[var-annotated]

    def complete(self, messages: object, *, max_tokens: int, schema: object = None) -> ChatAnswer:
        self.prompts.append(messages)
        points = {"closed_unit": True, "summarisable": True, "progress": self.fire, "stuck": False, "evidence": "quoted"}
        return ChatAnswer(json.dumps(points), ChatUsage(100, 20, "measured", calls=1))


@pytest.mark.parametrize("fire", [True, False])
def test_selfcompact_asks_every_few_blocks_and_keeps_nothing_verbatim(fire: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Rubric(fire)
    monkeypatch.setattr(RunResources, "chat", property(lambda self: chat))
    turns = turns_of(TRACE, "selfcompact:4")
    expected = ["", "A", "AA", "AAA", "SSSS", "SSSSA"] if fire else ["", "A", "AA", "AAA", "AAAA", "AAAAA"]
    assert [turn.states for turn in turns[:6]] == expected
    assert [turn.t for turn in turns if any(spent.operation == "router" for spent in turn.spent)] == [4, 8]
    assert len(chat.prompts) == 2 and turns[4].spent[0].input_tokens == 100


def test_selfcompact_is_forced_at_its_share_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResources, "chat", property(lambda self: Rubric(False)))
    turns = turns_of(TRACE, "selfcompact:50:window=4000:force=0.3")
    first = next(turn for turn in turns if turn.action == "compress")
    assert turns[first.t - 1].active_tokens <= 1_200 < first.raw_tokens and set(first.states) == {"S"}


def test_selfcompacts_question_is_billed_as_read_from_the_cache_only_where_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResources, "chat", property(lambda self: Rubric(False)))
    apart, own = (turns_of(TRACE, f"selfcompact:4{cached}") for cached in ("", ":cached=true"))
    assert [[entry.cached for entry in turns[4].spent] for turns in (apart, own)] == [[False], [True]]
    assert [turn.items for turn in apart] == [turn.items for turn in own]


def test_a_policy_that_asks_a_model_says_that_the_profile_has_none() -> None:
    with pytest.raises(InputError, match="embedded"):
        _ = resources_of().chat


def test_the_rules_wait_while_the_agent_is_stuck_or_the_last_result_is_an_error() -> None:
    fresh = [call(n, f"q{n}", f"Fact F{n:03d} and G{n:03d}") for n in range(4)]
    assert turns_of(make_trace([*fresh, call(4, "q", "x")]), "selfcompact-rules:4")[4].action == "compress"
    stuck = [fresh[0], *[call(n, f"q{n}", "Fact F000 and G000") for n in range(1, 5)]]
    assert turns_of(make_trace(stuck), "selfcompact-rules:4")[4].action == "pass"
    failed = [*fresh[:3], call(3, "q3", "Fact F003: connection error"), call(4, "q", "x")]
    assert turns_of(make_trace(failed), "selfcompact-rules:4")[4].action == "pass"


def test_lines_that_share_words_with_the_call_and_structural_lines_stay() -> None:
    text = "\n".join(
        ["import os", *(f"filler {n} xyz" for n in range(30)), "the founder was Ada", *(f"more {n} abc" for n in range(30)), "end"]
    )
    trace = make_trace([call(0, "founder", text), call(1, "q", "a"), call(2, "q", "b")])
    (item,) = [item for item in turns_of(trace, "lineprune-lexical:1")[2].items if item.kind == "edited"]
    assert "import os" in item.text and "founder was Ada" in item.text and "filler 3 " not in item.text
    assert item.text.count("(filtered 30 lines)") == 2


def test_rare_words_and_numbers_stay_and_common_words_go_first() -> None:
    common = "the same words again and again " * 20
    blocks = [call(n, "q", common) for n in range(4)]
    trace = make_trace([*blocks, call(4, "q", f"{common} zanzibar 1871 {common}"), call(5, "q", "a"), call(6, "q", "b")])
    items = [item for item in turns_of(trace, "tokenprune-idf:0.3:keep=1")[6].items if item.kind == "edited"]
    text = next(item.text for item in items if item.spans[0][0] == 4)
    assert "zanzibar" in text and "1871" in text and text.count("again") < common.count("again")


def test_pace_limits_rise_with_pressure_as_published() -> None:
    paper, code = parse_policy("pace-paper"), parse_policy("pace-code")
    assert paper.thresholds(0, 0) == (0.4, 0.8, 1.5)  # type: ignore[attr-defined]
    assert paper.thresholds(50, 128_000) == pytest.approx((0.6, 1.2, 2.25))  # type: ignore[attr-defined]
    assert code.thresholds(50, 0) == (0.3, 0.7, 1.5)  # type: ignore[attr-defined]
    assert code.thresholds(75, 0) == pytest.approx((0.55, 0.95, 2.0))  # type: ignore[attr-defined]
    assert code.thresholds(400, 0) == pytest.approx((0.8, 1.2, 2.5))  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", ["pace-paper", "pace-code"])
def test_pace_keeps_the_step_that_bears_on_the_newest_ones_and_shortens_the_others(policy: str) -> None:
    texts = [f"{name} " * 60 for name in ("harbour", "castle", "garden", "orchard", "violin", "glacier")]
    trace = make_trace([call(n, text[:40], text) for n, text in enumerate([*texts, texts[1], "short"])], task="Find it.")
    turn = turns_of(trace, f"{policy}:1:turns=10")[7]
    assert turn.states[1] == "A" and turn.states[6] == "A", "the same words are asked for again"
    assert set(turn.states[2:6]) <= {"S", "."}
    assert turn.active_tokens < turn.raw_tokens


def test_pace_as_coded_asks_with_the_task_and_with_the_beginnings_of_the_recent_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Listening(HashingEmbedder):
        def embed(self, texts: Sequence[str]) -> Matrix:
            asked.extend(texts)
            return super().embed(texts)

    trace = make_trace([call(n, "q", f"Fact F{n:03d}. " + "word " * 900) for n in range(5)], task="Find the harbour.")
    turns_of(trace, "pace-code:2", parts=dataclasses.replace(PARTS, embedder=Listening(64)))
    keys, query = [text for text in asked if not text.startswith("Task:")], asked[-1]
    assert query.startswith("Task: Find the harbour.") and "F003" in query and "F002" in query and "F001" not in query
    assert len(query) < 2 * 1_500 + 100 and all(len(text) <= 200 for text in keys)


def test_pace_as_coded_shortens_older_steps_from_where_they_are_over_their_share() -> None:
    # Of a room of 10,200 tokens older steps may have 0.6 * (10,200 - prefix - 10,000), which is less than 120.
    trace = make_trace([call(n, "q", f"Fact F{n:03d} is here. " + "harbour castle " * 80) for n in range(12)])
    wide, narrow = (turns_of(trace, f"pace-code:2{room}")[11] for room in ("", ":room=10200"))
    forms = [item.source.split(", ")[1] for item in narrow.items if item.kind == "summary"]
    kept = sum(item.tokens for item in narrow.items if item.kind == "summary" and "placeholder" not in item.source)
    assert kept <= 120 < sum(item.tokens for item in wide.items if item.kind == "summary")
    assert forms[0] == "detailed" and forms[-1] == "placeholder", "the first steps take what there is, the later ones give way"


class Planner:
    """A chat that plans as told."""

    name = "planner"

    def __init__(self, operations: list[tuple[int, str]]) -> None:
        self.operations = operations

    def complete(self, messages: object, *, max_tokens: int, schema: object = None) -> ChatAnswer:
        plan = {"operations": [{"step": step, "operation": operation} for step, operation in self.operations]}
        return ChatAnswer(json.dumps(plan), ChatUsage(300, 40, "measured", calls=1))


def test_self_gc_applies_what_is_valid_of_a_plan_and_protects_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4,000 tokens, 0.3 of them: the plan is made at turn 4, when four blocks of about 300 tokens are there.
    monkeypatch.setattr(RunResources, "chat", property(lambda self: Planner([(0, "fold"), (1, "prune"), (3, "fold"), (77, "prune")])))
    turns = turns_of(TRACE, "self-gc:4000")
    first = next(turn for turn in turns if turn.action == "compress")
    assert first.t == 4 and first.states == "SSAA", "step 3 is the newest, step 77 does not exist"
    texts = {item.spans[0][0]: item.text for item in first.items if item.kind == "edited"}
    assert "F000" not in texts[0] and "q0" in texts[0] and first.stored == ((0, 1),)
    assert first.spent[0].input_tokens == 300


def test_self_gc_changes_nothing_that_does_not_pay_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResources, "chat", property(lambda self: Planner([(0, "fold")])))
    # Folding saves about 280 tokens a turn, and everything behind it must be read again: four blocks do not pay within one turn.
    assert turns_of(TRACE, "self-gc:4000:payback=1")[4].action == "pass"
    assert turns_of(TRACE, "self-gc:4000:payback=10")[4].action == "compress"


def test_a_folded_step_comes_back_when_the_newest_step_names_what_only_it_named() -> None:
    big = " ".join(f"entry{n}" for n in range(900))
    blocks = [call(0, "list", f"Order ORD-7781 is here. {big}"), *[call(n, "next", f"word{n} " * 200) for n in range(1, 4)]]
    trace = make_trace([*blocks, call(4, "status of ORD-7781", "unknown"), call(5, "next", "x")])
    turns = turns_of(trace, "self-gc-rules:6000:payback=50")
    folded = next(turn for turn in turns if turn.action == "compress")
    assert folded.states[0] == "S"
    back = turns[5]
    assert back.action == "recall" and back.restored_steps == (0,) and back.states[0] == "A"
    assert turns_of(trace, "self-gc-rules:6000:payback=50:restore=false")[5].states[0] == "S"


def test_lre_keeps_the_newest_steps_and_the_best_of_the_others_within_its_budget() -> None:
    turns = turns_of(TRACE, "lre:700:recent=2")
    for turn in turns:
        kept = [block for block, state in enumerate(turn.states) if state == "A"]
        assert kept[-2:] == list(range(max(turn.t - 2, 0), turn.t)), "the newest two always stay"
        assert len(kept) <= 4, "two more blocks of about 300 tokens fit 700"
    assert set(turns[11].states) == {"A", "."}


def test_lre_labels_a_step_by_the_later_use_of_what_it_introduced() -> None:
    steps = [
        call(0, "a", "Order ORD-7781"),
        call(1, "b", "ORD-7781 and ORD-9000"),
        call(2, "c", "ORD-7781"),
        call(3, "d", "ORD-7781 ORD-9000"),
    ]
    assert lre.reused(steps) == [True, False, False, False], "three later steps use the first order, two the second"


def test_the_shipped_weights_are_those_of_the_corpus_they_name() -> None:
    fitted = lre.fit(read_traces(PROJECT / "sample_traces" / "study" / "traces.jsonl"), lre.weights()["source"])
    assert fitted["steps"] == lre.weights()["steps"] and fitted["positives"] == lre.weights()["positives"]
    assert fitted["weights"] == pytest.approx(lre.weights()["weights"], abs=1e-3)
