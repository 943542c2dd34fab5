"""The real files of telemetry, frameworks and exports: the counts of the collection's index, and no empty text."""

import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import read_traces
from tests.conftest import REAL_TRACES
from tests.trajectory.formats.told import counts

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
    "chatgpt-export/chatgpt-export.json": ("chatgpt-export", 2, 9, 4, 4),
    "claude-ai-export/claude_ai_artifacts.json": ("claude-ai-export", 1, 10, 0, 0),
    "agent-tars/event-stream.jsonl": ("agent-tars", 1, 15, 14, 14),
    "exgentic/browsecompplus.trajectory.jsonl": ("exgentic", 1, 27, 27, 26),
    "agentnet-opencua/s_7f27a11115e596eb.json": ("computer-use-steps", 1, 11, 11, 0),
    "vercel-ai/react-agent-tool-calling.json": ("vercel-ui-messages", 1, 2, 2, 2),
}
"""File -> its format, traces, turns, calls and results. All are those of the index, but for these:

- Vercel's spans: four model calls, and one earlier answer that a prompt already holds (index: 4 turns);
- TRAIL: one model call is in the file twice, with the same span id (index: 7 turns);
- Vercel's stream: of three steps, one holds only the tools' outputs, which belong to the step before (index: 3 turns);
- ChatGPT: two of five outputs answer one call and are one result (index: 5 results);
- the WebSocket log: its events hold one more call than its last response, which is all that the index counts (1 turn, 0 calls)."""


@pytest.mark.skipif(not REAL_TRACES.is_dir(), reason="the real traces are not beside this checkout")
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
