"""The readers of benchmark runs and call logs, on small files made by hand and on variants of them."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import Trace, read_bytes, read_traces
from tests.trajectory.formats.told import counts, numbers, only, raw_values, read_lines, read_value

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
EXPECTED = {
    "tau_bench.json": ("tau-bench", [(2, 1, 1), (1, 1, 1)]),
    "tau2_bench.json": ("tau2-bench", [(3, 2, 2)]),
    "swe_agent_v0.traj": ("swe-agent-traj", [(2, 0, 0)]),
    "swe_agent_v1.traj": ("swe-agent-traj", [(2, 3, 3)]),
    "mini_swe_agent.traj.json": ("mini-swe-agent", [(2, 2, 1)]),
    "mini_swe_agent_legacy.json": ("mini-swe-agent", [(2, 0, 0)]),
    "openhands_v0.jsonl": ("openhands-v0-events", [(2, 3, 2)]),
    "openhands_v0_pairs.json": ("openhands-v0-events", [(2, 2, 1)]),
    "openhands_v1.jsonl": ("openhands-v1-events", [(2, 2, 2)]),
    "openhands_v1_run": ("openhands-v1-events", [(2, 2, 2)]),
    "openhands_completion.json": ("openhands-llm-completion-log", [(2, 2, 1)]),
    "request_log.jsonl": ("llm-request-response-log", [(3, 2, 2)]),
    "verifiers.jsonl": ("verifiers-results", [(2, 2, 2), (1, 0, 0)]),
    "anthropic.json": ("anthropic-messages", [(2, 2, 2)]),
    "acm_run.json": ("acm-run", [(4, 3, 3)]),
    "browsecomp_plus.jsonl": ("acm-run", [(2, 1, 1)]),
    "generic_human_ai.jsonl": ("generic", [(3, 1, 1), (1, 0, 0)]),
    "openai_chat.json": ("openai-chat", [(2, 2, 2)]),
}
"""File -> format, and (turns, calls, results) of each trace in it."""


def source(name: str) -> Any:
    """The value of a one-value fixture, fresh, to be changed by a test."""
    return raw_values(FIXTURES / name)[0]


def trace_of(name: str) -> Trace:
    return read_traces(FIXTURES / name)[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fixture_is_told_by_its_content_and_read_with_the_right_counts(name: str) -> None:
    traces = read_traces(FIXTURES / name)
    assert ({trace.format for trace in traces}, [counts(trace) for trace in traces]) == ({EXPECTED[name][0]}, EXPECTED[name][1])
    assert not [found for trace in traces for found in violations(trace.messages)]


@pytest.mark.parametrize("name", [name for name in EXPECTED if "." in name])
def test_unknown_fields_never_change_what_is_read(name: str) -> None:
    values = raw_values(FIXTURES / name)
    noisy = b"\n".join(orjson.dumps(_noise(value)) for value in values)
    plain, loud = read_traces(FIXTURES / name), read_bytes(noisy, name).traces
    assert [trace.format for trace in plain] == [trace.format for trace in loud]
    assert [trace.messages for trace in plain] == [trace.messages for trace in loud]


def _noise(value: Any) -> Any:
    if isinstance(value, list):
        return [_noise(item) for item in value]
    if isinstance(value, dict):
        speaks = "role" in value or "kind" in value or "from" in value
        return {key: _noise(item) if key != "arguments" else item for key, item in value.items()} | (
            {"zz_new": {"a": [1]}} if speaks else {}
        )
    return value


def test_one_episode_that_cannot_be_read_does_not_hide_the_others() -> None:
    episodes = source("tau_bench.json")
    episodes.insert(1, {"task_id": 5, "traj": "gone"})
    episodes.insert(2, {"task_id": 6, "traj": [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "x", "content": "?"}]})
    reading = read_bytes(orjson.dumps(episodes), "t.json")
    assert [trace.task_id for trace in reading.traces] == ["3", "4"]
    assert [item.where for item in reading.rejected] == ["[1]", "[2] traj[1]"]


def test_a_single_tau_episode_with_object_arguments_and_number_ids_is_read() -> None:
    episode = source("tau_bench.json")[0]
    call = episode["traj"][2]["tool_calls"][0]
    call["function"]["arguments"], call["id"], episode["traj"][3]["tool_call_id"] = {"side": "window"}, 0, "0"
    trace = only(read_value(episode))
    assert trace.reward == 1.0 and trace.meta["instruction"] == "You want a window seat."
    assert trace.messages[2].tool_calls[0].arguments == '{"side":"window"}'
    assert counts(trace) == (2, 1, 1)


def test_tau2_keeps_the_users_own_tool_calls_as_user_text_with_an_event() -> None:
    trace = trace_of("tau2_bench.json")
    assert trace.messages[0].content == "Ask for the number first."
    texts = [message.content for message in trace.messages if message.role == "user"]
    assert "[the user runs toggle_data({})]" in texts and "Mobile data is now ON" in texts
    assert [event.data["id"] for event in trace.events] == ["u1", "u1"]
    failed = [message for message in trace.messages if message.error]
    assert [message.content for message in failed] == ["no such plan"]
    assert trace.usage and (trace.usage.input_tokens, trace.reward, trace.meta["domain"]) == (210, 1.0, "telecom")


def test_tau2_without_a_policy_usage_or_timestamps_warns_and_goes_on() -> None:
    results = source("tau2_bench.json")
    del results["info"]
    for message in results["simulations"][0]["messages"]:
        message.pop("usage", None), message.pop("cost", None)
    trace = only(read_value(results))
    assert trace.usage is None and trace.messages[0].role == "assistant"
    assert any("policy" in warning.where for warning in trace.warnings)


def test_swe_agent_demonstrations_are_user_text_before_the_first_turn() -> None:
    trace = trace_of("swe_agent_v0.traj")
    assert [message.role for message in trace.messages[:4]] == ["system", "user", "user", "user"]
    assert trace.messages[2].content == "Demo answer\n```\nls\n```" and trace.messages[2].name == "demonstration-assistant"
    assert trace.usage and (trace.usage.output_tokens, trace.usage.cost_usd) == (20, 0.5)
    assert trace.events[-1].text == "diff --git" and trace.meta["exit_status"] == "submitted"


def test_swe_agent_tells_what_its_history_processor_cut() -> None:
    trace = trace_of("swe_agent_v1.traj")
    assert (trace.task_id, trace.model) == ("repo__name-12", "model-y")
    edit = trace.events[0]
    assert (edit.kind, edit.text) == ("context_edit", "Old environment output: (1 line omitted)")
    assert trace.messages[edit.before_message].content == "Read both."


def test_swe_agent_without_a_history_is_rebuilt_from_its_steps() -> None:
    run = source("swe_agent_v1.traj")
    del run["history"]
    trace = only(read_value(run))
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert any("rebuilt" in warning.text for warning in trace.warnings)


def test_swe_agent_attempts_are_traces_of_their_own() -> None:
    run = source("swe_agent_v0.traj")
    assert [counts(trace) for trace in read_value({"attempts": [run, run], "info": {}})] == [(2, 0, 0), (2, 0, 0)]


def test_mini_swe_agent_finds_usage_in_the_response_and_closes_with_an_event() -> None:
    trace = trace_of("mini_swe_agent.traj.json")
    first = trace.messages[2]
    assert first.thinking == "First I look." and first.usage and first.usage.cached_tokens == 40
    assert trace.events[-1].data["exit_status"] == "Submitted"
    assert (trace.task_id, trace.model) == ("repo__name-7", "model-z")


def test_openhands_actions_of_one_response_are_one_turn_with_parallel_calls() -> None:
    trace = trace_of("openhands_v0.jsonl")
    turn = next(message for message in trace.messages if message.role == "assistant")
    assert [call.name for call in turn.tool_calls] == ["execute_bash", "think"]
    assert turn.usage and (turn.usage.input_tokens, turn.usage.cached_tokens) == (30, 20)
    results = [message.content for message in trace.messages if message.role == "tool"]
    assert results == ["[head]\na.py\n[exit 0]", "Your thought has been logged."]
    assert [event.kind for event in trace.events] == ["note", "memory_read", "compaction"]
    assert trace.events[2].text == "Two files were listed."
    assert trace.messages[1].images[0].media_type == "image/png"


def test_openhands_files_of_2024_give_calls_named_after_the_action() -> None:
    trace = trace_of("openhands_v0_pairs.json")
    assert [(call.name, call.arguments) for message in trace.messages for call in message.tool_calls] == [
        ("run", '{"command":"echo hello"}'),
        ("finish", '{"outputs":{}}'),
    ]
    assert trace.messages[2].content == "hello"


def test_an_openhands_episode_without_a_task_event_takes_its_instruction() -> None:
    episode = source("openhands_v0.jsonl")
    episode["history"] = [event for event in episode["history"] if event.get("action") not in ("message", "recall")]
    trace = only(read_value(episode))
    assert [message.role for message in trace.messages[:3]] == ["system", "user", "assistant"]
    assert trace.messages[1].content == "Fix the parser."


def test_openhands_v1_joins_the_calls_of_one_response_and_keeps_condensations() -> None:
    trace = trace_of("openhands_v1_run")
    turn = trace.messages[2]
    assert (turn.content, turn.thinking, len(turn.tool_calls)) == ("Two looks at once.", "I think so.", 2)
    assert trace.messages[1].content == "Count files.\nSkill: be brief."
    assert [message.error for message in trace.messages if message.role == "tool"] == [False, True]
    assert [(event.kind, event.text) for event in trace.events] == [("compaction", "One file.")]
    recorded = trace_of("openhands_v1.jsonl")
    assert recorded.usage and (recorded.model, recorded.usage.input_tokens) == ("model-v", 70)


def test_openhands_v1_lines_that_name_the_kind_event_and_flatten_messages_are_read() -> None:
    call = {"id": "g", "name": "grep", "arguments": "{}"}
    result = {"content": [{"type": "text", "text": "one match"}]}
    trace = only(
        read_lines(
            [
                {"event": "MessageEvent", "role": "user", "content": [{"type": "text", "text": "Search."}]},
                {"event": "ActionEvent", "tool_call": call, "llm_response_id": "L", "action": {"kind": "GrepAction"}},
                {"event": "ObservationEvent", "tool_name": "grep", "tool_call_id": "g", "observation": result},
            ]
        )
    )
    assert (trace.format, counts(trace), trace.messages[0].content) == ("openhands-v1-events", (1, 1, 1), "Search.")


def test_a_failed_first_episode_does_not_hide_the_format() -> None:
    failed = {"task_id": 0, "reward": 0.0, "info": {"error": "EOF"}, "traj": [], "trial": 0}
    reading = read_bytes(orjson.dumps([failed, *source("tau_bench.json")]), "t.json")
    assert [trace.format for trace in reading.traces] == ["tau-bench"] * 2
    assert (reading.rejected[0].where, "EOF" in reading.rejected[0].reason) == ("[0]", True)
    lines = (
        orjson.dumps({"instance_id": "x", "history": [], "error": "no runtime"}) + b"\n" + (FIXTURES / "openhands_v0.jsonl").read_bytes()
    )
    reading = read_bytes(lines, "o.jsonl")
    assert ([trace.task_id for trace in reading.traces], reading.rejected[0].where) == (["org__repo-5"], "line 1")


def test_the_longest_request_wins_and_what_a_retry_dropped_is_told() -> None:
    trace = trace_of("request_log.jsonl")
    assert [message.usage.input_tokens for message in trace.messages if message.usage] == [10, 30, 40]
    assert [event.text for event in trace.events] == ["no call here", "Use a tool."]
    assert trace.usage and trace.usage.input_tokens == 100
    assert (trace.model, trace.meta["calls"]) == ("model-r", 4)


def test_requests_that_do_not_continue_each_other_are_traces_with_a_warning() -> None:
    records = raw_values(FIXTURES / "request_log.jsonl")
    other = [{"type": "request", "request_params": {"messages": [{"role": "user", "content": "Another task"}]}}]
    other += [{"type": "response", "response": {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}}]
    traces = read_lines([*records[:2], *other, *records[2:]])
    assert [counts(trace) for trace in traces] == [(3, 2, 2), (1, 0, 0)]
    assert [numbers(trace.warnings[-1].text) for trace in traces] == [[2, 1], [2, 2]]


def test_a_log_that_was_cut_before_its_last_answer_keeps_the_request() -> None:
    trace = only(read_lines(raw_values(FIXTURES / "request_log.jsonl")[:-1]))
    assert counts(trace) == (2, 2, 2)
    assert [warning.where for warning in trace.warnings] == ["line 7"]


def test_records_with_request_and_response_and_moving_cache_marks_join() -> None:
    mark = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    answer = [{"type": "tool_use", "id": "t", "name": "ls", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]
    first = {"request": {"system": "S", "messages": [{"role": "user", "content": [mark]}]}, "response": {"content": answer, "usage": {}}}
    later = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}, {"role": "user", "content": result}]
    second = {"request": {"system": "S", "messages": later}, "response": {"content": [{"type": "text", "text": "One."}]}}
    trace = only(read_lines([first, second]))
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert not trace.events


def test_verifiers_calls_given_as_json_text_answer_in_order() -> None:
    first, second = read_traces(FIXTURES / "verifiers.jsonl")
    assert [message.tool_call_id for message in first.messages if message.role == "tool"] == ["w1", "w2"]
    assert (first.question_id, first.reward, second.reward, first.tools[0].name) == ("9", 0.5, -1.0, "find")
    assert [message.content for message in second.messages] == ["Plain question", "Plain answer"]


def test_anthropic_results_come_before_the_users_words_and_thinking_stays_apart() -> None:
    trace = trace_of("anthropic.json")
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "tool", "tool", "user", "assistant"]
    assert (trace.messages[2].thinking, trace.messages[2].content) == ("Two reads.", "Reading.")
    assert trace.messages[4].error and trace.messages[4].content == "no file\n[image: image/png, 6 bytes]"
    bare = only(read_value(source("anthropic.json")["messages"]))
    assert (bare.format, counts(bare)) == ("anthropic-messages", (2, 2, 2))


def test_an_acm_run_without_its_raw_history_warns_and_keeps_the_operations() -> None:
    run = source("acm_run.json")
    run["history"] = [*run.pop("raw_history")[:2], {"role": "assistant", "content": "Exact Answer: Ada"}]
    trace = only(read_value(run))
    assert counts(trace) == (1, 0, 0) and len(trace.events) == 2
    assert [warning.where for warning in trace.warnings] == ["history", "mem_operations[0]", "mem_operations[1]"]


def test_a_browsecomp_run_keeps_reasoning_as_thinking_of_the_next_turn() -> None:
    trace = trace_of("browsecomp_plus.jsonl")
    assert (trace.messages[0].thinking, trace.messages[0].tool_calls[0].name) == ("I should search.", "search")
    assert trace.messages[-1].content == "It is x." and trace.question_id == "7"


def test_the_generic_reader_says_that_it_guessed_and_where() -> None:
    first, _ = read_traces(FIXTURES / "generic_human_ai.jsonl")
    assert first.warnings[0].where == "line 1 dialog.turns"
    assert "gpt = assistant" in first.warnings[0].text


def test_the_generic_reader_takes_a_prompt_that_grew_as_one_conversation() -> None:
    said = [{"speaker": "human" if number % 2 == 0 else "ai", "text": f"line {number}"} for number in range(6)]
    trace = only(read_value({"nodes": [{"seen": said[:2]}, {"seen": said[:4]}, {"seen": said}]}))
    assert trace.turns == 3
    runs = read_value({"runs": [{"seen": said}, {"seen": [{"speaker": "human", "text": "other"}, *said[1:]]}]})
    assert [one.turns for one in runs] == [3, 3]


def test_plain_chat_refuses_a_result_without_its_call_and_names_the_place() -> None:
    chat = source("openai_chat.json")
    chat["messages"][4]["tool_call_id"] = "nobody"
    (rejection,) = read_bytes(orjson.dumps(chat), "c.json").rejected
    assert rejection.where == "messages[4]" and "'nobody'" in rejection.reason


def test_plain_chat_keeps_images_as_placeholders_and_repeated_ids_apart() -> None:
    trace = trace_of("openai_chat.json")
    assert trace.messages[1].content == "What is in it?\n[image: image/png, 9 bytes]"
    assert [call.id for call in trace.messages[2].tool_calls] == ["d", "d#1"]
    assert (trace.messages[2].tool_calls[0].arguments, trace.messages[2].thinking) == ("not json", "A look helps.")
    assert [message.content for message in trace.messages if message.role == "tool"] == ["first", "second"]
