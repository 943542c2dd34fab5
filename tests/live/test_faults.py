"""Requirements 10, 12, 13: whatever fails, the client gets what direct access would have given, and the record has the reason."""

import socket
import threading
from collections.abc import Callable

import httpx2
import orjson
import pytest

from pamer_lab.controller.probe import Votes
from pamer_lab.errors import StorageError
from pamer_lab.factory import Parts
from pamer_lab.live.asgi import CLIENT_LEFT
from pamer_lab.live.fake_upstream import FakeUpstream
from pamer_lab.live.logs import GrownError, Logs
from pamer_lab.live.policy import Workshop
from pamer_lab.live.summary import summary
from tests.live.conftest import KEY, PARTS, PATHS, PATIENCE, Agent, Bench, chat, wait
from tests.loopback import LOCAL

HELLO = chat({"role": "user", "content": "Hello"})


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 503, 529])
def test_an_error_of_the_server_is_the_clients(started: Callable[..., Bench], status: int) -> None:
    bench = started("sliding-window:2")
    through, straight = (bench.post("chat", HELLO, x_fake=f"status={status}", straight=straight) for straight in (False, True))
    assert (through.status_code, through.content) == (straight.status_code, straight.content) == (status, straight.content)
    assert through.headers.get("retry-after") == straight.headers.get("retry-after")
    assert bench.rows[0]["status"] == status and bench.rows[0]["error"] and bench.rows[0]["usage"] is None


def test_a_server_that_is_down_is_said_and_recorded(started: Callable[..., Bench]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        bench = started(upstream=f"http://127.0.0.1:{taken.getsockname()[1]}")
        answer = bench.post("chat", HELLO)
    assert answer.status_code == 502 and answer.json()["error"]["type"] == "upstream_unreachable"
    assert bench.rows[0]["error"]


@pytest.mark.parametrize("api", PATHS)
def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(started: Callable[..., Bench], api: str) -> None:
    bench = started()
    body = orjson.dumps(orjson.loads(Agent(bench, api).body) | {"stream": True})
    for url in (bench.direct, bench.url):
        got = b""
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            httpx2.stream("POST", url + PATHS[api], content=body, headers={**KEY, "x-fake": "cut=2"}, **LOCAL) as answer,
        ):
            for chunk in answer.iter_raw():
                got += chunk
        assert got.count(b"data:") == 2
    bench.settle()
    assert bench.rows[0]["error"] and (bench.rows[0]["usage"] is None or api == "messages")


def test_a_client_that_leaves_ends_the_call_upstream(started: Callable[..., Bench]) -> None:
    bench = started()
    body = orjson.dumps({**HELLO, "stream": True})
    with httpx2.stream("POST", bench.url + PATHS["chat"], content=body, headers={**KEY, "x-fake": "pace=0.2"}, **LOCAL) as answer:
        next(answer.iter_raw())
    wait(lambda: bench.fake.cancelled == 1)
    bench.settle()
    assert bench.rows[0]["error"] == CLIENT_LEFT


def test_bytes_go_on_as_they_come(started: Callable[..., Bench]) -> None:
    bench = started()
    body = orjson.dumps({**HELLO, "stream": True})
    with httpx2.stream("POST", bench.url + PATHS["chat"], content=body, headers={**KEY, "x-fake": "hold"}, **LOCAL) as answer:
        pieces = answer.iter_raw()
        first = next(pieces)  # while the server holds back all others
        bench.fake.released.set()
        rest = b"".join(pieces)
    assert first.endswith(b"\n\n") and rest.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"messages": 1}', b'{"messages": [{"role": 7}]}', b"\xff\xfe", b'{"messages":[],"messages":[]}', b""]
)
def test_a_body_that_cannot_be_read_passes_as_it_is(started: Callable[..., Bench], body: bytes) -> None:
    bench = started("sliding-window:2")
    through, straight = (bench.post("chat", body, straight=straight) for straight in (False, True))
    assert [entry.body for entry in bench.got] == [body, body] and through.status_code == straight.status_code
    (outside,) = [thread.record for thread in bench.live.desk.threads.all()]
    assert outside.asked[0].fallback


def test_a_4xx_to_an_edited_body_sends_the_original_once_and_stops_editing(started: Callable[..., Bench]) -> None:
    fake = FakeUpstream()
    bench = started("sliding-window:2", gate=False, fake=fake)
    agent = Agent(bench)
    for _ in range(3):
        agent.step()
    edited = list(fake.ledger)
    refuse = threading.Event()
    inner = fake._answer

    async def picky(entry, path, asked, receive, send):  # type: ignore[no-untyped-def]
        if refuse.is_set() and b"exhibit 0 " not in entry.body:
            asked = {**asked, "status": "400"}
            fake.ledger.append(entry)
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        await inner(entry, path, asked, receive, send)

    fake._answer = picky  # type: ignore[method-assign]
    refuse.set()
    body = agent.body
    agent.step()
    assert [entry.body == body for entry in fake.ledger[len(edited) :]] == [False, True]
    assert bench.rows[-1]["refused"] == 400 and bench.rows[-1]["status"] == 200
    agent.step()
    assert bench.got[-1].body != body and len(bench.got) == len(edited) + 3
    assert bench.summary["stopped"] and bench.rows[-1]["sent"] == "original"


class SlowProbe:
    """Heads that wait until they are told."""

    name = "slow"

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def vote(self, messages: object, tools: object, active_tokens: int) -> Votes:
        self.asked.set()
        self.go.wait(20)
        return Votes((1.0,) * 5, (0.5,) * 5)


def test_a_late_vote_serves_the_next_turn(started: Callable[..., Bench]) -> None:
    probe = SlowProbe()
    bench = started("pamer:minimum=200", gate=False, parts=Parts(probe=probe, tokens=PARTS.tokens))
    bench.live.desk.workshop.warm()
    agent = Agent(bench)
    probe.go.set()
    for _ in range(4):
        agent.step()
    probe.go.clear()
    bench.live.proxy.deadline = 0.3
    body = agent.body
    data = {"content": body, "headers": {"content-type": "application/json", **KEY}}
    answer = httpx2.post(bench.url + PATHS["chat"], **data, timeout=30, **LOCAL)  # type: ignore[arg-type]
    assert answer.status_code == 200 and bench.got[-1].body == body
    probe.go.set()
    bench.settle()
    bench.live.proxy.deadline = 30.0
    agent.grow()
    assert "deadline" in bench.rows[-1]["reason"] and bench.rows[-1]["sent"] == "original"
    agent.step()
    assert bench.rows[-1]["edit"] and b'"call_0"' not in bench.got[-1].body
    assert bench.summary["fallbacks"] == 0


def test_health_answers_while_a_giant_request_is_worked_on(started: Callable[..., Bench]) -> None:
    probe = SlowProbe()
    bench = started("pamer:minimum=200", parts=Parts(probe=probe), deadline=60.0)
    agent = Agent(bench, size=400_000)
    for _ in range(4):
        agent.grow()
    done = threading.Thread(target=lambda: bench.post("chat", agent.body))
    done.start()
    with httpx2.Client(**LOCAL) as client:

        def healthy() -> bool:
            return bool(client.get(f"{bench.url}/_pamer/health", timeout=PATIENCE).json()["ok"])

        wait(lambda: healthy() and probe.asked.is_set())
        assert healthy() and bench.got == [], "health was answered when the decision had ended"
    probe.go.set()
    done.join(60)
    assert bench.summary["fallbacks"] == 0 and bench.got[-1].billed
    assert bench.rows[0]["client_tokens"] > 400_000


def test_a_policy_that_fails_leaves_the_request_as_it_came(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    for _ in range(4):
        agent.step()
    monkeypatch.setattr(Workshop, "acting", lambda *_: 1 / 0)
    for thread in bench.live.desk.threads.all():
        thread.acting = None
    body = agent.body
    agent.step()
    assert bench.got[-1].body == body and "ZeroDivisionError" in bench.rows[-1]["fallback"]
    monkeypatch.undo()
    agent.step()
    assert len(bench.got[-1].body) < len(body) and bench.rows[-1]["fallback"] == ""


def test_where_the_original_does_not_fit_the_last_good_view_is_kept(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started("sliding-window:2", gate=False, window=900)
    agent = Agent(bench)
    for _ in range(12):
        agent.step()
    before = bench.got[-1].body
    monkeypatch.setattr(Workshop, "acting", lambda *_: 1 / 0)
    for thread in bench.live.desk.threads.all():
        thread.acting = None
    agent.step()
    assert bench.rows[-1]["sent"] == "kept" and bench.rows[-1]["fallback"]
    assert bench.got[-1].body.startswith(before[:-2])


@pytest.mark.parametrize("policy", ["base", "sliding-window:2", "pamer:minimum=200"])
def test_a_full_disk_costs_the_client_nothing_and_loses_nothing(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    bench = started(policy, gate=False)
    agent = Agent(bench)
    for _ in range(4):
        agent.step()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Logs, "_write", full)
        patch.setattr("pamer_lab.storage.database.Database._write", _no_space)
        bodies = []
        for _ in range(3):
            bodies.append(agent.body)
            agent.step()
        assert [entry.body for entry in bench.got[-3:]] == bodies
    agent.step()
    record, _ = Logs(bench.workspace.path).read(bench.record.session)
    assert record is not None and [asked.t for asked in record.asked] == list(range(8)) and len(record.answers) == 8
    assert summary(record)["turns"] == bench.summary["turns"] == 8
    assert policy == "base" or any("No space" in row["fallback"] for row in bench.rows)


def _no_space(*_: object) -> int:
    raise StorageError("No space left on device")


def test_an_edit_waits_while_other_processes_keep_adding_to_the_record(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    for _ in range(4):
        agent.step()

    def grown(*_: object) -> int:
        raise GrownError

    with monkeypatch.context() as patch:
        patch.setattr(Logs, "append", grown)
        body = agent.body
        agent.step()
        assert bench.got[-1].body == body and "could not be written" in bench.rows[-1]["fallback"]
    agent.step()
    assert bench.rows[-1]["sent"] == "edited"
    record, _ = Logs(bench.workspace.path).read(bench.record.session)
    assert record is not None and [asked.t for asked in record.asked] == list(range(6)) and len(record.answers) == 6
