from collections.abc import Sequence

from hypothesis import given

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.blocks.render import render, render_message
from pamer_lab.trajectory.values import Message, Tool, ToolCall
from tests.strategies import conversation


class Watching(EstimatedCounter):
    """Remembers which texts it was asked to count."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, texts: Sequence[str]) -> list[int]:
        self.asked.extend(texts)
        return super().count(texts)


@given(conversation())
def test_appending_a_turn_counts_only_the_new_messages(messages: list[Message]) -> None:
    counter = Watching()
    tokens = MessageTokens(counter)
    for end in range(len(messages) + 1):
        tokens.counts(messages[:end])
    assert len(counter.asked) == len(set(messages))


@given(conversation())
def test_a_conversation_renders_as_its_messages_one_after_the_other(messages: list[Message]) -> None:
    assert render(messages) == "".join(map(render_message, messages))


def test_calls_arguments_and_tool_descriptions_are_part_of_the_rendering() -> None:
    message = Message("assistant", "think", (ToolCall("a", "search", '{"query": "Ada"}'),))
    text = render([message, Message("tool", "found", tool_call_id="a", name="search")], [Tool("search", "looks things up")])
    for piece in ("think", '"search"', '{"query": "Ada"}', "found", "looks things up"):
        assert piece in text


def test_a_full_memory_is_emptied_and_counts_stay_right() -> None:
    tokens = MessageTokens(EstimatedCounter(), limit=3)
    messages = [Message("user", "x" * size) for size in range(10)]
    assert tokens.counts(messages) == MessageTokens(EstimatedCounter()).counts(messages)
    assert tokens.counts(messages[::-1]) == tokens.counts(messages)[::-1]
