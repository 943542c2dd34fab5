"""Inspect evaluation logs, as JSON and as a zip."""

import io
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from pamer_lab.trajectory import Trace, read_bytes, read_traces
from pamer_lab.trajectory.formats.inspect_log import NO_SAMPLES
from tests.trajectory.formats.told import counts, only, raw_values, read_json_bytes, read_value, strings, told

ABOUT = {"task": "quiz", "model": "prov/m", "run_id": "r"}


def sample(**more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 112, "input_tokens_cache_read": 100}
    tool = {"name": "bash", "description": "runs", "parameters": {"type": "object"}}
    model = {"event": "model", "tools": [tool], "output": {"choices": [{"message": {"id": "a1", "role": "assistant"}}], "usage": usage}}
    image = {"type": "image", "image": "data:image/png;base64,AAAA"}
    messages = [
        {"id": "u1", "role": "user", "content": [{"type": "text", "text": "attachment://f00"}, image]},
        {
            "id": "a1",
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "try"}],
            "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}, {"id": "c2", "function": "bash", "arguments": {}}],
        },
        {"role": "tool", "content": "x", "tool_call_id": "c1", "function": "bash"},
        {"role": "tool", "content": "", "tool_call_id": "c2", "function": "bash", "error": {"type": "timeout", "message": "too slow"}},
        {"id": "a2", "role": "assistant", "content": "done"},
    ]
    compacted = {"event": "compaction", "tokens_before": 900, "tokens_after": 90, "type": "summary"}
    last = {"event": "model", "output": {"choices": [{"message": {"id": "a2"}}]}}
    whole = {"id": 7, "epoch": 1, "messages": messages, "events": [model, compacted, last], "attachments": {"f00": "the question"}}
    return whole | {"scores": {"match": {"value": "C"}}, "model_usage": {"prov/m": usage, "grader": usage}} | more


def as_zip(samples: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for item in samples:
            archive.writestr(f"samples/{item['id']}_epoch_{item['epoch']}.json", orjson.dumps(item))
        archive.writestr("header.json", orjson.dumps({"version": 2, "eval": ABOUT}))
        archive.writestr("summaries.json", b"[]")
    return out.getvalue()


def as_json(samples: list[dict[str, Any]]) -> list[Trace]:
    return read_value({"version": 2, "status": "success", "eval": ABOUT, "plan": {}, "samples": samples})


@pytest.mark.parametrize("form", ["json", "zip"])
def test_a_sample_keeps_usage_tools_scores_images_errors_and_resolves_attachments(form: str) -> None:
    trace = only(as_json([sample()]) if form == "json" else read_json_bytes(as_zip([sample()])))
    assert (trace.task_id, trace.question_id, trace.reward, trace.model) == ("7", "quiz/7", 1.0, "prov/m")
    assert counts(trace) == (2, 2, 2)
    assert trace.messages[0].content == "the question\n[image: image/png, 3 bytes]"
    assert (trace.messages[1].thinking, trace.messages[1].content) == ("hm", "try")
    assert [(message.content, message.error) for message in trace.messages[2:4]] == [("x", False), ("too slow", True)]
    used = trace.messages[1].usage
    assert used is not None and (used.input_tokens, used.cached_tokens) == (110, 100)
    assert trace.usage is not None and trace.usage.input_tokens == 110
    assert trace.tools[0].name == "bash"
    event = only_compaction(trace)
    assert (event.before_message, event.tokens_before, event.tokens_after) == (4, 900, 90)


def only_compaction(trace: Trace) -> Any:
    found = [event for event in trace.events if event.kind == "compaction"]
    assert len(found) == 1
    return found[0]


def test_epochs_of_one_sample_are_replicas_of_one_question() -> None:
    traces = read_json_bytes(as_zip([sample(), sample(epoch=2, scores={"match": {"value": 0.25}})]))
    assert [(trace.question_id, trace.meta["epoch"], trace.reward) for trace in traces] == [("quiz/7", 1, 1.0), ("quiz/7", 2, 0.25)]


@pytest.mark.parametrize(("value", "reward"), [("I", 0.0), ("P", 0.5), (True, 1.0), ("maybe", None), ({"a": 1}, None)])
def test_scores_become_the_reward_where_they_are_numbers(value: Any, reward: float | None) -> None:
    assert only(as_json([sample(scores={"s": {"value": value}})])).reward == reward


def test_a_call_that_the_provider_ran_is_a_call_with_its_result() -> None:
    part = {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "web_search", "arguments": '{"q":"x"}', "result": "found"}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [part, {"type": "text", "text": "so"}]}]
    trace = only(as_json([sample(messages=messages, events=None)]))
    assert counts(trace) == (1, 1, 1)
    assert trace.messages[2].content == "found"


def test_a_header_without_samples_is_refused() -> None:
    reading = read_bytes(orjson.dumps({"version": 2, "eval": ABOUT, "plan": {}, "samples": None}), "x.json")
    assert (reading.traces, [fault.reason for fault in reading.rejected]) == ([], [NO_SAMPLES])


def test_real_logs_keep_every_message_and_text(real_traces: Path) -> None:
    folder = real_traces / "inspect-eval-log"
    for path in sorted(folder.iterdir()):
        if path.suffix == ".eval":
            with zipfile.ZipFile(path) as archive:
                samples = [orjson.loads(archive.read(name)) for name in sorted(archive.namelist()) if name.startswith("samples/")]
        else:
            samples = raw_values(path)[0]["samples"]
        traces = read_traces(path)
        for item, trace in zip(samples, traces, strict=True):
            messages = item["messages"]
            turns, results = (sum(message["role"] == role for message in messages) for role in ("assistant", "tool"))
            assert counts(trace) == (turns, sum(len(message.get("tool_calls") or []) for message in messages), results)
            texts = [text for message in messages for text in strings(message["content"], skip=("type", "image", "detail"))]
            texts += [text for message in messages for call in message.get("tool_calls") or [] for text in strings(call["arguments"])]
            assert told([trace]).misses(texts) == []
