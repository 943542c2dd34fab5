from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.blocks import cut, split
from pamer_lab.trajectory.values import Message, ToolCall
from tests.strategies import conversation


@given(conversation(complete=False))
def test_cutting_and_joining_gives_back_the_messages(messages: list[Message]) -> None:
    pieces = cut(messages)
    joined = list(messages[: pieces.prefix_end])
    for block in pieces.blocks:
        assert messages[block.start].role == "assistant"
        joined.extend(block.of(messages))
    assert joined == messages
    assert [block.index for block in pieces.blocks] == list(range(len(pieces.blocks)))


@given(conversation(complete=False), st.integers(0, 4))
def test_every_block_is_in_exactly_one_part_of_the_split(messages: list[Message], retained: int) -> None:
    blocks = cut(messages).blocks
    parts = split(blocks, retained)
    assert sorted(parts.old + parts.recent + parts.pinned) == list(range(len(blocks)))
    assert all(blocks[index].complete for index in parts.old)
    assert sum(blocks[index].complete for index in parts.recent) == min(retained, sum(block.complete for block in blocks))
    assert not parts.old or not parts.recent or max(parts.old) < min(parts.recent)


def test_a_block_with_an_unanswered_call_is_incomplete_and_never_old() -> None:
    open_block = [Message("assistant", tool_calls=(ToolCall("a", "f"),))]
    plain = [Message("assistant", "x"), Message("assistant", "y"), Message("assistant", "z")]
    blocks = cut([Message("user", "task"), *open_block, *plain]).blocks
    assert [block.complete for block in blocks] == [False, True, True, True]
    assert split(blocks) == split(blocks, 2)
    parts = split(blocks)
    assert (parts.old, parts.recent, parts.pinned) == ((1,), (2, 3), (0,))


def test_the_first_decision_point_has_no_history() -> None:
    pieces = cut([Message("system", "s"), Message("user", "u"), Message("assistant", "a")])
    assert pieces.prefix_end == 2
    assert pieces.before(0) == ()
