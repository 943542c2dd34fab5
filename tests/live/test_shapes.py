"""Requirements 8 and 9 in the shapes of Claude Code and Codex: pairs, media, thinking and unknown blocks keep bytes and place."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.live.conftest import Bench
from tests.live.test_policies import parts, violations

POLICIES = ["base", "sliding-window:2", "observation-masking:2"]
ROUNDS = 7
LONG = "exhibit " * 80
IMAGE = "iVBORw0KGgo" + "A" * 400


def claude_code(turn: int) -> list[dict[str, Any]]:
    """One round of Anthropic's API, with signed and redacted thinking, five calls and a tool of the server."""
    ids = [f"toolu_{turn}_{number}" for number in range(5)]
    server = f"srvtoolu_{turn}"
    found = [{"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": f"Eo8B{turn}=="}]
    model: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"round {turn} …", "signature": f"EqQB{turn}+/=="},
        {"type": "redacted_thinking", "data": f"Emw{turn}=="},
        {"type": "server_tool_use", "id": server, "name": "web_search", "input": {"query": "rooms"}},
        {"type": "web_search_tool_result", "tool_use_id": server, "content": found},
        {"type": "text", "text": f"I look at five rooms, {turn}."},
        {"type": "block_of_2031", "weight": 1.5, "turn": turn},
        *({"type": "tool_use", "id": own, "name": "look", "input": {"room": own}} for own in ids),
    ]
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    results: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": own, "content": f"{own}: {LONG}"} for own in ids]
    results[1] |= {"is_error": True, "content": "no such room"}
    results[2]["content"] = [{"type": "text", "text": "a picture"}, picture]
    reminder = {"type": "text", "text": "<system-reminder>Stay careful.</system-reminder>"}
    return [{"role": "assistant", "content": model}, {"role": "user", "content": [*results, reminder]}]


def codex(turn: int) -> list[dict[str, Any]]:
    """One round of the Responses API, with encrypted reasoning, five calls and a tool of the server."""
    ids = [f"call_{turn}_{number}" for number in range(5)]
    outputs: list[dict[str, Any]] = [{"type": "function_call_output", "call_id": own, "output": f"{own}: {LONG}"} for own in ids]
    outputs[1]["output"] = orjson.dumps({"output": "no such room", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}).decode()
    outputs[2]["output"] = [{"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}]
    return [
        {"type": "reasoning", "id": f"rs_{turn}", "summary": [], "content": None, "encrypted_content": f"gAAAAAB{turn}=="},
        {"type": "web_search_call", "id": f"ws_{turn}", "status": "completed", "action": {"type": "search", "query": "rooms"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"Five rooms, {turn}."}]},
        *({"type": "function_call", "call_id": own, "name": "shell", "arguments": '{"command":["ls"]}'} for own in ids),
        {"type": "custom_tool_call", "call_id": f"patch_{turn}", "name": "apply_patch", "input": "*** Begin Patch", "status": "completed"},
        *outputs,
        {"type": "custom_tool_call_output", "call_id": f"patch_{turn}", "output": "Done"},
        {"type": "item_of_2031", "turn": turn},
    ]


SYSTEM = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
    {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
]
CLAUDE: dict[str, Any] = {
    "model": "claude-fake",
    "max_tokens": 32000,
    "system": SYSTEM,
    "tools": [{"name": "look", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}],
    "metadata": {"user_id": "user_0_account_1_session_2"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}
CODEX: dict[str, Any] = {
    "model": "gpt-fake-codex",
    "instructions": "You are Codex.",
    "tools": [{"type": "function", "name": "shell", "strict": False, "parameters": {"type": "object"}}, {"type": "web_search"}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-thread",
}
HEADERS = {
    "messages": {
        "user_agent": "claude-cli/2.1.0 (external, cli)",
        "anthropic_version": "2023-06-01",
        "anthropic_beta": "interleaved-thinking-2025-05-14,context-management-2025-06-27",
        "x_claude_code_session_id": "5b7c-session",
        "x_app": "cli",
    },
    "responses": {
        "user_agent": "codex_cli_rs/0.100.0 (Linux)",
        "originator": "codex_cli_rs",
        "session_id": "0199-session",
        "thread_id": "0199-thread",
    },
}
ROUND: dict[str, Callable[[int], list[dict[str, Any]]]] = {"messages": claude_code, "responses": codex}


class Shaped:
    """A client that sends what its namesake sends."""

    def __init__(self, bench: Bench, api: str, **headers: str) -> None:
        self.bench, self.api, self.headers = bench, api, HEADERS[api] | headers
        first: Any = [{"type": "input_text" if api == "responses" else "text", "text": "Count the rooms."}]
        self.history: list[dict[str, Any]] = [{"role": "user", "content": first}]
        if api == "responses":
            self.history = [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
                {"type": "message", **self.history[0]},
            ]
        self.bodies: list[bytes] = []

    def step(self) -> None:
        body = orjson.loads(orjson.dumps((CLAUDE if self.api == "messages" else CODEX) | {"stream": True}))
        body["messages" if self.api == "messages" else "input"] = orjson.loads(orjson.dumps(self.history))
        if self.api == "messages":  # the marks move with the newest messages
            body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        self.bodies.append(orjson.dumps(body))
        answer = self.bench.post(self.api, self.bodies[-1], straight=False, **self.headers)
        assert answer.status_code == 200, answer.text
        self.history += ROUND[self.api](len(self.bodies) - 1)


def ids_of(body: bytes, key: str) -> list[str]:
    """Every value of a key, wherever it is, in order."""

    def walk(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for name, inner in value.items() for text in ([inner] if name == key and isinstance(inner, str) else walk(inner))]
        return [text for inner in value for text in walk(inner)] if isinstance(value, list) else []

    return walk(orjson.loads(body))


@pytest.mark.parametrize("api", ROUND)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_an_agent_of_the_kind_sends_is_one_session_with_whole_pairs(started: Callable[..., Bench], api: str, policy: str) -> None:
    bench = started(policy, gate=False)
    client = Shaped(bench, api)
    for _ in range(ROUNDS):
        client.step()
    assert bench.record.opened.how == "header" and len(bench.record.asked) == ROUNDS
    assert bench.record.opened.client == ("claude-code" if api == "messages" else "codex")
    assert bench.summary["fallbacks"] == 0, [row["fallback"] for row in bench.rows]
    sent = [entry.body for entry in bench.got]
    if policy == "base":
        assert sent == client.bodies
        return
    assert bench.summary["edits"] > 0 and len(sent[-1]) < len(client.bodies[-1])
    for ours, theirs in zip(sent, client.bodies, strict=True):
        _same_but_for_the_history(ours, theirs)
        _whole_pairs(ours, api)
        _nothing_of_the_providers_is_changed(ours, theirs)
    if api == "responses":  # no moving marks: bytes can be compared
        assert violations(bench) == []


def _same_but_for_the_history(ours: bytes, theirs: bytes) -> None:
    one, other = orjson.loads(ours), orjson.loads(theirs)
    assert {key: value for key, value in one.items() if key not in ("messages", "input")} == {
        key: value for key, value in other.items() if key not in ("messages", "input")
    }
    kept = [part for part in parts(ours) if part in parts(theirs)]
    assert kept == [part for part in parts(theirs) if part in kept] and kept[0] == parts(theirs)[0]


def _whole_pairs(body: bytes, api: str) -> None:
    if api == "responses":
        found = ids_of(body, "call_id")
        assert all(found.count(own) == 2 for own in found)
        return
    calls = [own for own in ids_of(body, "id") if own.startswith(("toolu_", "srvtoolu_"))]
    assert sorted(calls) == sorted(ids_of(body, "tool_use_id")) and len(set(calls)) == len(calls)


def _nothing_of_the_providers_is_changed(ours: bytes, theirs: bytes) -> None:
    """What is left of thinking, media, server-side tools and unknown blocks is a run of the client's own, unchanged and in order."""
    for key in ("signature", "data", "encrypted_content", "image_url"):
        left, all_of_them = ids_of(ours, key), ids_of(theirs, key)
        places = iter(all_of_them)
        assert all(value in places for value in left), key
    marks = (b"thinking", b"reasoning", b"web_search", b"block_of_2031", b"item_of_2031", b'"image', b"input_image")
    given = parts(theirs)
    for part in parts(ours):
        if b'"role":"assistant"' in part and any(mark in part for mark in marks[:4]):
            assert part in given


@pytest.mark.parametrize("api", ROUND)
def test_subagents_of_one_session_are_sessions_of_their_own(started: Callable[..., Bench], api: str) -> None:
    bench = started("sliding-window:2", gate=False)
    beside = {"messages": "x_claude_code_agent_id", "responses": "x_openai_subagent"}[api]
    clients = [Shaped(bench, api), Shaped(bench, api, **{beside: "review"}), Shaped(bench, api, **{beside: "compact"})]
    for _ in range(4):
        for client in clients:
            client.step()
    assert [len(record.asked) for record in bench.records()] == [4, 4, 4]


@pytest.mark.parametrize("api", ROUND)
def test_headers_of_the_client_go_on_unchanged(started: Callable[..., Bench], api: str) -> None:
    bench = started("sliding-window:2", gate=False)
    client = Shaped(bench, api)
    for _ in range(4):
        client.step()
    for entry in bench.got:
        sent = dict(entry.headers)
        assert all(sent[name.replace("_", "-")] == value for name, value in HEADERS[api].items())
