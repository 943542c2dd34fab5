"""Agent TARS: streamed pieces are read where the complete event never came, and nowhere else."""

from typing import Any

from pamer_lab.trajectory import Trace
from tests.trajectory.formats.told import counts, only, read_lines

START = [{"type": "agent_run_start", "sessionId": "s"}, {"type": "user_message", "content": "weather?"}]
JOINED = "a message was recorded in pieces; they were joined"


def pieces(kind: str, *texts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "content": text, **more} for text in texts]


def thought(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return pieces("assistant_streaming_thinking_message", *texts, **more)


def spoken(*texts: str, own: str = "m") -> list[dict[str, Any]]:
    return pieces("assistant_streaming_message", *texts, messageId=own)


def called(*arguments: str, own: str = "m") -> list[dict[str, Any]]:
    facts = {"type": "assistant_streaming_tool_call", "toolCallId": "c", "toolName": "search", "messageId": own}
    return [{**facts, "arguments": piece} for piece in arguments]


def whole(text: str, own: str = "m") -> dict[str, Any]:
    return {"type": "assistant_message", "content": text, "messageId": own}


def texts(trace: Trace) -> list[str]:
    return [message.content for message in trace.messages]


def test_a_stream_that_was_cut_keeps_what_came_of_its_last_message() -> None:
    trace = only(read_lines([*START, *thought("Where", "?", messageId="m"), *spoken("I ", "look."), *called('{"q":', '"os')]))
    answer = trace.messages[-1]
    assert (trace.format, counts(trace)) == ("agent-tars", (1, 1, 0))
    assert (answer.content, answer.thinking) == ("I look.", "Where?")
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [("c", "search", '{"q":"os')]
    assert {warning.text for warning in trace.warnings} == {JOINED}


def test_pieces_that_a_complete_event_repeats_are_read_once() -> None:
    thinking = {"type": "assistant_thinking_message", "content": "Where?"}
    final = [*pieces("final_answer_streaming", "Ra", "in", messageId="f"), {"type": "final_answer", "content": "Rain"}]
    trace = only(read_lines([*START, *thought("Wh", "ere?"), thinking, *spoken("I ", "look."), *called("{}"), whole("I look."), *final]))
    assert texts(trace) == ["weather?", "I look.", "Rain"]
    assert (trace.messages[1].thinking, counts(trace), trace.warnings) == ("Where?", (2, 0, 0), ())


def test_a_message_that_its_user_stopped_stays_before_the_next_prompt() -> None:
    again = {"type": "user_message", "content": "and tomorrow?"}
    trace = only(read_lines([*START, *thought("Hm"), *spoken("Su"), again, *thought("Sky"), *spoken("Rain", own="n"), whole("Rain.", "n")]))
    assert texts(trace) == ["weather?", "Su", "and tomorrow?", "Rain."]
    assert [message.thinking for message in trace.messages] == ["", "Hm", "", "Sky"]


def test_a_run_that_begins_with_many_pieces_is_recognised() -> None:
    trace = only(read_lines([*START, *spoken(*"x" * 60), whole("x" * 60)]))
    assert (trace.format, texts(trace), trace.warnings) == ("agent-tars", ["weather?", "x" * 60], ())
