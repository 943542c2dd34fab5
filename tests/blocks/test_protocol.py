import pytest
from hypothesis import given

from pamer_lab.blocks import check, cut, violations
from pamer_lab.errors import ProtocolError
from pamer_lab.trajectory.values import Message, ToolCall
from tests.strategies import conversation

CALL = ToolCall("a", "f")
BROKEN = {
    "result before any assistant message": ([Message("tool", "r", tool_call_id="a")], 0, "too-early"),
    "result without an id": ([Message("assistant", "", (CALL,)), Message("tool", "r")], 1, "names-no-call"),
    "result of an unknown call": ([Message("assistant", "", (CALL,)), Message("tool", "r", tool_call_id="b")], 1, "unknown-call"),
    "result in a later block": (
        [Message("assistant", "", (CALL,)), Message("assistant", "x"), Message("tool", "r", tool_call_id="a")],
        2,
        "unknown-call",
    ),
    "call answered twice": (
        [Message("assistant", "", (CALL,)), Message("tool", "r", tool_call_id="a"), Message("tool", "s", tool_call_id="a")],
        2,
        "answered-twice",
    ),
    "id used twice in one block": ([Message("assistant", "", (CALL, CALL))], 0, "id-twice"),
    "call without an id": ([Message("assistant", "", (ToolCall("", "f"),))], 0, "no-id"),
    "call without a tool": ([Message("assistant", "", (ToolCall("a", ""),))], 0, "no-tool"),
    "user message that calls": ([Message("user", "", (CALL,))], 0, "calls"),
    "user message that answers": ([Message("user", "", tool_call_id="a")], 0, "answers"),
    "assistant message that answers": ([Message("assistant", "", tool_call_id="a")], 0, "answers"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_named_with_its_place(name: str) -> None:
    messages, index, kind = BROKEN[name]
    found = violations(messages)
    assert (found[0].index, found[0].kind) == (index, kind)
    with pytest.raises(ProtocolError, match=rf"messages\[{index}\]"):
        check(messages)


@given(conversation(complete=False))
def test_every_prefix_of_a_safe_trace_cut_at_a_block_edge_is_safe(messages: list[Message]) -> None:
    assert violations(messages) == []
    for block in cut(messages).blocks:
        assert violations(messages[: block.start]) == []
        assert violations(messages[: block.end]) == []


def test_an_unanswered_call_is_allowed() -> None:
    check([Message("user", "u"), Message("assistant", "", (CALL,)), Message("assistant", "b")])
