from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.blocks.render import render, render_message
from pamer_lab.blocks.tokens import PIECE_CHARACTERS, pieces
from pamer_lab.models.tokenizer import embedded_counter
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


@given(st.lists(st.text("ab 1\n.漢😀"), max_size=6), st.integers(1, 12))
def test_pieces_join_to_the_text_and_none_is_too_long(parts: list[str], most: int) -> None:
    found = list(pieces(parts, most))
    assert "".join(found) == "".join(parts) and all(0 < len(piece) <= most for piece in found[:-1])


@given(st.text("ab 1\n.,", min_size=30, max_size=200))
def test_the_tokens_of_pieces_that_are_cut_between_words_add_up(text: str) -> None:
    text = f"{text} of the museum in 1911\nand then {text}"
    counter = embedded_counter()
    assert counter.kind == "measured"
    # A window that ends in the known words always holds a safe place.
    assert sum(counter.count(list(pieces([text], len(text) // 2 + 15)))) == counter.count([text])[0]


def test_a_giant_message_is_counted_in_pieces_and_gives_the_same_count() -> None:
    counter = Watching()
    words = "the museum opened in 1911 and closed in 1943.\n"
    message = Message("tool", words * (3 * PIECE_CHARACTERS // len(words)), tool_call_id="a", name="search")
    MessageTokens(counter).counts([Message("user", "find it"), message])
    assert len(counter.asked) > 3 and max(map(len, counter.asked)) <= PIECE_CHARACTERS
    measured = embedded_counter()
    expected = sum(measured.count([line])[0] for line in render_message(message).splitlines(keepends=True))
    assert MessageTokens(measured).counts([message]) == measured.count([render_message(message)]) == [expected]


def test_of_more_messages_than_are_remembered_none_is_kept_and_counts_stay_right() -> None:
    counter = Watching()
    tokens = MessageTokens(counter, limit=4)
    messages = [Message("user", f"message {number % 6}") for number in range(10)]
    assert tokens.counts(messages) == [MessageTokens(EstimatedCounter()).counts([message])[0] for message in messages]
    before = len(counter.asked)
    tokens.counts(messages[:1])
    assert len(counter.asked) == before + 1
