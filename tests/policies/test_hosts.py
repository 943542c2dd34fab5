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
