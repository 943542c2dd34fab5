"""Claude Code transcripts: the chain, split messages, side agents, compaction, sessions."""

import random
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import Trace, read_traces
from pamer_lab.trajectory.shared.steps import REWOUND
from tests.trajectory.formats.told import counts, only, raw_values, read_lines, told

FOLDER = "claude-code-jsonl"


def line(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """One transcript line; `mid` names the API message of an assistant line."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("mid"), "model": more.pop("model", "claude-x"), "usage": more.pop("usage", None)}
    base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False, "message": message}
    return {**base, "timestamp": f"2026-01-01T00:00:{int(uuid[1:]):02d}Z", **more}


def use(call: str, **given: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": "Bash", "input": given}]


def result(call: str, text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text}]


def session() -> list[dict[str, Any]]:
    """Two parallel calls, the first result logged before the second call; thinking apart; then an answer."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7, "output_tokens": 2}
    return [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        line("u1", None, "user", "fix the bug"),
        line("u2", "u1", "assistant", [{"type": "thinking", "thinking": "hm", "signature": "x"}], mid="m1", usage=usage),
        line("u3", "u2", "assistant", use("c1", command="ls"), mid="m1", usage=usage),
        line("u4", "u3", "user", result("c1", "a.py")),
        line("u5", "u3", "assistant", use("c2", command="cat a.py"), mid="m1", usage={**usage, "output_tokens": 9}),
        {"type": "progress", "uuid": "p1", "parentUuid": "u5", "sessionId": "s1", "data": {"type": "bash_progress"}},
        line("u6", "u5", "user", result("c2", "print(1)")),
        line("u7", "u6", "assistant", [{"type": "text", "text": "done"}], mid="m2"),
    ]


def test_lines_of_one_api_message_are_one_turn_with_its_last_usage() -> None:
    trace = only(read_lines(session()))
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    first = trace.messages[1]
    assert (first.thinking, first.content, [call.id for call in first.tool_calls]) == ("hm", "", ["c1", "c2"])
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.cached_tokens, first.usage.output_tokens) == (50, 40, 9)
    assert trace.messages[4].usage is None
    assert trace.meta["other_lines"] == {"file-history-snapshot": 1, "progress/bash_progress": 1}
    assert trace.format == FOLDER
    assert trace.model == "claude-x"


def test_order_is_the_chain_s_whatever_the_order_of_lines() -> None:
    expected = only(read_lines(session())).messages
    for seed in range(20):
        lines = session()
        random.Random(seed).shuffle(lines)
        assert only(read_lines(lines)).messages == expected
    for row in (lines := session()):
        row.pop("timestamp", None)
    assert only(read_lines(reversed(lines))).messages[-1].content == "done"


def test_a_compaction_is_an_event_and_its_summary_the_user_message_it_was() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": "u8", "parentUuid": None}
    boundary |= {"logicalParentUuid": "u7", "sessionId": "s1", "compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    summary = line("u9", "u8", "user", "The story so far", isCompactSummary=True)
    after = line("u10", "u9", "assistant", [{"type": "text", "text": "on we go"}], mid="m3")
    trace = only(read_lines([*session(), boundary, summary, after]))
    event = trace.events[0]
    assert (event.kind, event.before_message, event.tokens_before, event.data) == ("compaction", 5, 155_000, {"trigger": "auto"})
    assert (trace.messages[5].role, trace.messages[5].content) == ("user", "The story so far")
    assert trace.turns == 3
    assert not trace.warnings


def test_side_agents_are_events_and_never_turns_of_the_main_agent() -> None:
    rows = session()
    side = [
        line("u20", None, "user", "look around", isSidechain=True),
        line("u21", "u20", "assistant", use("s1", command="find"), mid="side1", isSidechain=True),
        line("u22", "u21", "user", result("s1", "b.py"), isSidechain=True),
        line("u23", "u22", "assistant", [{"type": "text", "text": "only b.py"}], mid="side2", isSidechain=True),
    ]
    mixed = [*rows[:4], side[0], rows[4], *side[1:3], *rows[5:7], side[3], *rows[7:]]
    trace = only(read_lines(mixed))
    assert trace.messages == only(read_lines(rows)).messages
    event = only_event(trace, "subagent")
    assert (event.data["turns"], event.data["lines"], event.before_message) == (2, 4, 2)
    assert not told([trace]).misses(["look around", "find", "b.py", "only b.py"])


def test_a_file_of_a_side_agent_alone_is_a_trace() -> None:
    rows = [row | {"isSidechain": True, "agentId": "a1"} for row in session() if "uuid" in row]
    trace = only(read_lines(rows))
    assert (trace.turns, trace.meta["agent"], trace.events) == (2, "a1", ())


def test_sessions_that_share_no_chain_are_traces_of_their_own_and_a_resumed_one_is_not() -> None:
    other = [
        row | {"sessionId": "s2", "uuid": row["uuid"] + "0", "parentUuid": row["parentUuid"] and row["parentUuid"] + "0"}
        for row in session()[1:]
    ]
    assert [trace.turns for trace in read_lines([*session(), *other])] == [2, 2]
    resumed = line("u30", "u7", "user", "one more thing", sessionId="s2")
    assert only(read_lines([*session(), resumed])).messages[-1].content == "one more thing"


def test_messages_that_name_no_session_belong_to_their_parent_s() -> None:
    rows = session()
    for row in rows[4:]:
        row.pop("sessionId", None)
    assert only(read_lines(rows)).messages == only(read_lines(session())).messages


def test_a_rewound_conversation_keeps_what_was_abandoned_and_says_where() -> None:
    again = [line("u11", "u4", "user", "no, otherwise"), line("u12", "u11", "assistant", [{"type": "text", "text": "so"}], mid="m9")]
    trace = only(read_lines([*session(), *again]))
    assert trace.turns == 3
    assert only_event(trace, "context_edit").before_message == 5
    assert trace.warnings[0].text == REWOUND


def test_repeated_lines_queued_prompts_and_unanswered_calls_are_read_as_they_were() -> None:
    rows = session()[:-2]
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "hurry", "sessionId": "s1"}
    attached = {
        "type": "attachment",
        "uuid": "u15",
        "parentUuid": "u5",
        "sessionId": "s1",
        "attachment": {"type": "queued_command", "prompt": "hurry"},
    }
    trace = only(read_lines([*rows, rows[1], queued, attached]))
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "user"]
    assert only_event(trace, "note").text == "hurry"
    assert counts(trace) == (1, 2, 1)


def test_unknown_parts_and_stray_values_become_warnings_with_a_place() -> None:
    rows = [*session(), line("u13", "u7", "user", [{"type": "hologram", "data": "zzz"}]), 17]
    trace = only(read_lines(rows))
    assert [warning.where for warning in trace.warnings] == ["line 11", "line 10"] and "'hologram'" in trace.warnings[1].text
    assert "zzz" in trace.messages[-1].content


def only_event(trace: Trace, kind: str) -> Any:
    found = [event for event in trace.events if event.kind == kind]
    assert len(found) == 1
    return found[0]


NAMES = ["5a_c45bc32212_0.full.jsonl", "d0_161e0df1cb_0.full.jsonl", "e2_6858f99834_0.full.jsonl", "e5_8e27b1ba0d_0.full.jsonl"]


@pytest.mark.parametrize("name", NAMES)
def test_real_transcripts_keep_every_message_and_text(real_traces: Path, name: str) -> None:
    path = real_traces / FOLDER / name
    trace = only(read_traces(path))
    bodies = [row["message"] for row in raw_values(path) if row.get("type") in ("user", "assistant")]
    parts = [part for body in bodies if isinstance(body["content"], list) for part in body["content"]]
    turns = len({body["id"] for body in bodies if body["role"] == "assistant"})
    calls = len({part["id"] for part in parts if part["type"] == "tool_use"})
    results = len({part["tool_use_id"] for part in parts if part["type"] == "tool_result"})
    assert counts(trace) == (turns, calls, results)
    texts = [body["content"] for body in bodies if isinstance(body["content"], str)]
    texts += [part.get(key) for part in parts for key in ("text", "thinking") if part.get(key)]
    for part in parts:
        content = part.get("content")
        texts += [content] if isinstance(content, str) else [piece["text"] for piece in content or [] if piece["type"] == "text"]
    assert told([trace]).misses(texts) == []
