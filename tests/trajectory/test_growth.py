"""Uploads up to 4 MB are read in the page's thread: reading takes linear time, whatever the file is made of."""

import json

import pytest

from pamer_lab.bench.patterns import MOST, growth
from pamer_lab.trajectory import read_bytes

TURN = [{"role": "assistant", "content": "see"}, {"role": "user", "content": "go on"}]
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAME_ID = [{"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c", "content": "x"}]
LINE = json.dumps({"type": "user", "sessionId": "s", "uuid": "u", "parentUuid": "u", "message": TURN[1]})
MADE = {
    "turns.json": lambda times: json.dumps([{"role": "user", "content": "q"}] + TURN * times),
    "one-id.json": lambda times: json.dumps([{"role": "user", "content": "q"}] + SAME_ID * times),
    "one-text.json": lambda times: json.dumps([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a@/<" * 20 * times}]),
    "lines.jsonl": lambda times: f"{LINE}\n" * times,
    "values.json": lambda times: '{"a": 1}\n' * 10 * times,
    "brackets.json": lambda times: "[" + "[]," * 30 * times + "[]]",
    "open.json": lambda times: '{"a": "' + "\\\\" * 30 * times,
    "chat.md": lambda times: "## User\n\nq\n\n## Assistant\n\n```\n" * 3 * times,
    "text.txt": lambda times: "user: a\nassistant: b\n" * 4 * times,
    "cassette.yaml": lambda times: "interactions:\n" + "- request: {body: x}\n  response: {body: {string: y}}\n" * times,
}


@pytest.mark.parametrize("name", MADE)
def test_reading_an_upload_takes_linear_time(name: str) -> None:
    small, large = (MADE[name](times).encode() for times in (60, 960))
    assert growth(lambda data: read_bytes(data, name), small, large) <= MOST
