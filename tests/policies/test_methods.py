"""Published methods, on histories where the right answer follows from their description."""

from pamer_lab.decisions import blocks_of
from tests.runs.making import call, make_trace, turns_of

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
        *("SSSSSSSA", "SSSSSSSAA", "SSSSSSSAAA", "SSSSSSSAAAA"),
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
