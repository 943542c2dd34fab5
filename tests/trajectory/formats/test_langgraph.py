"""LangGraph states and LangChain message lists."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_traces
from tests.trajectory.formats.told import counts, numbers, only, raw_values, read_value, strings, told


def messages() -> list[dict[str, Any]]:
    usage = {"input_tokens": 30, "output_tokens": 3, "total_tokens": 33, "input_token_details": {"cache_read": 12}}
    calls = [{"id": "read:0", "name": "read", "args": {"f": "a"}}, {"id": "read:1", "name": "read", "args": {"f": "b"}}]
    return [
        {"type": "human", "content": [{"type": "text", "text": "read"}], "id": "1"},
        {"type": "system", "content": "files: none"},
        {"type": "ai", "content": "", "tool_calls": calls, "usage_metadata": usage, "additional_kwargs": {"reasoning_content": "hm"}},
        {"type": "tool", "content": "A", "tool_call_id": "read:0", "name": "read", "status": "success"},
        {"type": "tool", "content": "gone", "tool_call_id": "read:1", "name": "read", "status": "error"},
        {"type": "human", "content": "again"},
        {"type": "ai", "content": "no", "tool_calls": [calls[0]], "invalid_tool_calls": [{"id": "bad", "name": "read", "args": "{f:"}]},
        {"type": "tool", "content": "A", "tool_call_id": "read:0"},
    ]


def state(given: list[Any], **more: Any) -> dict[str, Any]:
    return {"values": {"messages": given, "title": "T"}, "metadata": {"thread_id": "th", "model_name": "m"}, "checkpoint": {}} | more


FORMS = {
    "thread state": lambda: state(messages()),
    "bare list": messages,
    "messages alone": lambda: {"messages": messages()},
    "dicts with data": lambda: [{"type": item["type"], "data": item} for item in messages()],
    "constructors": lambda: [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", f"{item['type'].capitalize().replace('Ai', 'AI')}Message"],
            "kwargs": item,
        }
        for item in messages()
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_messages_read_the_same_in_every_form(form: str) -> None:
    trace = only(read_value(FORMS[form]()))
    assert trace.format == "langgraph-thread-state"
    assert [message.role for message in trace.messages] == ["user", "system", "assistant", "tool", "tool", "user", "assistant", "tool"]
    assert counts(trace) == (2, 4, 3)
    turn = trace.messages[2]
    assert (turn.thinking, turn.usage and (turn.usage.input_tokens, turn.usage.cached_tokens)) == ("hm", (30, 12))
    assert trace.messages[4].error
    assert trace.messages[6].tool_calls[1].arguments == "{f:"


def test_states_of_one_thread_are_one_trace_and_removed_messages_are_events() -> None:
    trace = only(read_value([state(messages()), state(messages()[:4])]))
    assert (trace.turns, trace.meta["thread"]) == (2, "th")
    assert [numbers(warning.text) for warning in trace.warnings] == [[2]]
    removed = only(read_value([*messages(), {"type": "remove", "id": "1"}]))
    assert removed.events[0].kind == "context_edit"


@pytest.mark.parametrize("name", ["21cfea46.thread.json", "7cfa5f8f.thread.json", "b83fbb2a.thread.json"])
def test_real_threads_keep_every_message_and_text(real_traces: Path, name: str) -> None:
    path = real_traces / "langgraph-thread-state" / name
    given = raw_values(path)[0]["values"]["messages"]
    trace = only(read_traces(path))
    turns, results = (sum(item["type"] == kind for item in given) for kind in ("ai", "tool"))
    assert counts(trace) == (turns, sum(len(item.get("tool_calls") or []) for item in given), results)
    texts = [text for item in given for text in strings(item["content"], skip=("type",))]
    texts += [text for item in given for text in strings((item.get("additional_kwargs") or {}).get("reasoning_content"))]
    texts += [text for item in given for call in item.get("tool_calls") or [] for text in strings(call["args"])]
    assert told([trace]).misses(texts) == []
