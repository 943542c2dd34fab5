import json

from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.blocks import content_hash, cut, identities, split
from pamer_lab.trajectory.values import Message, ToolCall
from tests.strategies import block, conversation


@given(conversation(complete=False))
def test_cutting_and_joining_gives_back_the_messages(messages: list[Message]) -> None:
    pieces = cut(messages)
    joined = list(messages[: pieces.prefix_end])
    for piece in pieces.blocks:
        assert messages[piece.start].role == "assistant"
        joined.extend(piece.of(messages))
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


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.dictionaries(st.text(max_size=4), inner),
)


@given(st.dictionaries(st.text(max_size=4), values, min_size=1), st.randoms())
def test_key_order_and_call_ids_do_not_change_an_identity(arguments: dict[str, object], random: object) -> None:
    keys = list(arguments)
    random.shuffle(keys)  # type: ignore[attr-defined]
    shuffled = {key: arguments[key] for key in keys}
    one = [Message("assistant", "a", (ToolCall("x", "f", json.dumps(arguments)),)), Message("tool", "r", tool_call_id="x")]
    two = [Message("assistant", "a", (ToolCall("y", "f", json.dumps(shuffled, indent=1)),)), Message("tool", "r", tool_call_id="y")]
    assert content_hash(one) == content_hash(two)


@given(block(), block())
def test_different_content_has_different_identities(one: list[Message], two: list[Message]) -> None:
    def said(messages: list[Message]) -> list[object]:
        order = {call.id: number for number, call in enumerate(messages[0].tool_calls)}
        calls = [(call.name, json.loads(call.arguments)) for call in messages[0].tool_calls]
        return [calls, [(message.role, message.content, order.get(message.tool_call_id)) for message in messages]]

    assert (content_hash(one) == content_hash(two)) == (said(one) == said(two))


def test_swapping_two_results_of_parallel_calls_changes_the_identity() -> None:
    calls = (ToolCall("a", "f"), ToolCall("b", "f"))
    straight = [Message("assistant", "", calls), Message("tool", "1", tool_call_id="a"), Message("tool", "2", tool_call_id="b")]
    swapped = [Message("assistant", "", calls), Message("tool", "1", tool_call_id="b"), Message("tool", "2", tool_call_id="a")]
    assert content_hash(straight) != content_hash(swapped)


@given(conversation())
def test_two_equal_blocks_in_one_trace_stay_two(messages: list[Message]) -> None:
    doubled = messages + messages[cut(messages).prefix_end :]
    blocks = cut(doubled).blocks
    named = identities(block.of(doubled) for block in blocks)
    assert len(set(named)) == len(blocks)


@given(conversation())
def test_identities_of_a_prefix_do_not_change_when_turns_are_added(messages: list[Message]) -> None:
    blocks = cut(messages).blocks
    named = identities(block.of(messages) for block in blocks)
    assert identities(block.of(messages) for block in blocks[:2]) == named[:2]
