"""Summaries: detail lines, source text within its budget, and a cache in which the same question is computed once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.memory import SourceBlock, summary
from pamer_lab.memory.extractive import ExtractiveSummariser, used_names
from pamer_lab.memory.passages import PASSAGE_CHARACTERS, excerpt, passages
from pamer_lab.memory.summary import (
    ARROW,
    DETAIL_CHARACTERS,
    LEFT_OUT,
    NAMES,
    SAYS,
    StepDetail,
    clip,
    faults,
    kept_pieces,
    read_detail,
    readable,
    within_budget,
)
from pamer_lab.memory.terms import identifiers, scores, terms
from pamer_lab.trajectory.values import Message, ToolCall
from tests.strategies import block

FILLER = "The weather is nice and the work goes on as it always does in this office, day by day."


def step(number: int, result: str, *, tool: str = "read") -> SourceBlock:
    call = ToolCall("c", tool, f'{{"path": "src/part_{number}.py"}}')
    return SourceBlock(number, (Message("assistant", "I look.", (call,)), Message("tool", result, tool_call_id="c")))


def test_lines_with_identifiers_numbers_decisions_and_errors_are_kept_and_filler_is_not() -> None:
    telling = ["Order ORD-7781 costs 412.50 EUR.", "We decided to use config/prod.yaml instead.", "Error: connection refused by db_host_3"]
    blocks = [step(number, "\n".join([FILLER] * 12 + [line] + [f"{FILLER} Again."] * 12)) for number, line in enumerate(telling)]
    summary = ExtractiveSummariser(EstimatedCounter(), max_tokens=120).summarise("task", blocks)
    assert all(line in summary.text for line in telling)
    assert summary.text.count("weather") == 0


def test_a_summary_stays_within_its_limit_covers_every_step_and_is_the_same_every_time() -> None:
    blocks = [step(number, f"item_{number} holds {number * 31} pieces. " * 40) for number in range(20)]
    summariser = ExtractiveSummariser(EstimatedCounter())
    summary = summariser.summarise("task", blocks)
    assert EstimatedCounter().count([summary.text])[0] <= 1024
    assert all(f"Step {number}:" in summary.text for number in range(20))
    assert all(f"part_{number}.py" in detail for number, detail in enumerate(summary.details))
    assert summary == summariser.summarise("task", blocks)


@settings(max_examples=60, deadline=None)
@given(messages=st.lists(block(complete=False), min_size=1, max_size=6), limit=st.integers(20, 200))
def test_any_blocks_get_a_summary_of_the_right_shape_within_the_limit(messages: list[list[Message]], limit: int) -> None:
    blocks = [SourceBlock(number * 3, tuple(entry)) for number, entry in enumerate(messages)]
    summary = ExtractiveSummariser(EstimatedCounter(), max_tokens=limit).summarise("task", blocks)
    assert faults(summary, blocks) == []
    assert EstimatedCounter().count([summary.text])[0] <= max(limit, 80)


def test_under_the_budget_nothing_is_clipped_and_over_it_every_message_keeps_both_ends() -> None:
    short = [step(0, "x" * 100), step(1, "y" * 100)]
    assert within_budget(short, 10_000) == short
    long = [step(number, f"BEGIN{number} " + "z" * (900 + 2_000 * number) + f" END{number}") for number in range(8)]
    clipped = within_budget(long, 20_000)
    for number, entry in enumerate(clipped):
        text = entry.messages[1].content
        assert text.startswith(f"BEGIN{number}") and text.endswith(f"END{number}")
    total = sum(len(message.content) for entry in clipped for message in entry.messages)
    assert total < 20_000 * 1.1
    assert clipped[0].messages[1].content == long[0].messages[1].content
    assert len(clipped[7].messages[1].content) < len(long[7].messages[1].content)


def test_a_shown_line_has_no_mark_that_is_longer_than_what_it_stands_for() -> None:
    names = "Also matching: " + "7365, " * 12
    assert readable(clip(names, len(names) - 2)) == f"{names[:43]}…{names[-42:]}"
    assert readable(long := clip(names * 9, 40)) == long != names * 9
    assert readable("nothing left out") == "nothing left out"


def test_clipping_says_how_much_is_missing() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("a" * 60 + "b" * 60, 20) == "a" * 10 + LEFT_OUT.format(100) + "b" * 10
    twice = clip(clip("a" * 600 + "b" * 600, 240), 20)
    assert twice == clip("a" * 600 + "b" * 600, 20) == clip(twice, 20)


def test_identifiers_are_found_in_every_usual_form() -> None:
    text = "See https://x.org/a?b=1 and src/core/io.py, my_name, camelCase, ClassName, run-42, deadbeef1, 12,345 of 7 at a@b.org"
    found = identifiers(text)
    assert {"https://x.org/a?b=1", "src/core/io.py", "my_name", "camelcase", "classname", "run-42", "deadbeef1", "12,345"} <= found
    assert "7" not in found and "see" not in found


def test_scores_do_not_depend_on_chance_and_an_empty_line_scores_least() -> None:
    lines = ["", "alpha beta", "Error: file_7.txt missing"]
    assert scores(lines) == scores(lines) and scores(lines)[0] == min(scores(lines)) and scores([]) == []


WORDS = st.text(alphabet="abcXYZ07.-_ 中\n|>", max_size=200) | st.sampled_from([ARROW, SAYS, NAMES, f"a{ARROW}b{NAMES}c"])
LISTS = st.lists(WORDS, max_size=30).map(tuple)


@given(calls=WORDS, says=LISTS, line=WORDS, names=LISTS)
def test_any_parts_give_one_line_within_its_budget(calls: str, says: tuple[str, ...], line: str, names: tuple[str, ...]) -> None:
    text = StepDetail(calls, says, line, names).text()
    assert text.strip() and "\n" not in text and len(text) <= DETAIL_CHARACTERS


def test_the_parts_are_read_back_and_what_does_not_fit_is_left_out() -> None:
    detail = StepDetail('read({"path":"a.py"})', ("Clara Reuter",), "It is by Wanda Hughes.", ("ORD-7", "12,345"))
    assert read_detail(detail.text()) == detail
    many = StepDetail("read()", (), "A line.", tuple(f"name-{number:03d}" for number in range(90)))
    parts = read_detail(many.text())
    assert parts is not None and parts.names == many.names[: len(parts.names)] and 10 < len(parts.names) < 90


def test_marks_inside_the_parts_do_not_move_the_borders() -> None:
    parts = read_detail(StepDetail(f"run(a{ARROW}b)", ("Ada",), f"x{ARROW}y{NAMES}z", ("ORD-7",)).text())
    assert parts is not None and parts.says == ("Ada",) and parts.names == ("ORD-7",)


def test_a_line_in_another_form_has_no_parts() -> None:
    assert read_detail("The agent read a file and found nothing.") is None


class Counted:
    """Counts how often the inner part is asked."""

    def __init__(self, inner: object) -> None:
        self.inner, self.asked = inner, 0

    def __getattr__(self, name: str) -> object:
        found = getattr(self.inner, name)
        if name not in ("embed", "summarise"):
            return found

        def ask(*given: object) -> object:
            self.asked += 1
            return found(*given)

        return ask


def test_a_summary_is_written_once_for_the_same_task_and_blocks() -> None:
    inner = Counted(ExtractiveSummariser(EstimatedCounter()))
    summaries = summary.CachedSummariser(inner)  # type: ignore[arg-type]
    one, other = (SourceBlock(n, (Message("assistant", f"found {n}"),)) for n in (1, 2))
    assert summaries.summarise("task", [one]) == summaries.summarise("task", [one]) and inner.asked == 1
    summaries.summarise("task", [one, other])
    summaries.summarise("other task", [one])
    assert inner.asked == 3


RECORD = '{"user": "u1", ' + ", ".join(f'"field_{number}": "value {number}"' for number in range(200)) + ', "card": "gift_card_771"}'


def history() -> list[SourceBlock]:
    ask = ToolCall("c", "read", '{"id": "mine_1"}')
    return [
        SourceBlock(
            0, (Message("assistant", "I look.", tool_calls=(ask,)), Message("tool", f"{RECORD} order 4OG6T3 and mine_1 and given_9"))
        ),
        SourceBlock(1, (Message("assistant", "I use 4OG6T3 and given_9."), Message("user", "Fine."))),
        SourceBlock(2, (Message("assistant", "Again 4OG6T3, then field_7."), Message("user", "Fine."))),
    ]


def test_a_name_counts_from_the_result_that_showed_it_unless_task_or_agent_had_it_first() -> None:
    found = used_names("Settle given_9.", history())
    named = {term: (name.name, name.step, name.uses) for term, name in found.items()}
    assert (named["4og6t3"], named["field_7"]) == (("4OG6T3", 0, 2), ("field_7", 0, 1))
    assert not {"given_9", "mine_1"} & named.keys()


def test_later_messages_of_the_agent_count_as_uses() -> None:
    found = used_names("", history(), [Message("assistant", "field_7 once more, and field_8")])
    assert (found["field_7"].uses, found["field_8"].uses) == (2, 1)


@pytest.mark.parametrize("limit", [120, 1024])
def test_a_summary_keeps_names_used_twice_out_of_the_middle_of_a_long_record(limit: int) -> None:
    middle = "field_111"
    blocks = [*history(), *(SourceBlock(step, (Message("assistant", f"Now {middle}."), Message("user", "Fine."))) for step in (3, 4))]
    kept = ExtractiveSummariser(EstimatedCounter(), max_tokens=limit).summarise("task", blocks).text
    assert middle in kept and "4OG6T3" in kept


def test_passages_are_short_pieces_in_order_and_lose_only_white_space() -> None:
    text = f"{RECORD}\n\n---\nA short line.\n{'word ' * 100}\n{'x' * 600}"
    found = list(passages(text))
    assert max(map(len, found)) <= PASSAGE_CHARACTERS
    assert "".join("".join(found).split()) == "".join(text.replace("---", "").split())


def test_an_excerpt_has_the_goals_passages_verbatim_and_fits() -> None:
    text = f"{RECORD}\nThe total of ORD-7 is open.\n{RECORD}"
    short = excerpt(text, terms("ORD-7"), 600)
    assert "ORD-7" in short and len(short) <= 600
    assert all(piece in text for piece in kept_pieces(short))


def test_a_code_that_begins_with_digits_and_a_quoted_value_are_terms() -> None:
    assert {"4og6t3", "chen"} <= terms('{"reservation": "4OG6T3", "first": "Chen"}')
