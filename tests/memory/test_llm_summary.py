"""Summaries and step details by a model: budgets of their own, smaller sources after a cut, and the cost of every call."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.memory import SourceBlock
from pamer_lab.memory.extractive import ExtractiveSummariser, extractive_details
from pamer_lab.memory.llm_summary import LlmDetailWriter, LlmSummariser
from pamer_lab.memory.summary import faults
from pamer_lab.models.attempts import BadAnswer, DoesNotFit
from pamer_lab.models.usage import usage_of
from pamer_lab.trajectory.values import Message
from tests.memory.chats import ScriptedChat
from tests.memory.test_summary import step


def blocks(count: int, characters: int = 600) -> list[SourceBlock]:
    return [step(number, f"BEGIN{number} " + "z" * characters + f" END{number}") for number in range(count)]


def steps_in(prompt: str) -> list[int]:
    return [int(number) for number in re.findall(r"^## Step (\d+)$", prompt, re.MULTILINE)]


def lines_for(prompt: str, detail: str = "read part {}") -> str:
    return json.dumps({"step_details": [{"step": number, "detail": detail.format(number)} for number in steps_in(prompt)]})


def test_the_summary_has_the_answer_to_itself_and_the_details_are_the_rules() -> None:
    chat = ScriptedChat(lambda prompt: "ORD-3 costs 51 EUR.")
    given = blocks(39)
    summary = LlmSummariser(chat).summarise("task", given)
    assert summary.text == "ORD-3 costs 51 EUR." and [limit for _, _, limit in chat.asked] == [1024]
    assert summary.details == ExtractiveSummariser(EstimatedCounter()).summarise("task", given).details == extractive_details(given)
    assert faults(summary, given) == []
    assert (summary.usage.input_tokens, summary.usage.output_tokens, summary.usage.calls) == (*chat.total, 1)


def test_a_cut_summary_is_asked_for_again_from_half_the_source_and_all_calls_are_counted() -> None:
    chat = ScriptedChat(lambda prompt: "w " * (len(prompt) // 10))
    summary = LlmSummariser(chat, max_tokens=500, source_characters=16_000).summarise("task", blocks(8, 2_500))
    sizes = [len(prompt) for _, prompt, _ in chat.asked]
    assert len(sizes) > 1 and all(later < 0.7 * earlier for earlier, later in pairwise(sizes))
    assert len({system for system, _, _ in chat.asked}) == len(sizes), "each retry asks for fewer words"
    assert all(f"BEGIN{number}" in chat.asked[-1][1] and f"END{number}" in chat.asked[-1][1] for number in range(8))
    assert EstimatedCounter().count([summary.text])[0] <= 500
    assert (summary.usage.input_tokens, summary.usage.output_tokens, summary.usage.calls) == (*chat.total, len(sizes))


def test_a_prompt_over_the_window_is_asked_for_again_from_half_the_source() -> None:
    chat = ScriptedChat(lambda prompt: "short", window=4_000)
    summary = LlmSummariser(chat, source_characters=40_000).summarise("task", blocks(8, 4_000))
    assert summary.text == "short" and len(chat.asked) > 1 and summary.usage.calls == 1


@pytest.mark.parametrize("retries", [0, 2])
def test_a_model_that_never_ends_is_given_up_after_so_many_retries_and_the_error_says_what_it_cost(retries: int) -> None:
    chat = ScriptedChat(lambda prompt: "w " * 4_000)
    with pytest.raises(DoesNotFit) as caught:
        LlmSummariser(chat, retries=retries).summarise("task", blocks(3))
    usage = usage_of(caught.value)
    assert len(chat.asked) == retries + 1 == usage.calls and (usage.input_tokens, usage.output_tokens) == chat.total


def test_details_of_any_number_of_steps_fit_a_few_per_call() -> None:
    chat = ScriptedChat(lines_for)
    found = LlmDetailWriter(chat, steps_per_call=8, detail_tokens=100).describe("task", blocks(39))
    assert found.lines == tuple(f"read part {number}" for number in range(39))
    assert [steps_in(prompt) for _, prompt, _ in chat.asked] == [list(range(first, min(first + 8, 39))) for first in range(0, 39, 8)]
    assert [limit for _, _, limit in chat.asked] == [800, 800, 800, 800, 700]
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.calls) == (*chat.total, 5)


def test_a_group_whose_details_fail_is_asked_for_in_halves() -> None:
    def forgetful(prompt: str) -> str:
        answer: Any = json.loads(lines_for(prompt))
        answer["step_details"] = answer["step_details"][:2]
        return json.dumps(answer)

    chat = ScriptedChat(forgetful)
    found = LlmDetailWriter(chat).describe("task", blocks(8))
    assert found.lines == tuple(f"read part {number}" for number in range(8))
    assert [len(steps_in(prompt)) for _, prompt, _ in chat.asked] == [8, 4, 2, 2, 4, 2, 2]
    assert found.usage.calls == 7 and found.usage.input_tokens == chat.total[0]


def test_a_step_that_does_not_fit_alone_gets_a_smaller_source() -> None:
    chat = ScriptedChat(lines_for, window=3_000)
    long = SourceBlock(0, (Message("assistant", "word " * 6_000),))
    assert LlmDetailWriter(chat, retries=3).describe("task", [long]).lines == ("read part 0",)
    with pytest.raises(DoesNotFit):
        LlmDetailWriter(chat, retries=0).describe("task", [long])


@pytest.mark.parametrize("detail", [" ", "\n"])
def test_a_single_step_without_a_detail_is_an_error_that_says_what_it_cost(detail: str) -> None:
    chat = ScriptedChat(lambda prompt: lines_for(prompt, detail))
    with pytest.raises(BadAnswer) as caught:
        LlmDetailWriter(chat).describe("task", blocks(2))
    assert usage_of(caught.value).calls == 2 and usage_of(caught.value).input_tokens == chat.total[0]
