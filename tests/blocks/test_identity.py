import json

from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.blocks import content_hash, cut, identities
from pamer_lab.trajectory.values import Message, ToolCall
from tests.strategies import block, conversation

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
