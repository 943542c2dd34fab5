"""The real files of telemetry, frameworks and exports: the counts of the collection's index, and no empty text."""

import json
from pathlib import Path

import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import read_traces
from tests.conftest import REAL_TRACES
from tests.trajectory.formats.told import counts, raw_values

COUNTS: dict[str, tuple[str, int, int, int, int]] = {
    "otel-genai/adk_live_spans.json": ("telemetry-spans", 1, 2, 1, 1),
    "otel-genai/openai_agents_genai_live_spans.json": ("telemetry-spans", 3, 8, 5, 5),
    "otel-genai/smolagents_live_spans.json": ("telemetry-spans", 1, 2, 2, 2),
    "otel-genai/otel_genai_convention_spans.json": ("telemetry-spans", 1, 2, 2, 2),
    "otel-genai/agentevals_jaeger_helm.json": ("telemetry-spans", 1, 2, 1, 1),
    "vercel-ai-otel/all-spans.json": ("telemetry-spans", 4, 5, 0, 0),
    "langsmith/langsmith_js_wrap_openai_reasoning.json": ("telemetry-spans", 1, 1, 0, 0),
    "mastra/agent-tool-call-trace.json": ("telemetry-spans", 1, 2, 1, 1),
    "nat-atof/exmp04_atof.jsonl": ("telemetry-spans", 1, 2, 1, 1),
    "trail-openinference/trail_swebench_72822db6.json": ("telemetry-spans", 1, 6, 0, 0),
    "claude-tap/codex_ws_multi_response_trace.jsonl": ("model-call-log", 1, 2, 1, 1),
    "http-cassette/opencode_native-zen-tool-loop.json": ("model-call-log", 1, 2, 1, 1),
    "chatgpt-export/chatgpt-export.json": ("chatgpt-export", 2, 9, 4, 5),
    "claude-ai-export/claude_ai_artifacts.json": ("claude-ai-export", 1, 10, 0, 0),
    "agent-tars/event-stream.jsonl": ("agent-tars", 1, 15, 14, 14),
    "exgentic/browsecompplus.trajectory.jsonl": ("exgentic", 1, 27, 27, 26),
    "agentnet-opencua/s_7f27a11115e596eb.json": ("computer-use-steps", 1, 11, 11, 0),
    "vercel-ai/react-agent-tool-calling.json": ("vercel-ui-messages", 1, 2, 2, 2),
}
"""File -> its format, traces, turns, calls and results. All are those of the index, but for the four that the next tests look at."""


@pytest.mark.skipif(not REAL_TRACES.is_dir(), reason="the real traces are not next to this checkout")
@pytest.mark.parametrize("name", COUNTS)
def test_a_real_file_gives_the_counts_of_the_index_and_no_empty_text(name: str) -> None:
    form, traces, *expected = COUNTS[name]
    found = read_traces(REAL_TRACES / name)
    assert {trace.format for trace in found} == {form} and len(found) == traces
    assert [sum(column) for column in zip(*map(counts, found), strict=True)] == expected
    for trace in found:
        assert not violations(trace.messages)
        assert not [message for message in trace.messages if message.role in ("user", "tool", "system") and not message.content.strip()]
        assert all(said.content.strip() or said.tool_calls or said.thinking for said in trace.messages if said.role == "assistant")
        assert not [warning for warning in trace.warnings if warning.kind == "empty"]


def test_the_index_counts_vercels_model_calls_and_not_the_earlier_answer_in_a_prompt(real_traces: Path) -> None:
    spans = raw_values(real_traces / "vercel-ai-otel/all-spans.json")[0]
    prompts = [json.loads(span["attributes"]["ai.prompt.messages"]) for span in spans if "ai.prompt.messages" in span["attributes"]]
    before = sum(message["role"] == "assistant" for prompt in prompts for message in prompt)
    assert (len(prompts), before) == (4, 1)  # four turns in the index; a turn of a trace is an assistant message, so five


def test_the_index_counts_a_span_of_trail_that_is_in_the_file_twice(real_traces: Path) -> None:
    spans = raw_values(real_traces / "trail-openinference/trail_swebench_72822db6.json")[0]["spans"]
    calls = [child for span in spans for child in span["child_spans"] if child["span_attributes"].get("openinference.span.kind") == "LLM"]
    repeated = [one for number, one in enumerate(calls) if one in calls[:number]]
    assert (len(calls), len(repeated)) == (7, 1)  # equal in every field, its id and its time included


def test_the_index_counts_a_step_of_vercels_stream_in_which_the_model_says_nothing(real_traces: Path) -> None:
    kinds = [chunk["type"] for chunk in raw_values(real_traces / "vercel-ai/react-agent-tool-calling.json")[0]]
    steps = " ".join(kinds).split("start-step")[1:]
    silent = [set(step.split()) for step in steps if not {"text-delta", "tool-input-start", "reasoning-delta"} & set(step.split())]
    assert (len(steps), silent) == (3, [{"tool-output-available", "finish-step"}])  # a turn of it would be empty


def test_the_index_counts_the_last_response_of_a_websocket_and_not_those_before_it(real_traces: Path) -> None:
    row = raw_values(real_traces / "claude-tap/codex_ws_multi_response_trace.jsonl")[0]
    events = row["response"]["ws_events"]
    done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
    answered = [item["type"] for item in row["request"]["body"]["input"]]
    assert (done, answered) == (["function_call", "message"], ["function_call_output"])  # two turns, one call, one result
