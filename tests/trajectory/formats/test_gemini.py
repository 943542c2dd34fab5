"""Gemini histories in their wrappers, and gemini-cli chat recordings."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.trajectory import read_traces
from pamer_lab.trajectory.shared.steps import REWOUND
from tests.trajectory.formats.told import counts, only, raw_values, read_lines, read_value, strings, told


def history() -> list[Any]:
    """Thoughts, two calls in one content without ids, an error, an image, and bare parts at the end."""
    return [
        {"role": "user", "parts": [{"text": "read both"}]},
        {
            "role": "model",
            "parts": [
                {"text": "plan", "thought": True},
                {"functionCall": {"name": "read", "args": {"f": "a"}}, "thoughtSignature": "zz"},
                {"functionCall": {"name": "read", "args": {"f": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
                {"text": "go on"},
            ],
        },
        {"role": "model", "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "x", "name": "done", "args": {}}}]},
        [{"functionResponse": {"id": "x", "name": "done", "response": {"output": "ok", "code": 0}}}],
    ]


WRAPPED = [history(), {"error": {"message": "cut"}, "context": history()}, {"scenarioId": "sc", "history": history(), "questions": []}]


@pytest.mark.parametrize("value", WRAPPED, ids=["list", "error report", "scenario"])
def test_a_history_reads_the_same_in_every_wrapper(value: Any) -> None:
    trace = only(read_value(value))
    assert trace.format == "gemini-contents"
    roles = ["user", "assistant", "tool", "tool", "user", "assistant", "assistant", "tool"]
    assert [message.role for message in trace.messages] == roles
    assert counts(trace) == (3, 3, 3)
    assert trace.messages[1].thinking == "plan"
    assert [(message.content, message.error) for message in trace.messages[2:4]] == [("A", False), ("no such file", True)]
    assert trace.messages[5].images[0].bytes == 3
    assert trace.messages[7].content == '{"output":"ok","code":0}'


def test_a_request_gives_its_system_instruction_and_tools_and_a_scenario_its_questions() -> None:
    tools = [{"functionDeclarations": [{"name": "read", "description": "reads", "parametersJsonSchema": {"type": "object"}}]}]
    request = {"contents": history(), "config": {"systemInstruction": {"parts": [{"text": "be kind"}]}, "tools": tools}}
    trace = only(read_value(request))
    assert trace.messages[0].content == "be kind"
    assert (trace.tools[0].name, trace.tools[0].parameters) == ("read", {"type": "object"})
    first, second = read_value([{"scenarioId": name, "history": history(), "questions": [{"id": 1}]} for name in "ab"])
    assert (first.task_id, second.task_id, first.meta["questions"]) == ("a", "b", [{"id": 1}])


def test_a_result_whose_call_was_compressed_away_stays_as_a_user_message() -> None:
    trace = only(read_value([history()[0], {"role": "model", "parts": [{"text": "hm"}]}, history()[5]]))
    assert trace.messages[-1].role == "user"
    assert trace.warnings[0].where == "[2].parts[0]"


def test_contents_one_per_line_are_one_trace_and_odd_parts_are_kept_with_a_warning() -> None:
    odd = {"role": "user", "parts": [{"hologram": {"say": "hi"}}]}
    trace = only(read_lines([*history()[:5], odd]))
    assert counts(trace) == (3, 3, 2)
    assert "hologram" in trace.messages[-1].content
    assert "hologram" in trace.warnings[0].text


def test_a_chat_recording_holds_calls_results_thoughts_and_tokens_in_one_message() -> None:
    result = [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.py"}}}]
    call = {"id": "c1", "name": "ls", "args": {"dir": "."}, "status": "success", "result": result}
    tokens = {"input": 100, "output": 5, "cached": 40, "thoughts": 2, "total": 107}
    model = {"type": "gemini", "content": "Looking.", "thoughts": [{"subject": "Plan", "description": "list"}], "tokens": tokens}
    model |= {"model": "gemini-x", "toolCalls": [call]}
    messages = [{"type": "user", "content": "files?"}, model, {"type": "info", "content": "saved"}, {"type": "gemini", "content": "One."}]
    trace = only(read_value({"sessionId": "s", "messages": messages}))
    assert counts(trace) == (2, 1, 1)
    first = trace.messages[1]
    assert (first.thinking, first.usage and (first.usage.input_tokens, first.usage.output_tokens)) == ("Plan: list", (100, 7))
    assert (trace.messages[2].content, trace.model, trace.events[0].text) == ("a.py", "gemini-x", "saved")


def test_a_rewound_recording_keeps_what_was_abandoned_and_says_where() -> None:
    lines: list[Any] = [{"sessionId": "s"}, *({"id": kind, "type": kind, "content": kind} for kind in ("user", "gemini"))]
    trace = only(read_lines([*lines, {"$rewindTo": "user"}, {"id": "again", "type": "gemini", "content": "again"}]))
    assert [message.content for message in trace.messages] == ["user", "gemini", "again"]
    assert [(event.kind, event.before_message, event.data) for event in trace.events] == [("context_edit", 2, {"to": "user"})]
    assert [(warning.where, warning.text) for warning in trace.warnings] == [("line 4", REWOUND)]


@pytest.mark.parametrize("name", ["trajectory.json", "error.json", "scenario-constraints.json"])
def test_real_histories_keep_every_content_and_text(real_traces: Path, name: str) -> None:
    path = real_traces / "gemini-contents" / name
    root = raw_values(path)[0]
    contents = root if isinstance(root, list) else root.get("context") or root.get("history")
    parts = [part for item in contents for part in (item["parts"] if isinstance(item, dict) else item)]
    calls = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
    answers = [part["functionResponse"].get("id") for part in parts if "functionResponse" in part]
    turns = sum(isinstance(item, dict) and item["role"] == "model" for item in contents)
    trace = only(read_traces(path))
    assert counts(trace) == (turns, len(calls), len(answers))
    assert sum(message.role == "tool" for message in trace.messages) == sum(answer in calls for answer in answers)
    assert told([trace]).misses(strings(contents, skip=("role", "id", "thoughtSignature"))) == []
