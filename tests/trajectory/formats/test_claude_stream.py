"""Claude Agent SDK streams, wrapped and plain."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_traces
from tests.trajectory.formats.told import counts, only, raw_values, read_lines, told

FOLDER = "claude-agent-sdk-stream"


def stream(*, wrapped: bool) -> list[dict[str, Any]]:
    """A run with two calls in one message, a compaction and a result."""
    init = {"subtype": "init", "session_id": "s1", "tools": ["Bash", "Read"], "model": "claude-x", "cwd": "/tmp/a"}
    end = {"subtype": "success", "session_id": "s1", "num_turns": 2, "total_cost_usd": 0.5, "result": "done"}
    end["usage"] = {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 90}
    compact = {"subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 1000}, "session_id": "s1"}

    def about(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"type": kind, "message": body} if wrapped else {"type": kind, **body}

    return [
        about("system", init),
        _assistant("m1", {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}),
        {"type": "user", "message": {"role": "user", "content": [_result("c1", "a")]}},
        _assistant("m1", {"type": "tool_use", "id": "c2", "name": "Read", "input": {"path": "a"}}),
        {"type": "user", "message": {"role": "user", "content": [_result("c2", [{"type": "text", "text": "one"}])]}},
        about("system", compact),
        _assistant("m2", {"type": "text", "text": "done"}),
        about("result", end),
    ]


def _assistant(mid: str, part: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"type": "assistant", "message": {"id": mid, "role": "assistant", "model": "claude-x", "content": [part], "usage": usage}}


def _result(call: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_stream_gives_tools_model_usage_and_cost_and_joins_split_messages(wrapped: bool) -> None:
    trace = only(read_lines(stream(wrapped=wrapped)))
    assert [message.role for message in trace.messages] == ["assistant", "tool", "tool", "assistant"]
    assert [tool.name for tool in trace.tools] == ["Bash", "Read"]
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.cached_tokens, trace.usage.cost_usd) == (100, 90, 0.5)
    assert (trace.meta["num_turns"], trace.meta["status"], trace.model) == (2, "success", "claude-x")
    assert [(event.kind, event.before_message, event.tokens_before) for event in trace.events] == [("compaction", 3, 1000)]
    assert not trace.warnings


def test_an_interrupted_run_has_no_usage_and_a_resumed_one_says_what_its_usage_covers() -> None:
    rows = stream(wrapped=True)
    assert only(read_lines(rows[:-1])).usage is None
    resumed = only(read_lines([*rows, rows[0], _assistant("m3", {"type": "text", "text": "more"})]))
    assert resumed.turns == 3
    assert [(warning.where, warning.kind) for warning in resumed.warnings] == [("line 8", "changed")]


def test_a_side_agent_s_messages_are_an_event_and_another_session_is_another_trace() -> None:
    rows = stream(wrapped=False)
    side = _assistant("x1", {"type": "text", "text": "aside"}) | {"parent_tool_use_id": "c1"}
    trace = only(read_lines([*rows[:2], side, *rows[2:]]))
    assert trace.turns == 2
    assert (trace.events[0].kind, trace.events[0].text) == ("subagent", "assistant: aside")
    second = [{**row, "session_id": "s2"} for row in rows]
    assert [found.turns for found in read_lines([*rows, *second])] == [2, 2]


@pytest.mark.parametrize("name", ["20251222_223240-call-issue-ready-now-to.jsonl", "20251223_060101-call-issue-ready-now-to.jsonl"])
def test_real_streams_keep_every_message_and_text(real_traces: Path, name: str) -> None:
    path = real_traces / FOLDER / name
    trace = only(read_traces(path))
    bodies = [row["message"] for row in raw_values(path) if row["type"] in ("user", "assistant")]
    parts = [part for body in bodies for part in body["content"] if isinstance(part, dict)]
    turns = len({body["id"] for body in bodies if body["role"] == "assistant"})
    calls, results = (
        len({part[key] for part in parts if part["type"] == kind}) for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id"))
    )
    assert counts(trace) == (turns, calls, results)
    texts = [part["text"] for part in parts if "text" in part]
    for part in parts:
        content = part.get("content")
        texts += [content] if isinstance(content, str) else [piece["text"] for piece in content or []]
    assert told([trace]).misses(texts) == []
