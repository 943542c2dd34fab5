"""What live tests share: a fake upstream that keeps a ledger, a proxy in front of it, and a client that sends bytes."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import pytest

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller.probe import FixedProbe
from pamer_lab.factory import Parts
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.fake_upstream import FakeUpstream, Received, serving
from pamer_lab.live.policy import LiveOptions
from pamer_lab.live.record import Record
from pamer_lab.live.serve import Live, build
from pamer_lab.live.summary import described, summary
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.workspace import Workspace
from tests.loopback import LOCAL

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
KEY = {"authorization": "Bearer sk-planted-0123456789abcdef"}
PATIENCE = 60.0


class Clock:
    """Seconds that a test sets."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A proxy, its upstream, and a client of both."""

    url: str
    direct: str
    fake: FakeUpstream
    live: Live
    workspace: Workspace
    clock: Clock

    def post(self, api: str, body: bytes | dict[str, Any], *, straight: bool = False, **headers: str) -> httpx2.Response:
        """A model call, through the proxy or straight to the upstream."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        given = {"content-type": "application/json", **KEY, **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer = httpx2.post(f"{self.direct if straight else self.url}{PATHS[api]}", content=data, headers=given, timeout=60, **LOCAL)
        if not straight:
            self.settle()
        return answer

    def settle(self) -> None:
        """Wait until what was answered is recorded."""
        wait(lambda: not self.live.proxy.busy)

    @property
    def got(self) -> list[Received]:
        return self.fake.ledger

    def records(self) -> list[Record]:
        return [thread.record for thread in self.live.desk.threads.all() if thread.record.session != OUTSIDE]

    @property
    def record(self) -> Record:
        (found,) = self.records()
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(described(self.record)["requests"])

    @property
    def summary(self) -> dict[str, Any]:
        return summary(self.record)


def wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


PARTS = Parts(embedder=HashingEmbedder(64), probe=FixedProbe(), tokens=MessageTokens(EstimatedCounter()))
"""Heads that always vote for compression, a tokenizer that needs no file, and hashed words for an embedding model."""


@pytest.fixture
def started(workspace: Workspace) -> Iterator[Callable[..., Bench]]:
    """Starts a proxy with a policy; several on one workspace where it is called again."""
    with ExitStack() as stack:

        def start(policy: str = "base", *, fake: FakeUpstream | None = None, clock: Clock | None = None, **options: Any) -> Bench:
            clock = clock or Clock()
            upstream = fake or FakeUpstream(clock)
            direct = stack.enter_context(serving(upstream))
            options = {"parts": PARTS, "deadline": 30.0} | options
            live = build(workspace, options.pop("upstream", direct), LiveOptions(policy, **options), clock=clock)
            return Bench(stack.enter_context(serving(live.proxy)), direct, upstream, live, workspace, clock)

        yield start


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "fake", "messages": list(messages), **more}


class Agent:
    """A client whose history only grows, in the form of one API."""

    def __init__(
        self, bench: Bench, api: str = "chat", task: str = "Count the rooms of the museum.", size: int = 400, **headers: str
    ) -> None:
        self.bench, self.api, self.size, self.headers = bench, api, size, headers
        self.history: list[dict[str, Any]] = [{"role": "user", "content": task}]
        self.turn = 0
        self.more: dict[str, Any] = {}

    @property
    def body(self) -> bytes:
        key = "input" if self.api == "responses" else "messages"
        system = {"messages": {"system": "You are careful.", "max_tokens": 100}, "responses": {"instructions": "You are careful."}}
        head = [{"role": "system", "content": "You are careful."}] if self.api == "chat" else []
        return orjson.dumps({"model": "fake", **system.get(self.api, {}), **self.more, key: [*head, *self.history]})

    def step(self) -> httpx2.Response:
        """One request, and what the agent does with the answer: a call and its result."""
        answer = self.bench.post(self.api, self.body, **self.headers)
        assert answer.status_code == 200, answer.text
        self.grow()
        return answer

    def grow(self) -> None:
        name, text = f"call_{self.turn}", f"room {self.turn}: " + f"exhibit {self.turn} " * (self.size // 10)
        match self.api:
            case "chat":
                call = {"id": name, "type": "function", "function": {"name": "look", "arguments": f'{{"room": {self.turn}}}'}}
                self.history.append({"role": "assistant", "content": f"I look at room {self.turn}.", "tool_calls": [call]})
                self.history.append({"role": "tool", "tool_call_id": name, "content": text})
            case "messages":
                use = {"type": "tool_use", "id": name, "name": "look", "input": {"room": self.turn}}
                self.history.append({"role": "assistant", "content": [{"type": "text", "text": f"I look at room {self.turn}."}, use]})
                self.history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]})
            case _:
                self.history.append(
                    {"type": "reasoning", "id": f"rs_{self.turn}", "summary": [], "encrypted_content": f"gAAA{self.turn}=="}
                )
                self.history.append({"type": "function_call", "call_id": name, "name": "look", "arguments": f'{{"room":{self.turn}}}'})
                self.history.append({"type": "function_call_output", "call_id": name, "output": text})
        self.turn += 1
