"""Hand-made files of every format, and the real files of the formats beside the required ones, against counts of our own."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from pamer_lab.trajectory import Trace, read_all, read_bytes, read_traces
from tests.trajectory.formats.told import counts, only, raw_values, strings, told

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
PYTHONS_WORDS = re.compile(r"unexpected|Expecting|\w+Error\b|Traceback|object has no|not subscriptable")
"""What a refusal says only where a reader failed."""

MADE: dict[str, tuple[str, list[tuple[int, int, int]], list[str]]] = {
    "atif.json": ("atif", [(2, 2, 3)], ["Be brief.", "hm", "typed"]),
    "atif-steps.jsonl": ("atif", [(2, 2, 3)], ["Be brief.", "hm", "typed"]),
    "claude-code.jsonl": ("claude-code-jsonl", [(3, 2, 2)], ["fix the bug", "hm", "The story so far", "nothing here", "on we go"]),
    "claude-stream.jsonl": ("claude-agent-sdk-stream", [(2, 2, 2)], ["done", "one"]),
    "codex-rollout-envelope.jsonl": ("codex-rollout", [(3, 4, 3)], ["count the files", "list first", "*** Begin Patch", "what happened"]),
    "codex-rollout-items.jsonl": ("codex-rollout", [(3, 4, 3)], ["Be brief.", "Two."]),
    "gemini-report.json": ("gemini-contents", [(3, 3, 3)], ["plan", "no such file", "cut"]),
    "inspect-log.json": ("inspect-eval-log", [(2, 2, 2), (2, 2, 2)], ["the question", "hm", "too slow"]),
    "langgraph-state.json": ("langgraph-thread-state", [(2, 4, 3)], ["files: none", "hm", "gone"]),
    "nemo-gym.jsonl": ("openai-responses-nemo-gym", [(3, 4, 3), (3, 4, 3)], ["Be brief.", "list first", "/home"]),
    "agentbench-runs.jsonl": ("agentbench-runs", [(1, 0, 0), (1, 0, 0)], ["FINISH([1])"]),
    "alfworld-steps.jsonl": ("alfworld-openmanus", [(2, 0, 0), (2, 0, 0)], ["room 1, step 1", "<action>go 0</action>"]),
    "alfworld-trajectory.json": ("alfworld-openmanus", [(1, 0, 0)], ["a room", "<think>x</think> look"]),
    "bfcl-multi-turn.json": ("bfcl-multi-turn", [(2, 2, 2), (1, 0, 0)], ["List the shed", "/shed", "A rake."]),
    "augment-session.json": ("augment-session", [(2, 1, 1)], ["count the rakes", "list the shed", "rake rake", "Two rakes."]),
    "junie-events.jsonl": (
        "junie-events",
        [(3, 2, 2)],
        ["count the rakes", "the shed may hold them", "rake rake", "needle.txt", "Two rakes."],
    ),
    "crewai-tasks.json": ("crewai-task-log", [(2, 0, 0)], ["Count the rakes.", "The shed holds two rakes."]),
    "chat-pairs.json": ("chat-pairs", [(3, 0, 0)], ["and the hoes?", "Shall I go on?"]),
    "browser-use-history.json": ("browser-use-history", [(2, 3, 3)], ["http://example.org", "not there", "beans", "m1"]),
    "codex-tui.jsonl": ("codex-tui-session-log", [(2, 1, 1)], ["list it", "hm", "Listing.", "One file."]),
    "google-adk-session.json": ("google-adk-session", [(2, 1, 1)], ["Water?", "It will rain.", "Rain is coming."]),
    "kimi-cli.jsonl": ("kimi-cli-jsonl", [(2, 1, 1)], ["You are a helper.", "hm", "text of a", "What follows is short."]),
    "kiro-cli.jsonl": ("kiro-cli", [(2, 1, 1)], ["Are the beans up?", "hm", "I look.", "beans: 12 up", "Twelve are up."]),
    "langfuse-sequence.json": ("langfuse-trace-export", [(2, 2, 2)], ["Be kind.", "Both?", "wet", "Wet and dry."]),
    "langfuse-trace.json": ("langfuse-trace-export", [(2, 1, 1)], ["Weather?", "It rains."]),
    "letta-agent-file.af": ("letta-agent-file", [(2, 2, 2)], ["You garden. Memory: beans, peas.", "Hello there", "sent", "likes beans"]),
    "letta-evals-results.jsonl": ("letta-evals-results", [(2, 1, 1)], ["How many beans?", "Count them.", "Twelve.", "close"]),
    "moatless-tree.json": (
        "moatless-tree",
        [(2, 2, 2)],
        ["You fix gardens.", "<task>fix</task>", "Found 1", "All done", "a branch that was left"],
    ),
    "monocle-spans.json": ("otel-monocle-spans", [(2, 2, 2)], ["Be kind.", "wet", "Wet and dry."]),
    "openagents-recorder.json": ("openagents-recorder", [(2, 3, 2)], ["Tidy the shed", "Look first.", "locked", "rake, spade"]),
    "opencode-events.jsonl": (
        "opencode-events",
        [(2, 2, 2)],
        ["Look it up.", "You keep a garden.\nBe short.", "no such file", "Side work is done."],
    ),
    "pi-session.jsonl": ("pi-session-jsonl", [(2, 1, 1)], ["look", "hm", "a.py", "we looked", "pwd\n/tmp"]),
    "sharegpt-toolcall.json": ("sharegpt-toolcall", [(2, 1, 1), (2, 1, 0)], ["Count.", "Sum 1 and 2", "It is 3.", "add(1, 2"]),
    "toolbench-tree.json": ("toolbench-dfs-tree", [(2, 1, 1)], ["It rains.", "yes"]),
    "vercel-generate-text.json": ("vercel-generate-text", [(2, 1, 1)], ["Be brief.", "Is the shed dry?", "hm", '{"sky":"wet"}', "No."]),
}
"""File -> its format, (turns, calls, results) of each trace, and texts that must be found."""


@pytest.mark.parametrize("name", MADE)
def test_a_hand_made_file_is_detected_counted_and_kept(name: str) -> None:
    form, expected, texts = MADE[name]
    traces = read_traces(FIXTURES / name)
    assert {trace.format for trace in traces} == {form}
    assert [counts(trace) for trace in traces] == expected
    assert told(traces).misses(texts) == []


def made(name: str) -> Trace:
    return read_traces(FIXTURES / name)[0]


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("refused-*")))
def test_files_without_usable_messages_are_refused_with_the_reason(name: str) -> None:
    reading = read_all([FIXTURES / name])
    assert not reading.traces
    assert len(reading.rejected) == 1
    assert not PYTHONS_WORDS.search(reading.rejected[0].reason)


def test_recorded_compactions_keep_their_tokens() -> None:
    events = {name: made(name).events[0] for name in ("kimi-cli.jsonl", "pi-session.jsonl", "openagents-recorder.json")}
    assert {event.kind for event in events.values()} == {"compaction"}
    assert (events["kimi-cli.jsonl"].tokens_before, events["kimi-cli.jsonl"].tokens_after) == (900, 90)
    assert events["pi-session.jsonl"].tokens_before == 1234


@pytest.mark.parametrize(
    ("name", "turn", "usage"),
    [
        ("opencode-events.jsonl", 0, (65, 5, 50)),
        ("kimi-cli.jsonl", 0, (26, 2, 20)),
        ("pi-session.jsonl", 0, (37, 2, 30)),
        ("openagents-recorder.json", 0, (42, 5, 40)),
        ("moatless-tree.json", 0, (39, 2, 30)),
        ("bfcl-multi-turn.json", 1, (12, 4, 0)),
        ("google-adk-session.json", 1, (20, 3, 0)),
        ("langfuse-trace.json", 1, (9, 2, 0)),
        ("monocle-spans.json", 0, (9, 1, 0)),
        ("codex-tui.jsonl", 0, (9, 2, 3)),
    ],
)
def test_usage_stands_at_the_turn_that_used_it(name: str, turn: int, usage: tuple[int, int, int]) -> None:
    recorded = [message.usage for message in made(name).messages if message.role == "assistant"][turn]
    assert recorded is not None
    assert (recorded.input_tokens, recorded.output_tokens, recorded.cached_tokens) == usage


def test_rewards_and_tasks_are_kept() -> None:
    steps = read_traces(FIXTURES / "alfworld-steps.jsonl")
    assert [(trace.task_id, trace.reward) for trace in steps] == [("game-0", 0.0), ("game-1", 1.0)]
    assert steps[0].messages[0].content == "room 0, step 0"
    assert (made("letta-evals-results.jsonl").reward, made("toolbench-tree.json").reward) == (0.5, 1.0)
    assert (made("moatless-tree.json").task_id, made("bfcl-multi-turn.json").task_id) == ("garden-1", "multi_1")


def _roles(*paths: str) -> Callable[[Any], tuple[int, int, int]]:
    """A count of plain messages: assistant or agent, calls, tool."""

    def count(value: Any) -> tuple[int, int, int]:
        for key in paths:
            value = value[key]
        turns = sum(item["role"] in ("assistant", "agent") for item in value)
        return turns, sum(len(item.get("tool_calls") or []) for item in value), sum(item["role"] == "tool" for item in value)

    return count


def _opencode(lines: list[Any]) -> tuple[int, int, int]:
    parts = [line[1]["event"]["properties"]["part"] for line in lines if line[0] == "event" and "part" in line[1]["event"]["properties"]]
    calls = {part["callID"] for part in parts if part["type"] == "tool"}
    return len({part["id"] for part in parts if part["type"] == "step-start"}), len(calls), len(calls)


def _recorder(value: Any) -> tuple[int, int, int]:
    kinds = [step["type"] for step in value["steps"]]
    own = [kind in ("assistant", "tool_call", "thinking") for kind in kinds]
    turns = sum(mine and not before for mine, before in zip(own, [False, *own], strict=False))
    return turns, kinds.count("tool_call"), kinds.count("tool_result")


def _kimi(lines: list[Any]) -> tuple[int, int, int]:
    events = [line["event"] for line in lines if "event" in line]
    steps = {event["stepUuid"] for event in events if event["type"] in ("content.part", "tool.call")}
    return len(steps), *(sum(event["type"] == kind for event in events) for kind in ("tool.call", "tool.result"))


def _letta(row: Any) -> tuple[int, int, int]:
    items = [item for turn in row["result"]["trajectory"] for item in turn]
    model = [item for item in items if item["message_type"] in ("reasoning_message", "tool_call_message", "assistant_message")]
    kinds = [item["message_type"] for item in items]
    return len({item["id"] for item in model}), kinds.count("tool_call_message"), kinds.count("tool_return_message")


def _sharegpt(value: Any) -> tuple[int, int, int]:
    speakers = [turn["from"] for turn in value["conversations"]]
    calls = speakers.count("function_call")
    return speakers.count("gpt") + calls, calls, speakers.count("observation")


def _bfcl(row: Any) -> tuple[int, int, int]:
    steps = [
        item
        for entry in row["inference_log"]
        if isinstance(entry, dict)
        for key, items in entry.items()
        if key[:5] == "step_"
        for item in items
    ]
    said = [item["content"] for item in steps if item["role"] == "assistant"]
    return len(said), sum(len(item) for item in said if isinstance(item, list)), sum(item["role"] == "tool" for item in steps)


def _moatless(value: Any) -> tuple[int, int, int]:
    return (len(value["nodes"]) - 1,) * 3


def _adk(value: Any) -> tuple[int, int, int]:
    contents = [event["content"] for event in value["events"]]
    parts = [part for content in contents for part in content["parts"]]
    calls, results = (sum(key in part for part in parts) for key in ("function_call", "function_response"))
    return sum(content["role"] == "model" for content in contents), calls, results


REAL: dict[str, tuple[str, Callable[[Any], tuple[int, int, int]]]] = {
    "opencode-events/ses_editing.jsonl": ("whole", _opencode),
    "openagents-recorder/2330-start-working.json": ("one", _recorder),
    "letta-agent-file/memgpt_agent_with_convo.af": ("one", _roles("messages")),
    "google-adk-session/sample.session.json": ("one", _adk),
    "sharegpt-toolcall/glaive_toolcall_en_demo.first80.slice.json": ("list", _sharegpt),
    "moatless-tree/django__django-12747.trajectory.json": ("one", _moatless),
    "bfcl-multi-turn/BFCL_v4_multi_turn_miss_param_result.json": ("lines", _bfcl),
    "kimi-cli-jsonl/assistant_tools.jsonl": ("whole", _kimi),
    "agentbench-runs/medagentbench_gemini-2.0.lines001-040.slice.jsonl": ("lines", _roles("output", "history")),
    "webdancer-chatml-react/sample_traj.lines001-040.slice.jsonl": ("lines", _roles("messages")),
    "webvoyager-messages/taskESPN--11.interact_messages.json": ("one", _roles()),
    "react-fireact/gpt_format_hotpotqa.jsonl": ("lines", _roles("messages")),
    "alfworld-openmanus/chat_clean-some-cloth.json": ("one", _roles("messages")),
    "alfworld-openmanus/traj_20250829_031616_pick_two_obj_and_place-Spatula-None-Drawer-13.json": ("one", lambda value: (30, 0, 0)),
    "browser-use-history/browser-use_v0_AgentHistoryList.json": ("one", lambda value: (len(value["history"]),) * 3),
    "letta-evals-results/filesystem-gptoss-20b_run1.lines061-072.slice.jsonl": ("lines", _letta),
    "otel-monocle-spans/web_research_ev_battery.json": ("one", lambda value: (4, 6, 6)),
    "codex-tui-session-log/longer-markdown-session.jsonl": ("whole", lambda value: (5, 4, 4)),
}
"""File -> what one trace is (the whole file, its one value, a list's items, its lines), and an own count of it."""


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_counts_of_an_independent_look(real_traces: Path, name: str) -> None:
    unit, count = REAL[name]
    values = raw_values(real_traces / name)
    units = {"whole": [values], "one": values[:1], "list": values[0], "lines": values}[unit]
    assert [counts(trace) for trace in read_traces(real_traces / name)] == [count(item) for item in units]


TEXTS: dict[str, Callable[[list[Any]], list[str]]] = {
    "opencode-events/ses_editing.jsonl": lambda lines: [
        part["text"] for line in lines if line[0] == "chat.message" for part in line[2]["parts"]
    ],
    "openagents-recorder/2330-start-working.json": lambda values: [
        *strings([[step.get(key) for key in ("content", "input", "output")] for step in values[0]["steps"]])
    ],
    "letta-agent-file/memgpt_agent_with_convo.af": lambda values: [
        part["text"] for item in values[0]["messages"] for part in item["content"]
    ],
    "google-adk-session/sample.session.json": lambda values: [*strings([event["content"]["parts"] for event in values[0]["events"]])],
    "moatless-tree/django__django-12747.trajectory.json": lambda values: [
        text for node in values[0]["nodes"] for text in strings([node.get("message"), (node.get("observation") or {}).get("message")])
    ],
    "kimi-cli-jsonl/assistant_tools.jsonl": lambda lines: [
        *strings([line["event"].get("part", {}).get(key) for line in lines if "event" in line for key in ("text", "think")])
    ],
    "letta-evals-results/cached.jsonl": lambda lines: [
        *strings(
            [
                item.get(key)
                for line in lines
                if line["type"] == "result"
                for turn in line["result"]["trajectory"]
                for item in turn
                for key in ("content", "reasoning", "tool_return")
            ]
        )
    ],
    "toolbench-dfs-tree/G3_answer_3_ChatGPT_DFS_woFilter_w2.json": lambda values: [
        item["content"] or "" for item in values[0]["answer_generation"]["train_messages"][-1]
    ],
    "langfuse-trace-export/openai-agents-2025-09-30.trace.json": lambda values: [
        "The weather in Tokyo is sunny.",
        "You are a helpful agent.",
    ],
    "webdancer-chatml-react/sample_traj.lines001-040.slice.jsonl": lambda lines: [
        item["content"] for line in lines for item in line["messages"]
    ],
}


@pytest.mark.parametrize("name", TEXTS)
def test_real_files_keep_their_texts(real_traces: Path, name: str) -> None:
    texts = TEXTS[name](raw_values(real_traces / name))
    assert texts
    assert told(read_traces(real_traces / name)).misses(texts) == []


def real_files(folder: Path) -> list[Path]:
    """What one would import: each file of each format's folder, a folder of numbered event files as one."""
    return [path for form in sorted(folder.iterdir()) for path in sorted(form.iterdir())]


def mostly_silent(trace: Trace) -> set[str]:
    """Roles of which half of the messages or more came out empty: the sign of a reader that does not know the file."""
    silent: Counter[str] = Counter()
    for message in trace.messages:
        silent[message.role] += 1 if not (message.content.strip() or message.tool_calls or message.thinking) else -1
    return {role for role, balance in silent.items() if balance >= 0}


def test_every_real_file_is_read_or_refused_in_words(real_traces: Path) -> None:
    for path in real_files(real_traces):
        reading = read_all([path])
        assert bool(reading.traces) != bool(reading.rejected), path
        for refused in reading.rejected:
            assert refused.sentence.startswith(str(path))
            assert not PYTHONS_WORDS.search(refused.reason), refused.sentence
        for trace in reading.traces:
            assert trace.turns > 0, path
            assert not mostly_silent(trace), (path, trace.format)


def test_the_real_formats_that_have_a_chapter_are_read_unless_they_hold_no_run(real_traces: Path) -> None:
    """The index of the real files describes in chapters what must be read, and lists in tables what else people have."""
    index = (real_traces.parent / "INDEX.md").read_text(encoding="utf-8")
    chapters = {line.removeprefix("## ") for line in index.splitlines() if line.startswith("## ")}
    files = [path for path in real_files(real_traces) if path.parent.name in chapters]
    refused = {path.name for path in files if read_all([path]).rejected}
    assert refused == {"MockAirlineDomainEnv-few_shot.jsonl", "49b22f0c-4a56-41c5-922f-bc2a56e53a23.json", "results.json", "void.af"}
    assert len(refused) < len(files)


@pytest.mark.parametrize(
    "row",
    [
        {"uuid": "a", "parentUuid": None, "sessionId": "s", "type": "assistant", "message": {"role": "model", "parts": [{"text": "Dig."}]}},
        {"type": "message", "id": "a", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "dig"}]}},
    ],
    ids=["qwen-code", "droid"],
)
def test_a_log_with_a_known_envelope_and_other_messages_is_not_taken_with_empty_turns(row: dict[str, Any]) -> None:
    lines = [row, row | {"uuid": "b", "id": "b"}]
    reading = read_bytes(b"\n".join(map(orjson.dumps, lines)), "log.jsonl")
    assert reading.traces or [refused.path for refused in reading.rejected] == ["log.jsonl"]
    assert [mostly_silent(trace) for trace in reading.traces if mostly_silent(trace)] == []


def test_a_result_that_is_not_under_content_is_kept_as_json_with_a_warning() -> None:
    call = {"type": "tool_use", "id": "c", "name": "dig", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "found": {"kind": "a bean"}}
    messages = [{"role": "user", "content": "Dig."}, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    trace = only(read_bytes(orjson.dumps({"messages": messages}), "log.json").traces)
    assert [orjson.loads(message.content) for message in trace.messages if message.role == "tool"] == [{"found": {"kind": "a bean"}}]
    assert [warning.where for warning in trace.warnings] == ["messages[2]"]


def test_alfworld_attempts_are_traces_of_their_own(real_traces: Path) -> None:
    path = real_traces / "alfworld-openmanus" / "all_trajectories.jsonl"
    attempts = {(row["env_id"], row["retry_idx"]) for row in raw_values(path)}
    traces = read_traces(path)
    assert len(traces) == len(attempts)
    assert sum(trace.turns for trace in traces) == len(raw_values(path))


def test_langfuse_answers_outside_the_conversation_are_notes(real_traces: Path) -> None:
    trace = only(read_traces(real_traces / "langfuse-trace-export" / "pydantic-ai-tools-2025-12-04.trace.json"))
    assert any("It's relatable" in event.text for event in trace.events)
