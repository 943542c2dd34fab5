"""A model behind an OpenAI-compatible server plays with its tools as functions; a server that fails ends its task and no other."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pamer_lab.arena.agents import ServedAgent, parse_agent
from pamer_lab.arena.episode import play
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.world import Level, Task
from pamer_lab.controller.request import read_message
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.trajectory.values import Tool
from pamer_lab.workspace import Workspace

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
        tools = [Tool(entry["function"]["name"]) for entry in body["tools"]]
        said = Reader().act([read_message(item, "m") for item in body["messages"]], tools)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in said.tool_calls
        ]
        message = {"role": "assistant", "content": said.content, "tool_calls": calls or None}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
        answer["usage"]["total_tokens"] = 12  # type: ignore[index]
        text = json.dumps(answer | {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()
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


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Served)
    made.requests = []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


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


def test_a_server_that_dies_ends_its_task_with_the_reason(server: Server, factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    server.dies_after = 4
    episode = play(TASK, agent_at(server, monkeypatch), parse_policy("base"), factory)
    assert "server failed" in episode.ended and episode.reward == 0.0 and episode.turns == 4
    nobody = ServedAgent("m", "http://127.0.0.1:9/v1", attempts=1, timeout=2)
    assert "server failed" in play(TASK, nobody, parse_policy("base"), factory).ended


def test_agents_are_named_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for text in ("openai:m", "openai:", "reader:notes=maybe", "nobody", ""):
        with pytest.raises(InputError):
            parse_agent(text)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert parse_agent("openai:m").name == "openai:m" and parse_agent("reader:notes=off").name == "reader:notes=off"
