"""Requirements 6, 7, 10, 13: requests that come while another is decided on, that leave, or whose history is elsewhere."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import httpx2
import orjson
import pytest

from pamer_lab.live.asgi import CLIENT_LEFT
from pamer_lab.live.fake_upstream import FakeUpstream
from pamer_lab.live.logs import Logs
from pamer_lab.live.publish import publish
from pamer_lab.live.summary import described
from pamer_lab.runs.store import RunStore
from tests.live.conftest import KEY, PARTS, PATHS, Agent, Bench, wait
from tests.loopback import LOCAL


class Gate:
    """Holds up decisions until they may be made."""

    def __init__(self, inner: Callable[..., Any]) -> None:
        self.inner, self.asked, self.go = inner, threading.Event(), threading.Event()
        self.go.set()

    def __call__(self, *given: Any) -> Any:
        self.asked.set()
        assert self.go.wait(60)
        return self.inner(*given)

    def close(self) -> None:
        self.asked.clear()
        self.go.clear()


def _send(bench: Bench, body: bytes) -> threading.Thread:
    def post() -> None:
        httpx2.post(bench.url + PATHS["chat"], content=body, headers=KEY, timeout=60, **LOCAL)

    thread = threading.Thread(target=post)
    thread.start()
    return thread


@pytest.fixture
def gated(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, Gate]:
    bench = started("sliding-window:2", gate=False)
    gate = Gate(bench.live.desk.decider._act)
    monkeypatch.setattr(bench.live.desk.decider, "_act", gate)
    return bench, gate


def test_two_requests_that_part_at_the_same_time_are_two_sessions(gated: tuple[Bench, Gate]) -> None:
    bench, gate = gated
    agent = Agent(bench)
    for _ in range(3):
        agent.step()
    gate.close()
    body = orjson.loads(agent.body)
    bodies = [orjson.dumps(body | {"messages": [*body["messages"], {"role": "user", "content": where}]}) for where in ("left", "right")]
    one = _send(bench, bodies[0])
    wait(gate.asked.is_set)
    other = _send(bench, bodies[1])
    wait(lambda: bench.live.proxy._open == 2)
    gate.go.set()
    one.join()
    other.join()
    bench.settle()
    ends = {record.history[-1].content: record.opened.parent for record in bench.records()}
    assert set(ends) == {"left", "right"} and sum(bool(parent) for parent in ends.values()) == 1


def test_a_request_behind_another_sessions_decision_goes_out_with_its_last_view(gated: tuple[Bench, Gate]) -> None:
    bench, gate = gated
    bench.live.proxy._deciders._max_workers = 1
    one, two = Agent(bench, task="one"), Agent(bench, task="two")
    for _ in range(6):
        one.step()
        two.step()
    before = {agent: [entry.body for entry in bench.got if agent.history[0]["content"].encode() in entry.body][-1] for agent in (one, two)}
    gate.close()
    bench.live.proxy.deadline = 0.3
    first = _send(bench, one.body)
    wait(gate.asked.is_set)
    second = _send(bench, two.body)
    first.join()
    second.join()
    sent = [entry.body for entry in bench.got[-2:]]
    gate.go.set()
    bench.settle()
    assert sorted(body.startswith(old[:-2]) for body in sent for old in before.values()) == [False, False, True, True]
    rows = [described(record)["requests"][-1] for record in bench.records()]
    assert [(row["sent"], row["edit"]) for row in rows] == [("kept", False)] * 2
    assert sorted(row["sent_bytes"] for row in rows) == sorted(map(len, sent))


def test_requests_behind_a_late_first_decision_stay_in_one_session(gated: tuple[Bench, Gate]) -> None:
    bench, gate = gated
    gate.close()
    bench.live.proxy.deadline = 0.1
    agent = Agent(bench)
    for _ in range(6):
        _send(bench, agent.body).join()
        agent.grow()
    gate.go.set()
    bench.settle()
    (record,) = bench.records()
    assert [row["t"] for row in described(record)["requests"]] == list(range(6))


def test_what_went_out_before_a_late_decision_is_recorded_when_the_disk_is_full(
    gated: tuple[Bench, Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, gate = gated
    agent = Agent(bench)
    for _ in range(6):
        agent.step()
    before = bench.got[-1].body
    gate.close()
    bench.live.proxy.deadline = 0.1
    client = _send(bench, agent.body)
    client.join()
    with monkeypatch.context() as patch:
        patch.setattr(Logs, "_write", _no_space)
        gate.go.set()
        bench.settle()
    sent = bench.got[-1].body
    row = bench.rows[-1]
    assert sent.startswith(before[:-2]) and (row["sent"], row["sent_bytes"], row["edit"], row["fallback"]) == ("kept", len(sent), False, "")
    agent.grow()
    agent.step()
    record = Logs(bench.workspace.path).read(bench.record.session)[0]
    assert record is not None and described(record)["requests"] == bench.rows and len(bench.rows) == 8


def test_what_went_out_on_a_full_disk_is_what_the_record_shows(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    for _ in range(6):
        agent.step()
    with monkeypatch.context() as patch:
        patch.setattr(Logs, "_write", _no_space)
        agent.step()
    row = bench.rows[-1]
    assert (row["sent"], row["edit"], row["model_tokens"]) == ("original", True, row["client_tokens"]) and row["fallback"]
    agent.step()
    record = Logs(bench.workspace.path).read(bench.record.session)[0]
    assert record is not None and described(record)["requests"] == bench.rows and bench.rows[-1]["sent"] == "edited"


def _no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_client_that_leaves_before_the_decision_is_recorded(gated: tuple[Bench, Gate]) -> None:
    bench, gate = gated
    agent = Agent(bench)
    for _ in range(4):
        agent.step()
    gate.close()
    with socket.create_connection(("127.0.0.1", int(bench.url.rpartition(":")[2]))) as client:
        head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(agent.body)}\r\n"
        client.sendall(f"{head}authorization: {KEY['authorization']}\r\n\r\n".encode() + agent.body)
        wait(gate.asked.is_set)
    wait(lambda: bench.live.proxy._open == 0)
    gate.go.set()
    bench.settle()
    assert bench.rows[-1]["error"] == CLIENT_LEFT and bench.rows[-1]["t"] == 4 and len(bench.got) == 4


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses/compact", "/v1beta/models/m:streamGenerateContent"])
def test_every_stream_ends_upstream_when_its_client_leaves(started: Callable[..., Bench], path: str) -> None:
    left = threading.Event()

    class Endless(FakeUpstream):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return await super().__call__(scope, receive, send)
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
            await send({"type": "http.response.body", "body": b"data: {}\n\n", "more_body": True})
            assert (await receive())["type"] == "http.disconnect"
            left.set()

    bench = started(fake=Endless())
    body = b'{"messages":[{"role":"user","content":"x"}],"stream":true}'
    with httpx2.stream("POST", bench.url + path, content=body, headers=KEY, timeout=60, **LOCAL) as answer:
        assert next(answer.iter_raw())
    wait(left.is_set)


@pytest.mark.parametrize("policy", ["base", "sliding-window:2"])
def test_a_client_that_asks_for_more_before_it_has_an_answer_is_decided_on_again(started: Callable[..., Bench], policy: str) -> None:
    bench = started(policy, gate=False)
    agent = Agent(bench)
    for _ in range(5):
        agent.step()
    bench.post("chat", agent.body)
    publish(bench.workspace, bench.record, PARTS.tokens)
    agent.history.append({"role": "user", "content": "No, look at the other rooms first. " * 9})
    agent.step()
    agent.step()
    publish(bench.workspace, bench.record, PARTS.tokens)
    rows = bench.rows[-3:]
    assert [row["t"] for row in rows] == [5, 5, 6] and not any(row["again"] for row in rows)
    assert rows[0]["client_tokens"] < rows[1]["client_tokens"] < rows[2]["client_tokens"]
    record = bench.record
    assert [turn.t for turn in record.turns] == list(range(7)) and record.turns[5].raw_tokens == rows[1]["client_tokens"]
    stored = RunStore(bench.workspace).turns(record.run_id)
    assert [turn.raw_tokens for turn in stored] == [turn.raw_tokens for turn in record.turns[: len(stored)]] and len(stored) >= 6


@pytest.mark.parametrize("policy", ["base", "sliding-window:1"])
def test_a_conversation_that_the_provider_keeps_is_a_complete_trace_and_forks(started: Callable[..., Bench], policy: str) -> None:
    bench, ids = started(policy, gate=False), [""]
    for number, previous in enumerate((0, 1, 2, 1)):
        more = {"previous_response_id": ids[previous]} if previous else {}
        ids.append(bench.post("responses", {"model": "fake", "input": f"question {number}", **more}).json()["id"])
    line, fork = bench.records()
    roles = [message.role for record in (line, fork) if record.trace for message in record.trace.messages]
    assert roles == ["user", "assistant"] * 3 + ["user", "assistant"] * 2 and fork.opened.parent == line.session
    rows = described(line)["requests"]
    assert [row["t"] for row in rows] == [0, 1, 2] and all(row["sent"] == "original" for row in rows)
    assert rows[0]["client_tokens"] < rows[1]["client_tokens"] < rows[2]["client_tokens"]


def test_a_session_whose_file_was_deleted_begins_again(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    for _ in range(4):
        agent.step()
    rmtree(Path(bench.workspace.path) / "live")
    for _ in range(3):
        agent.step()
    assert bench.summary["requests"] == 3 and bench.summary["fallbacks"] == 0 and len(bench.record.history) == 1 + 1 + 2 * 6


def test_zeros_behind_the_last_frame_end_a_session_file_and_are_written_over(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    agent.step()
    file = Logs(bench.workspace.path).path(bench.record.session)
    file.write_bytes(file.read_bytes() + bytes(4_096))  # what a crash of the machine leaves of a write
    agent.step()
    assert bench.summary["requests"] == 2 and bench.summary["fallbacks"] == 0 and not file.read_bytes().endswith(bytes(64))


def test_a_smaller_file_in_place_of_ours_is_continued_where_it_ends(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    agent.step()
    logs, name = Logs(bench.workspace.path), bench.record.session
    file, early = logs.path(name), logs.path(name).read_bytes()
    agent.step()
    file.write_bytes(early)
    agent.step()
    record, end = logs.read(name)
    assert record is not None and end == file.stat().st_size and len(record.answers) >= 2
