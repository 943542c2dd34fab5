"""Responses API logs: Codex rollouts in both envelopes, and NeMo Gym rollouts."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_traces
from tests.trajectory.formats.told import counts, only, raw_values, read_lines, told

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")


def items() -> list[dict[str, Any]]:
    """A prompt, two parallel calls and their results, a call with free input, a search, an answer."""
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "count the files"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "list first"}], "encrypted_content": "zz"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Listing."}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "local_shell_call", "call_id": "c2", "status": "completed", "action": {"type": "exec", "command": ["pwd"]}},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a\\nb","metadata":{"exit_code":1,"duration_seconds":0.1}}'},
        {"type": "function_call_output", "call_id": "c2", "output": {"content": "/home", "success": True}},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c3", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "Success"},
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "ls"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
    ]


def old_rollout() -> list[dict[str, Any]]:
    header = {"id": "r1", "timestamp": "2025-08-06T18:02:11Z", "instructions": "Be brief.", "git": None}
    return [header, {"record_type": "state"}, *items(), {"record_type": "state"}]


def new_rollout() -> list[dict[str, Any]]:
    def wrap(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}

    def count(total: int) -> dict[str, Any]:
        last = {"input_tokens": 90, "cached_input_tokens": 50, "output_tokens": 7, "total_tokens": 97}
        info = {"last_token_usage": last, "total_token_usage": {"input_tokens": total, "output_tokens": 7, "cached_input_tokens": 0}}
        return wrap("event_msg", {"type": "token_count", "info": info})

    given = [wrap("response_item", item) for item in items()]
    meta = {"id": "r2", "cwd": "/tmp/x", "cli_version": "0.65.0", "base_instructions": {"text": "Be brief."}}
    return [
        wrap("session_meta", meta),
        wrap("turn_context", {"model": "gpt-x", "effort": "high"}),
        *given[:1],
        wrap("event_msg", {"type": "user_message", "message": "count the files"}),
        *given[1:5],
        wrap("event_msg", {"type": "agent_message", "message": "Listing."}),
        wrap("event_msg", {"type": "agent_reasoning", "text": "list first"}),
        count(90),
        count(90),
        *given[5:],
        wrap("response_item", {"type": "ghost_snapshot", "ghost_commit": {}}),
    ]


@pytest.mark.parametrize("rows", [old_rollout(), new_rollout()], ids=["bare items", "envelope"])
def test_both_envelopes_of_a_codex_rollout_give_the_same_conversation(rows: list[dict[str, Any]]) -> None:
    trace = only(read_lines(rows))
    assert trace.format == "codex-rollout"
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [message.role for message in trace.messages] == roles
    assert counts(trace) == (3, 4, 3)  # the web search records a status and no outcome
    first = trace.messages[2]
    assert (first.content, first.thinking, [call.name for call in first.tool_calls]) == ("Listing.", "list first", ["shell", "local_shell"])
    assert [message.error for message in trace.messages if message.role == "tool"] == [True, False, False]
    assert trace.messages[5].tool_calls[0].arguments == "*** Begin Patch"
    assert trace.messages[7].content == "Two."
    assert not trace.warnings


def test_token_counts_are_the_usage_of_the_turn_before_them_and_are_not_counted_twice() -> None:
    trace = only(read_lines(new_rollout()))
    used = [message.usage for message in trace.messages if message.usage]
    assert [(usage.input_tokens, usage.cached_tokens, usage.output_tokens) for usage in used] == [(90, 50, 7)]
    assert trace.usage is not None and trace.usage.input_tokens == 90
    assert (trace.model, trace.meta["effort"], trace.meta["session"]) == ("gpt-x", "high", "r2")
    assert trace.meta["other_lines"] == {"ghost_snapshot": 1}


def test_a_compacted_line_is_an_event_and_its_summary_a_user_message() -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "carried over"}]}]
    compacted = {"timestamp": "t", "type": "compacted", "payload": {"message": "what happened", "replacement_history": history}}
    more = {"timestamp": "t", "type": "response_item", "payload": items()[-1]}
    late = {"timestamp": "t", "type": "response_item", "payload": {"type": "function_call_output", "call_id": "gone", "output": "late"}}
    trace = only(read_lines([*new_rollout(), compacted, more, late]))
    event = trace.events[0]
    assert (event.kind, event.text, event.tokens_before, event.data["replacement"]) == ("compaction", "what happened", 97, ["carried over"])
    assert [message.content for message in trace.messages[-3:]] == ["what happened", "Two.", "late"]
    assert trace.messages[-1].result and len(trace.warnings) == 1


def test_event_texts_that_no_item_holds_are_kept_and_a_rollout_of_events_alone_is_read() -> None:
    rows = [*new_rollout(), {"type": "event_msg", "payload": {"type": "agent_message", "message": "unheard"}}]
    assert [(event.kind, event.text) for event in only(read_lines(rows)).events] == [("note", "unheard")]
    bare = [{"type": "session_meta", "payload": {"id": "x"}}]
    bare += [{"type": "event_msg", "payload": {"type": kind, "message": kind}} for kind in ("user_message", "agent_message")]
    assert [message.role for message in only(read_lines(bare)).messages] == ["user", "assistant"]


def rollout(**more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    tools = [{"type": "function", "name": "shell", "description": "runs", "parameters": {"type": "object"}}]
    params = {"input": items()[:1], "instructions": "Be brief.", "tools": tools, "metadata": {"instance_id": "i-1"}}
    return {"responses_create_params": params, "response": {"model": "m", "output": items()[1:], "usage": usage}, "reward": -0.5} | more


def test_a_gym_rollout_keeps_tools_usage_reward_and_groups_parallel_calls() -> None:
    first, second = read_lines([rollout(), rollout(reward=1, _ng_rollout_index=1)])
    assert (first.format, first.task_id, first.question_id, first.reward, second.reward) == (
        "openai-responses-nemo-gym",
        "i-1",
        "i-1",
        -0.5,
        1.0,
    )
    assert counts(first) == (3, 4, 3)
    assert first.messages[0].content == "Be brief."
    assert first.tools[0].name == "shell"
    assert first.usage is not None and first.usage.cached_tokens == 4
    assert first.trace_id != second.trace_id


def test_unanswered_calls_stay_and_an_empty_input_takes_the_task_from_metadata() -> None:
    calls = [{"type": "function_call", "name": "bash", "arguments": "{}", "call_id": f"k{n}"} for n in range(3)]
    answer = {"type": "function_call_output", "call_id": "k0", "output": "all three"}
    params = {"input": [], "metadata": {"problem_statement": "solve it"}}
    trace = only(read_lines([rollout(responses_create_params=params, response={"output": [*calls, answer, *calls]})]))
    assert counts(trace) == (2, 6, 1)
    assert trace.messages[0].content == "solve it"
    assert "'problem_statement'" in trace.warnings[0].text


def test_real_codex_rollout_keeps_every_item(real_traces: Path) -> None:
    path = next((real_traces / "codex-rollout").glob("*.jsonl"))
    rows = raw_values(path)
    trace = only(read_traces(path))
    assert counts(trace) == _expected(rows)
    texts = [part["text"] for row in rows for part in row.get("content") or row.get("summary") or []]
    texts += [row[key] for row in rows for key in ("output", "arguments", "instructions") if row.get(key)]
    assert told([trace]).misses(texts) == []


@pytest.mark.parametrize("name", ["anyterminal_hermes.jsonl", "biomnibench_da.jsonl", "finance_agent_v2.jsonl"])
def test_real_gym_rollouts_keep_every_item(real_traces: Path, name: str) -> None:
    path = real_traces / "openai-responses-nemo-gym" / name
    rows, traces = raw_values(path), read_traces(path)
    assert [counts(trace) for trace in traces] == [_expected(row["response"]["output"]) for row in rows]
    assert [trace.reward for trace in traces] == [row["reward"] for row in rows]
    for row, trace in zip(rows, traces, strict=True):
        every = [*row["responses_create_params"]["input"], *row["response"]["output"]]
        texts = [item[key] for item in every for key in ("output", "arguments") if item.get(key)]
        for item in every:
            content = item.get("content") or item.get("summary") or []
            texts += [content] if isinstance(content, str) else [part["text"] for part in content]
        assert told([trace]).misses(texts) == []


def _expected(rows: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Turns begin at a model's item that follows something that is not the model's."""
    turns, inside = 0, False
    for row in rows:
        own = row.get("type") in ("reasoning", *CALLS) or row.get("role") == "assistant"
        turns += own and not inside
        inside = own or (inside and "record_type" in row)
    calls = sum(row.get("type") in CALLS for row in rows)
    return turns, calls, sum(str(row.get("type")).endswith("_output") for row in rows)
