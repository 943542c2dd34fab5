"""A trace as a frame."""

from pamer_lab.blocks import cut
from pamer_lab.trajectory import Message, Trace, Usage
from tests.runs.making import call, make_trace


def test_a_frame_has_a_row_per_message_with_the_block_it_is_in() -> None:
    trace = make_trace([call(0, "a", "b"), call(1, "c", "d"), [Message("assistant", "done", usage=Usage(7, 2))]])
    frame = trace.frame()
    assert frame["content"].to_list() == [message.content for message in trace.messages]
    blocks = {number: block.index for block in cut(trace.messages).blocks for number in range(block.start, block.end)}
    assert frame["block"].to_list() == [blocks.get(number) for number in range(len(trace.messages))]
    assert frame["calls"].to_list()[2] == ["search"] and frame["tool_call_id"].to_list()[3] == "c0"
    assert frame["input_tokens"].to_list()[-2:] == [None, 7] and frame["output_tokens"].to_list()[-1] == 2


def test_a_trace_without_an_answer_has_no_block() -> None:
    frame = Trace("t", "q", "made", (Message("user", "hello"),)).frame()
    assert frame["block"].to_list() == [None] and frame["calls"].to_list() == [[]]
