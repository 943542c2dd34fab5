"""Recordings of model calls in further containers (YAML cassettes, console output, provider logs), and lines that no rule takes."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.blocks import violations
from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.trajectory import Trace, read_bytes
from pamer_lab.trajectory.draft import UNNAMED
from pamer_lab.trajectory.yaml_cassette import read_cassette
from tests.trajectory.formats.told import counts, only, read_json_bytes, read_lines, read_value

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "count the rakes"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "it's one"},
    {"role": "assistant", "content": "One rake."},
]
BODIES = [({"model": "m", "messages": CHAT[:number]}, {"model": "m", "choices": [{"message": CHAT[number]}]}) for number in (1, 3)]
LAUGHS = b"interactions:\n- &a0 [x, x]\n" + b"".join(b"- &a%d [%s]\n" % (n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12))
"""Twelve lines that name 9 ** 11 values by aliases."""


def cassette(*pairs: tuple[str, str]) -> bytes:
    """A cassette as vcrpy writes it; a single quote in YAML is written twice."""
    lines = ["interactions:"]
    for sent, got in pairs:
        lines += ["- request:", f"    body: {sent}", "    headers:", "      authorization:", "      - Bearer sk-1", "    method: POST"]
        lines += ["  response:", "    body:", f"      string: {got}", "    status: {code: 200, message: OK}"]
    return "\n".join([*lines, "version: 1", ""]).encode()


def quoted(value: Any) -> str:
    return "'" + json.dumps(value).replace("'", "''") + "'"


def test_a_yaml_cassette_is_read_like_one_in_json_and_its_keys_are_not() -> None:
    trace = only(read_json_bytes(cassette(*((quoted(sent), quoted(got)) for sent, got in BODIES))))
    assert (trace.format, counts(trace), trace.messages[2].content) == ("model-call-log", (2, 1, 1), "it's one")
    assert "sk-1" not in str(trace)


@pytest.mark.parametrize(
    "data",
    [
        cassette(("&a x", "*a")),
        b"interactions:\n- &a [*a]\n",
        b"interactions: !!python/object/apply:os.system ['false']\n",
        b"interactions:\n- {request: [\n",
        b"interactions:\n" + b"[" * 5_000,
        b"interactions:\n- request: {body: !!binary '%%%'}\n  response: 1\n",
        LAUGHS,
        b"interactions:\n- &a {request: {body: x}}\n- {<<: *a}\n",
        b"interactions: !!python/name:os.system\n",
        b"interactions:\n" + b"".join(b" " * depth + b"- a:\n" for depth in range(0, 600, 2)),
    ],
    ids=["alias", "ring", "code", "cut", "deep", "bad binary", "laughs", "merge key", "name", "deep blocks"],
)
def test_a_hostile_cassette_is_refused_in_a_sentence(data: bytes) -> None:
    reading = read_bytes(data, "cassette.yaml")
    assert not reading.traces and reading.rejected[0].reason


def test_a_packed_body_of_a_cassette_is_unpacked_within_the_limit() -> None:
    body = base64.b64encode(gzip.compress(bytes(200_000)))
    with pytest.raises(InputError):
        read_cassette(b"interactions:\n- request: {body: !!binary '" + body + b"'}\n", ReadLimits(max_bytes=100_000))


def test_packed_bodies_of_a_cassette_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.opening.budget.FREE_BYTES", 100_000)
    body = base64.b64encode(gzip.compress(bytes(40_000)))
    one = b"- request: {body: !!binary '" + body + b"'}\n"
    assert len(read_cassette(b"interactions:\n" + one * 2, ReadLimits())["interactions"]) == 2
    with pytest.raises(InputError):
        read_cassette(b"interactions:\n" + one * 9, ReadLimits())


@pytest.mark.parametrize(
    "log",
    [
        None,
        [],
        {"entries": None},
        {"entries": {}},
        {"entries": [None, 1, "x", []]},
        {"entries": [{"request": None, "response": None}]},
        {"entries": [{"request": {"postData": {"text": "{"}}, "response": {"content": {"text": "%%%", "encoding": "base64"}}}]},
        {"entries": [{"request": {"postData": {"text": json.dumps(BODIES[0][0])}}, "response": {"content": {"text": ["x"]}}}]},
        {"entries": [{"request": {"postData": {"text": "[" * 50_000}}, "response": {"content": {"text": "[" * 50_000}}}]},
        {"entries": [{"startedDateTime": 10**400, "request": {"url": [], "headers": 7}, "response": {"status": "NaN"}}]},
    ],
)
def test_a_broken_har_is_refused_in_a_sentence(log: Any) -> None:
    data = json.dumps({"log": log}).encode()
    for broken in (data, data[:-2], b"\xef\xbb\xbf" + data):
        reading = read_bytes(broken, "a.har")
        assert not reading.traces and reading.rejected[0].reason


def test_values_printed_one_after_another_are_records() -> None:
    spans = []
    for number, (sent, got) in enumerate(BODIES):
        facts = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(sent["messages"])}
        facts["gen_ai.output.messages"] = json.dumps([got["choices"][0]["message"]])
        context = {"trace_id": "0x1", "span_id": f"0x{number}"}
        spans.append({"name": "chat", "context": context, "start_time": f"2026-01-01T00:00:0{number}Z", "attributes": facts})
    trace = only(read_json_bytes("\n".join(json.dumps(span, indent=4) for span in spans).encode()))
    assert (trace.format, counts(trace)) == ("telemetry-spans", (2, 1, 1))
    assert read_bytes(b'{\n "a": 1\n}\n{\n "a": \n', "cut.json").rejected


def test_bedrocks_invocation_log_and_traes_run_are_conversations() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": [{"text": "count"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "one"}]}}]},
        {"role": "assistant", "content": [{"text": "One."}]},
    ]
    logged = [
        {
            "schemaType": "ModelInvocationLog",
            "input": {"inputBodyJson": {"messages": said[:number]}},
            "output": {"outputBodyJson": {"output": {"message": said[number]}, "usage": {"inputTokens": 7, "outputTokens": 1}}},
        }
        for number in (1, 3)
    ]
    first = {"content": "I look", "usage": {"input_tokens": 7}, "tool_calls": [{"call_id": "c1", "name": "look", "arguments": {"at": 1}}]}
    result = {"role": "user", "content": "", "tool_result": {"call_id": "c1", "success": True, "result": "one", "error": None}}
    run = [
        {"input_messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "count"}], "response": first},
        {"input_messages": [result], "response": {"content": "One.", "usage": {"input_tokens": 8}, "tool_calls": None}},
    ]
    for trace in (only(read_lines(logged)), only(read_value({"task": "count", "llm_interactions": run, "success": True}))):
        assert (trace.format, counts(trace)) == ("model-call-log", (2, 1, 1))
        assert next(message.usage.input_tokens for message in trace.messages if message.usage) == 7


def test_a_call_that_names_no_tool_is_named_and_counted() -> None:
    chat = [CHAT[0], {"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]}, CHAT[2] | {"tool_call_id": "a"}]
    trace = only(read_value(chat))
    assert trace.messages[1].tool_calls[0].name == UNNAMED and not violations(trace.messages)
    assert [warning.kind for warning in trace.warnings] == ["empty"]


def strange(name: str, line: dict[str, Any]) -> Trace:
    """A fixture with one more line."""
    return only(read_json_bytes((FIXTURES / name).read_bytes().rstrip() + b"\n" + json.dumps(line).encode()))


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        ("codex-rollout-envelope.jsonl", {"type": "event_msg", "payload": {"type": "mood", "text": "fine"}}, "event_msg/mood"),
        ("codex-rollout-envelope.jsonl", {"type": "mood", "payload": {"text": "fine"}}, "mood"),
        ("pi-session.jsonl", {"type": "mood", "id": "z", "text": "fine"}, "mood"),
        ("kimi-cli.jsonl", {"type": "mood", "text": "fine"}, "mood"),
        ("codex-tui.jsonl", {"kind": "mood", "payload": {"text": "fine"}}, "mood"),
    ],
)
def test_a_line_of_a_type_that_no_rule_knows_is_a_warning_with_its_count(name: str, line: dict[str, Any], kind: str) -> None:
    trace = strange(name, line)
    assert trace.meta["other_lines"][kind] == 1
    assert [warning.text for warning in trace.warnings if warning.kind == "unread" and kind in warning.text]
