"""Worlds are the same for the same seed, answer from themselves alone, and can be solved by reading; nothing can be guessed."""

import json

import pytest

from pamer_lab.arena.reader import LAST_TURN, Reader
from pamer_lab.arena.world import Level, Task
from pamer_lab.corpus.language import described, stated
from pamer_lab.corpus.tables import DOMAINS, domain
from pamer_lab.errors import InputError
from pamer_lab.trajectory.values import Message, ToolCall


def walk(task: Task, agent: Reader) -> list[Message]:
    """The agent with all messages before it."""
    messages = task.opening()
    for _ in range(task.budget):
        messages.append(agent.act(messages, task.tools))
        if not messages[-1].tool_calls:
            break
        messages += [task.answer(call) for call in messages[-1].tool_calls]
    return messages


@pytest.mark.parametrize("level", ["4-2-4", "1-0-0", "6-1-3", "3-4-2"])
@pytest.mark.parametrize("notes", [True, False])
def test_an_agent_that_forgets_nothing_needs_the_least_turns_in_every_domain(level: str, notes: bool) -> None:
    for number in range(len(DOMAINS)):
        task = Task(5, number, Level.parse(level))
        messages = walk(task, Reader(notes))
        assert task.grade(messages[-1].content).reward == 1.0
        assert sum(message.role == "assistant" for message in messages) == task.least_turns < task.budget


def test_the_same_seed_gives_the_same_task_and_another_seed_other_values() -> None:
    one, again, other = (walk(Task(seed, 3), Reader()) for seed in (1, 1, 2))
    assert one == again and one != other
    assert {file.value for file in Task(1, 3).asked} != {file.value for file in Task(2, 3).asked}


def test_the_task_holds_no_value_and_late_facts_need_early_ones() -> None:
    task = Task(1, 0)
    opening = " ".join(message.content for message in task.opening())
    assert not any(stated(task.wanted(file), opening) for file in task.needed)
    keys = [file.key for file in task.needed if file.key]
    assert task.asked[0] in keys and task.asked[1] in keys, "needed again late"
    assert len({file.value for file in task.needed}) == len(task.needed)


def test_lists_hold_statements_of_the_same_form_about_others() -> None:
    task = Task(1, 0, Level(2, 1, 6))
    file = task.asked[0]
    text = task.answer(ToolCall("c", "search", json.dumps({"query": file.entity.name}))).content
    kin = [entity for entity in task.world.outsiders if entity.kind == file.entity.kind and entity.name in text]
    assert kin and file.value not in text


def test_every_call_gets_an_answer_and_bad_ones_say_why() -> None:
    task = Task(1, 0)
    for name, arguments in (("search", "{"), ("search", "[]"), ("search", '{"query": 3}'), ("fly", "{}"), ("", "{}")):
        result = task.answer(ToolCall("c1", name, arguments))
        assert result.error and result.tool_call_id == "c1"
    assert not task.answer(ToolCall("c1", "get_document", '{"document_id": "D0"}')).error
    assert task.answer(ToolCall("c1", "search", '{"query": "zzz"}')).content.startswith("0 entries")


def test_grades_count_each_fact() -> None:
    task = Task(1, 0, Level(2, 0, 0))
    first, second = (file.value for file in task.asked)
    assert task.grade(f"ANSWER: {first}; {second}").reward == 1.0
    assert task.grade(f"I think so.\nanswer: {first.upper()} ; unknown").share == 0.5
    assert task.grade(f"ANSWER: {second}; {first}").right == (False, False)
    assert task.grade("").share == 0.0


def test_every_form_of_every_table_is_read_back() -> None:
    for name in DOMAINS:
        for kind in domain(name).kinds.values():
            for attribute in kind.attributes.values():
                wanted = described(attribute.desc.format(e="Zeta Quill"))
                assert wanted is not None and wanted.entity == "Zeta Quill"
                for form in attribute.forms:
                    text = f"A story. {form.format(e='Zeta Quill', v='9.4.2', E='Zeta Quill', V='9.4.2')} Another one."
                    assert stated(wanted, text) == "9.4.2", form


def test_levels_out_of_range_are_refused() -> None:
    for text in ("4-2", "a-b-c", "0-1-1", "4-99-1", "", "²-2-4", "4-2-4-1", "9" * 5_000 + "-2-4"):
        with pytest.raises(InputError):
            Level.parse(text)


def test_the_reader_answers_when_no_turns_are_left_and_says_when_a_fact_is_gone() -> None:
    task = Task(1, 0)
    messages = walk(task, Reader())
    assert "unknown" in Reader().act([*messages[:4], Message("user", LAST_TURN)], task.tools).content
    last = [*messages[:2], *messages[-5:-1]]
    said = Reader().act(last, task.tools)
    assert said.tool_calls and "gone" in said.content
    assert Reader().act(last, task.tools) == said, "a pure function of what it sees"
