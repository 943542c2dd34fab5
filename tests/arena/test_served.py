"""A model behind an OpenAI-compatible server plays with its tools as functions; a server that fails ends its task and no other."""

import base64
import json
import shlex
import socket
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pamer_lab.arena.agents import SERVER_FAILED, ServedAgent, parse_agent
from pamer_lab.arena.episode import play
from pamer_lab.arena.plan import Plan
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import ArenaStore
from pamer_lab.arena.world import Level, Task
from pamer_lab.controller.request import read_message
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.trajectory.values import Message, Tool
from pamer_lab.workspace import Workspace
from tests.loopback import listening

TASK = Task(1, 0, Level(2, 1, 1))


class Served(BaseHTTPRequestHandler):
    """Answers as the reader would, by what it received over HTTP; dies where the server says so."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server: Server = self.server  # type: ignore[assignment]
        server.requests.append(body)
        if len(server.requests) > server.dies_after:
            self.send_error(400, "no more")
            return
        if server.says is not None:
            self._send(server.says)
            return
        tools = [Tool(entry["function"]["name"]) for entry in body["tools"]]
        said = Reader().act([read_message(item, "m") for item in body["messages"]], tools)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in said.tool_calls
        ]
        message = {"role": "assistant", "content": said.content, "tool_calls": calls or None}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
        answer["usage"]["total_tokens"] = 12  # type: ignore[index]
        text = json.dumps(answer | {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()
        self._send(text)

    def _send(self, text: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    requests: list[dict[str, object]]
    dies_after = 10**6
    says: bytes | None = None
    """What it answers instead."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Served)
    made.requests = []
    with listening(made):
        yield made


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    return Factory(load_profile("embedded"), Workspace(tmp_path_factory.mktemp("served")), "cpu")


def agent_at(server: Server, monkeypatch: pytest.MonkeyPatch) -> ServedAgent:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    return ServedAgent("m", f"http://127.0.0.1:{server.server_address[1]}/v1", attempts=1)


def test_a_served_agent_plays_as_the_same_agent_here(server: Server, factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    for policy in ("base", "observation-masking:2"):
        served = play(TASK, agent_at(server, monkeypatch), parse_policy(policy), factory)
        here = play(TASK, Reader(), parse_policy(policy), factory)
        assert (served.reward, served.turns, served.totals) == (here.reward, here.turns, here.totals)
        assert served.answers[0].usage is not None and here.reward == 1.0
    assert {tool["function"]["name"] for tool in server.requests[0]["tools"]} == {tool.name for tool in TASK.tools}  # type: ignore[attr-defined]


def test_a_key_that_a_server_sends_back_is_in_no_part_of_the_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, key = agent_at(server, monkeypatch), "sk-planted-5f2e9c7ab1"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    spelled = base64.b64encode(key.encode()).decode()
    call = {"id": f"c-{key}", "type": "function", "function": {"name": key, "arguments": json.dumps({"q": f"{key} {spelled}"})}}
    said = {"role": "assistant", "content": spelled, "tool_calls": [call]}
    server.says = json.dumps({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": said}]}).encode()
    message = agent.act([Message("user", "hello")], ())
    assert message.tool_calls and key not in repr(message) and spelled not in repr(message)


def test_a_server_that_dies_ends_its_task_with_the_reason(server: Server, factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    server.dies_after = 4
    episode = play(TASK, agent_at(server, monkeypatch), parse_policy("base"), factory)
    assert SERVER_FAILED in episode.ended and episode.reward == 0.0 and episode.turns == 4
    nobody = ServedAgent("m", "http://127.0.0.1:9/v1", attempts=1, timeout=2)
    assert SERVER_FAILED in play(TASK, nobody, parse_policy("base"), factory).ended


def body(message: object) -> bytes:
    return json.dumps(
        {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": message}]}
    ).encode()


def called(*calls: object) -> bytes:
    return body({"role": "assistant", "content": None, "tool_calls": list(calls)})


FUNCTION = {"name": "nothing", "arguments": "{}"}
BAD = {
    "10 MB": body({"role": "assistant", "content": "ANSWER: " + "x" * 10_000_000}),
    "10 MB of arguments": called({"id": "c", "type": "function", "function": {"name": "search", "arguments": "x" * 10_000_000}}),
    "half a character": body({"role": "assistant", "content": "ANSWER: \ud800"}),
    "no UTF-8": b'{"choices": [{"message": {"role": "assistant", "content": "\xff\xfe"}}]}',
    "no JSON": b"<html>out of order</html>",
    "nothing": b"",
    "no choices": b'{"choices": []}',
    "null": body(None),
    "an empty answer": body({"role": "assistant", "content": "  "}),
    "a list": body({"role": "assistant", "content": [{"type": "text", "text": "hello"}]}),
    "numbers": body({"role": "assistant", "content": 7, "tool_calls": 7}),
    "another role": body({"role": "user", "content": "hello"}),
    "a call without a function": called({"id": "c", "type": "function"}),
    "many calls": called(*({"id": f"c{n}", "type": "function", "function": FUNCTION} for n in range(3_000))),
    "deep arguments": called({"id": "c", "type": "function", "function": {"name": "search", "arguments": "[" * 2_000}}),
    "deep JSON": b'{"choices": ' + b"[" * 200_000,
    "unknown tools": called({"id": "c", "type": "function", "function": FUNCTION}),
    "equal ids": called(*[{"id": "c", "type": "function", "function": FUNCTION}] * 2),
    "arguments that are no text": called({"id": 7, "type": "function", "function": {"name": "search", "arguments": {"query": "x"}}}),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_answer_ends_its_task_with_a_reason_and_the_others_go_on(
    kind: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.says = BAD[kind]
    workspace = Workspace(tmp_path / "work")
    info = play_arena(Plan(tasks=2, level="1-0-0", policies=()), workspace, agent=agent_at(server, monkeypatch))
    episodes = ArenaStore(workspace).episodes(info.arena_id)
    assert len(episodes) == 6 and all(episode.ended and episode.reward == 0.0 for episode in episodes)


def test_a_server_that_never_answers_ends_its_task(server: Server, factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent = ServedAgent("m", f"http://127.0.0.1:{silent.getsockname()[1]}/v1", timeout=0.3, attempts=1)
        assert SERVER_FAILED in play(TASK, agent, parse_policy("base"), factory).ended
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert parse_agent("openai:m", 5.0).timeout == 5.0  # type: ignore[attr-defined]


SDK_AGENT = """
import json, os, pathlib, re, shlex, subprocess, sys
import openai

client = openai.OpenAI()
text = pathlib.Path(os.environ["PAMER_TASK_FILE"]).read_text()
listed = re.findall(r"^- (\\w+): (.*?) Arguments: (.*)$", text, re.MULTILINE)
shapes = [{"name": name, "description": what, "parameters": json.loads(shape)} for name, what, shape in listed]
tools = [{"type": "function", "function": shape} for shape in shapes]
messages = [{"role": "user", "content": text}]
while True:
    said = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    messages.append(said.model_dump(exclude_none=True))
    if not said.tool_calls:
        print(said.content)
        sys.exit()
    for call in said.tool_calls:
        words = [*shlex.split(os.environ["PAMER_TOOLS"]), call.function.name, call.function.arguments]
        result = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
"""


def test_a_program_with_the_openai_sdk_solves_a_world_behind_the_proxy(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(SDK_AGENT)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    workspace = Workspace(tmp_path / "work")
    agent = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(program))}"
    info = play_arena(Plan(agent=agent, tasks=1, level="1-0-0", policies=("observation-masking:2",)), workspace)
    episodes = ArenaStore(workspace).episodes(info.arena_id)
    assert [(episode.policy, episode.ended, episode.reward) for episode in episodes] == [
        ("base", "answered", 1.0),
        ("observation-masking:2", "answered", 1.0),
    ]
    assert all(episode.turns == 3 and episode.totals["main_input"] > 0 for episode in episodes) and len(server.requests) == 6


def test_agents_are_named_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for text in ("openai:m", "openai:", "reader:notes=maybe", "nobody", ""):
        with pytest.raises(InputError):
            parse_agent(text)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert parse_agent("openai:m").name == "openai:m" and parse_agent("reader:notes=off").name == "reader:notes=off"
