import json
from pathlib import Path

import pytest

from pamer_lab.trajectory import read_traces
from pamer_lab.trajectory.shared.get import as_time

STAMP, SECONDS = "2026-01-01T00:00:05Z", 1767225605.0


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (STAMP, SECONDS),
        ("2026-01-01T00:00:05", SECONDS),
        ("2026-01-01T02:00:05+02:00", SECONDS),
        (SECONDS, SECONDS),
        (int(SECONDS * 1000), SECONDS),
        *((value, None) for value in ("yesterday", "", None, True, {}, -5, 0, 10**400, float("nan"), float("inf"))),
    ],
)
def test_a_time_stamp_is_seconds_or_nothing(given: object, seconds: float | None) -> None:
    assert as_time(given) == seconds


def chat() -> list[dict[str, object]]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Look.", "timestamp": STAMP},
        {"role": "assistant", "content": "", "tool_calls": [call], "timestamp": STAMP},
        {"role": "tool", "tool_call_id": "c1", "content": "a door", "timestamp": SECONDS},
        {"role": "assistant", "content": "A door.", "timestamp": "odd"},
    ]


def claude() -> list[dict[str, object]]:
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "a door"}
    said = [("user", "Look."), ("assistant", [use]), ("user", [result]), ("assistant", [{"type": "text", "text": "A door."}])]
    return [
        {"type": role, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "s", "timestamp": STAMP if n < 3 else "odd"}
        | {"message": {"role": role, "id": f"m{n}", "content": content}}
        for n, (role, content) in enumerate(said)
    ]


def codex() -> list[dict[str, object]]:
    said = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a door"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A door."}]},
    ]
    head = {"timestamp": STAMP, "type": "session_meta", "payload": {"id": "s", "cwd": "/"}}
    return [head, *({"timestamp": STAMP if n < 3 else "odd", "type": "response_item", "payload": item} for n, item in enumerate(said))]


@pytest.mark.parametrize("make", [claude, codex])
def test_a_logs_lines_give_their_messages_their_times(tmp_path: Path, make: object) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in make()))  # type: ignore[operator]
    (trace,) = read_traces(path)
    assert [message.at for message in trace.messages] == [SECONDS, SECONDS, SECONDS, None]


def test_chat_messages_keep_their_times_and_native_files_too(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": chat()}))
    (trace,) = read_traces(path)
    assert [message.at for message in trace.messages] == [SECONDS, SECONDS, SECONDS, None]
    from pamer_lab.trajectory.formats.native import to_native

    (tmp_path / "native.json").write_bytes(to_native(trace))
    assert next(iter(read_traces(tmp_path / "native.json"))).messages == trace.messages
