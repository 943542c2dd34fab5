"""What agent programs do today, on histories where the right answer follows from their description."""

from pamer_lab.policies.keep_last_tokens import PLACEHOLDER
from pamer_lab.policies.observation_masking import placeholder
from pamer_lab.trajectory.values import Message, ToolCall
from tests.runs.making import call, make_trace, turns_of

LONG = "\n".join(f"line {number} with some words" for number in range(40))


def edited(turn: object) -> dict[int, str]:
    """Block -> its text, of the shortened blocks."""
    return {item.spans[0][0]: item.text for item in turn.items if item.kind == "edited"}  # type: ignore[attr-defined]


def test_masking_keeps_calls_and_the_newest_results() -> None:
    trace = make_trace([call(n, f"q{n}", f"result {n}\n{LONG}", said=f"thought {n}") for n in range(5)])
    turn = turns_of(trace, "observation-masking:2")[4]
    assert turn.states == "SSAA"
    texts = edited(turn)
    assert sorted(texts) == [0, 1]
    for number, text in texts.items():
        assert f"thought {number}" in text and f'"q{number}"' in text and f"result {number}" not in text
        assert placeholder(f"result {number}\n{LONG}") in text and "41 lines" in text


def test_masking_leaves_a_result_that_is_shorter_than_its_placeholder() -> None:
    trace = make_trace([call(n, f"q{n}", "ok") for n in range(5)])
    assert turns_of(trace, "observation-masking:1")[4].states == "AAAA"


def test_masking_finds_results_of_agents_that_act_in_text() -> None:
    blocks = [[Message("assistant", f"ACTION {n}"), Message("user", f"OBSERVATION {n}\n{LONG}")] for n in range(4)]
    texts = edited(turns_of(make_trace(blocks), "observation-masking:1")[3])
    assert "ACTION 0" in texts[0] and "OBSERVATION 0" not in texts[0]


def test_user_messages_beside_tool_results_are_never_masked() -> None:
    block = [*call(0, "q", LONG), Message("user", f"please hurry {LONG}")]
    trace = make_trace([block, *[call(n, "q", LONG) for n in range(1, 4)]])
    assert "please hurry" in edited(turns_of(trace, "observation-masking:1")[3])[0]


def test_the_hybrid_masks_first_and_summarises_the_oldest_turns_together() -> None:
    trace = make_trace([call(n, f"q{n}", f"result {n}\n{LONG}") for n in range(8)])
    turns = turns_of(trace, "masking-summary:3:m=2")
    assert [turn.action for turn in turns] == ["pass"] * 5 + ["compress", "pass", "pass"]
    # Turn 4: blocks 0 and 1 are masked; turn 5: blocks 0 to 2 are three turns older than the newest two, and become a summary.
    assert [item.kind for item in turns[4].items] == ["tools", "prefix", "edited", "edited", "blocks"]
    assert [item.kind for item in turns[5].items] == ["tools", "prefix", "summary", "blocks"]
    assert turns[5].items[2].spans == ((0, 3),) and turns[5].items[3].spans == ((3, 5),)
    assert [item.kind for item in turns[7].items] == ["tools", "prefix", "summary", "edited", "edited", "blocks"]


def test_the_newest_tokens_of_output_stay_and_clearing_waits_for_its_minimum() -> None:
    # A result of 800 characters is 200 tokens by the estimate, and a few more with its frame.
    trace = make_trace([call(n, f"q{n}", f"R{n} " + "x" * 797) for n in range(8)])
    at_once = turns_of(trace, "keep-last-tokens:450:minimum=0")
    assert [turn.states for turn in at_once[:5]] == ["", "A", "AA", "SAA", "SSAA"]
    later = turns_of(trace, "keep-last-tokens:450:minimum=500")
    assert [turn.states for turn in later[3:7]] == ["AAA", "AAAA", "SSSAA", "SSSAAA"]
    assert all(PLACEHOLDER in text and '"q' in text for text in edited(later[6]).values())


def test_a_large_result_is_cut_when_it_is_no_longer_recent() -> None:
    trace = make_trace([call(0, "q", "BEGIN " + "middle " * 400 + "END"), *[call(n, "q", "short") for n in range(1, 4)]])
    turns = turns_of(trace, "truncate-results:50:keep=2")
    assert [turn.states for turn in turns] == ["", "A", "AA", "SAA"]
    text = edited(turns[3])[0]
    assert "BEGIN" in text and "END" in text and turns[3].items[2].tokens < 120


def test_only_the_newest_result_of_equal_calls_stays() -> None:
    def read(number: int, path: str, text: str, order: str = '{"path": "%s", "all": true}') -> list[Message]:
        asked = ToolCall(f"c{number}", "read", order % path)
        return [Message("assistant", "", (asked,)), Message("tool", text, tool_call_id=f"c{number}")]

    blocks = [
        read(0, "a.py", f"old a {LONG}"),
        read(1, "b.py", f"b {LONG}"),
        read(2, "a.py", f"new a {LONG}", '{"all": true, "path": "%s"}'),
    ]
    turns = turns_of(make_trace([*blocks, read(3, "c.py", "c")]), "dedupe-reads")
    assert [turn.states for turn in turns] == ["", "A", "AA", "SAA"]
    assert "old a" not in edited(turns[3])[0] and "a.py" in edited(turns[3])[0]


def test_compaction_waits_for_its_threshold_and_reads_the_last_summary() -> None:
    trace = make_trace([call(n, f"q{n}", f"Fact F{n:03d} is here. {LONG}") for n in range(16)])
    turns = turns_of(trace, "auto-compact:1500:tail=1")
    fired = [turn.t for turn in turns if turn.action == "compress"]
    first = turns[fired[0]]
    assert turns[fired[0] - 1].active_tokens <= 1500 < first.raw_tokens
    assert first.states == "S" * (first.t - 1) + "A"
    second = turns[fired[1]]
    assert second.states == "S" * (second.t - 1) + "A"
    assert second.spent[0].input_tokens < turns[second.t - 1].raw_tokens, "it reads the last summary and the new blocks, not all of them"
    assert sum(item.kind == "summary" for item in second.items) == 1


def test_a_share_of_the_newest_steps_stays_where_a_program_keeps_one() -> None:
    # Equal blocks: of the n blocks at the compaction, at most 30 % stay, as Gemini CLI keeps the newest 30 % by size.
    trace = make_trace([call(n, f"q{n:02d}", f"Fact F{n:03d} is here. {LONG}") for n in range(16)])
    first = next(turn for turn in turns_of(trace, "auto-compact:3000:tail=0:keep=0.3") if turn.action == "compress")
    kept = first.t * 3 // 10
    assert kept >= 2 and first.states == "S" * (first.t - kept) + "A" * kept


def test_polling_masks_more_results_only_every_few_turns() -> None:
    # SWE-agent: of o observations, the first of which is the task, those from the second up to (o // p) * p - n are masked; o = t + 1 here.
    trace = make_trace([call(n, f"q{n}", f"result {n}\n{LONG}") for n in range(14)])
    turns = turns_of(trace, "observation-masking:2:every=4")
    assert [turn.states.count("S") for turn in turns] == [max((t + 1) // 4 * 4 - 2 - 1, 0) for t in range(14)]
    same = [turns[t].items[:3] == turns[t + 1].items[:3] for t in (3, 4, 5, 7, 8, 9)]
    assert all(same), "between two times the beginning of the prompt is the same"


def test_the_condenser_leaves_half_of_its_size_with_the_summary_after_the_first_step() -> None:
    # OpenHands: over 16 events, 4 first ones, a summary and the newest 16 // 2 - 4 - 1 = 3 remain; a step of two stays together, so 2.
    trace = make_trace([call(n, f"q{n}", f"Fact F{n:03d} is here. {LONG}") for n in range(14)])
    turns = turns_of(trace, "openhands-condenser:16")
    fired = [turn.t for turn in turns if turn.action == "compress"]
    # Prefix of 2 messages and 2 a block: 8 blocks are the first over 16. Then 5 messages and 2 a block: over 16 with six new blocks.
    assert fired == [8, 13]
    assert [item.kind for item in turns[8].items] == ["tools", "prefix", "blocks", "summary", "blocks"]
    assert turns[8].states == "A" + "S" * 6 + "A" and turns[13].states == "A" + "S" * 11 + "A"
    assert sum(item.kind == "summary" for item in turns[13].items) == 1, "the new summary replaces the old one"


def test_the_older_half_is_dropped_at_once_and_the_first_step_stays() -> None:
    # Cline: of n pairs after the first, floor(n / 2) go as soon as the request reaches the limit, and not again before it does.
    trace = make_trace([call(n, f"q{n:02d}", f"Fact F{n:03d} is here. {LONG}") for n in range(16)])
    turns = turns_of(trace, "forget-half:3000")
    states = [turn.states for turn in turns]
    first = next(turn.t for turn in turns if turn.active_tokens < turn.raw_tokens)
    gone = (first - 1) // 2
    assert turns[first - 1].raw_tokens < 3000 <= turns[first].raw_tokens
    assert states[first][0] == "A" and states[first].count("A") == first - gone and states[first][1 + gone :] == "A" * (first - 1 - gone)
    assert states[first + 1] == states[first] + "A", "nothing more is dropped until the limit is reached again"


def test_three_quarters_go_where_half_would_not_be_enough() -> None:
    trace = make_trace([*[call(n, f"q{n}", "short") for n in range(8)], call(8, "q8", "word " * 4_000), call(9, "q9", "short")])
    turn = turns_of(trace, "forget-half:1000")[9]
    assert turn.states.count("A") == 9 - 8 * 3 // 4


def test_forgetting_by_messages_counts_those_of_the_request() -> None:
    trace = make_trace([call(n, f"q{n}", f"result {n}") for n in range(8)])
    turns = turns_of(trace, "forget-half:10:of=messages:first=0")
    # 2 messages before the first step and 2 a step: 4 steps reach 10, and 2 of them go.
    assert [turn.states.count("A") for turn in turns] == [0, 1, 2, 3, 2, 3, 2, 3]


def test_tool_uses_are_cleared_over_the_trigger_but_for_the_newest() -> None:
    # Anthropic: over the trigger all results but the newest `keep` are cleared, calls stay, and cleared ones stay cleared.
    trace = make_trace([call(n, f"q{n}", f"result {n}\n{LONG}") for n in range(12)])
    turns = turns_of(trace, "clear-tool-uses:2000:keep=3")
    first = next(turn.t for turn in turns if "S" in turn.states)
    assert turns[first - 1].active_tokens <= 2000 < turns[first].raw_tokens
    assert turns[first].states == "S" * (first - 3) + "AAA" and turns[first + 1].states == turns[first].states + "A"
    texts = edited(turns[first])
    assert all(f'"q{number}"' in text and f"result {number}" not in text and "[cleared]" in text for number, text in texts.items())


def test_of_parallel_calls_only_the_older_results_are_cleared() -> None:
    calls = tuple(ToolCall(f"c{n}", "read", f'{{"path": "{n}"}}') for n in range(4))
    results = [Message("tool", f"part {n}\n{LONG}", tool_call_id=f"c{n}") for n in range(4)]
    trace = make_trace([[Message("assistant", "", calls), *results], call(9, "q", "short")])
    text = edited(turns_of(trace, "clear-tool-uses:500:keep=1")[1])[0]
    assert "part 2" not in text and "part 3" in text


def test_nothing_is_cleared_where_too_little_would_go() -> None:
    trace = make_trace([call(n, f"q{n}", f"result {n}\n{LONG}") for n in range(12)])
    at_once = turns_of(trace, "clear-tool-uses:1000:keep=3")
    waits = turns_of(trace, "clear-tool-uses:1000:keep=3:minimum=1200")
    first = [next(turn.t for turn in turns if "S" in turn.states) for turns in (at_once, waits)]
    assert first[0] < first[1] and waits[first[1]].raw_tokens - waits[first[1]].active_tokens >= 1200
