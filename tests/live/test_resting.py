"""A proxy that runs for long: sessions leave its memory, and continue from their files with the same bytes."""

from collections.abc import Callable

import httpx2
import orjson
import pytest

from pamer_lab.live import desk, threads
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.logs import Logs
from tests.live.conftest import KEY, PATHS, Agent, Bench
from tests.loopback import LOCAL

KEPT = 2
POLICY = "sliding-window:2"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "KNOWN", KEPT)


def _interleaved(bench: Bench, **headers: str) -> list[bytes]:
    """What the server got of six sessions in turns: two of each API, of which one names itself."""
    bench.got.clear()
    agents = [
        Agent(bench, api, task=f"Task {number}.", **headers, **({"session_id": f"{api} one"} if number == 0 else {}))
        for api in PATHS
        for number in range(2)
    ]
    for _ in range(4):
        for agent in agents:
            bench.clock.now += 1
            agent.step()
    return [entry.body for entry in bench.got]


@pytest.mark.parametrize(("policy", "limit"), [("base", "KNOWN"), (POLICY, "KNOWN"), ("periodic-summary:2", "KNOWN_BYTES")])
def test_sessions_that_rested_go_on_with_the_same_bytes(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, policy: str, limit: str
) -> None:
    bench = started(policy, gate=False)
    monkeypatch.setattr(threads, "KNOWN", 100)
    expected = _interleaved(bench, authorization="Bearer sk-other-0123456789abcdef")
    assert len(bench.records()) == 6
    monkeypatch.setattr(threads, limit, 5_000 if limit == "KNOWN_BYTES" else KEPT)
    assert _interleaved(bench) == expected
    assert len(bench.records()) <= KEPT
    records = [record for name in Logs(bench.workspace.path).names() if (record := Logs(bench.workspace.path).read(name)[0])]
    assert len(records) == 12 and {len(record.asked) for record in records} == {4}
    assert all(record.answers.keys() == {asked.n for asked in record.asked} for record in records)


def test_a_session_at_rest_can_be_paused_listed_and_left(started: Callable[..., Bench]) -> None:
    bench = started(POLICY, gate=False)
    first = Agent(bench, task="first", x_session_id="first")
    for _ in range(4):
        first.step()
    for number in range(3):
        bench.clock.now += 1
        Agent(bench, task=f"other {number}").step()
    assert "first" not in {record.session for record in bench.records()}
    token = {"x-pamer-token": bench.live.token}
    listed = httpx2.get(f"{bench.url}/_pamer/sessions", headers=token, **LOCAL).json()["sessions"]
    assert {(entry["session"], entry["turns"]) for entry in listed} >= {("first", 4)} and len(listed) == 4
    paused = httpx2.post(f"{bench.url}/_pamer/sessions/first/pause", headers=token, **LOCAL)
    assert paused.status_code == 200 and paused.json()["paused"]
    body = first.body
    first.step()
    assert bench.got[-1].body == body
    for number in range(3):
        bench.clock.now += 1
        Agent(bench, task=f"more {number}").step()
    del first.history[5:]
    first.step()
    assert {record.session: record.opened.parent for record in bench.records()}["first~2"] == "first"


def test_a_response_of_a_session_at_rest_is_found(started: Callable[..., Bench]) -> None:
    bench = started()
    previous = bench.post("responses", {"model": "fake", "input": "first"}).json()["id"]
    for number in range(3):
        bench.clock.now += 1
        Agent(bench, task=f"other {number}").step()
    bench.post("responses", {"model": "fake", "input": "second", "previous_response_id": previous})
    (line,) = [record for record in bench.records() if record.opened.api == "responses"]
    assert [message.content for message in line.history if message.role == "user"] == ["first", "second"]


def test_calls_outside_conversations_do_not_pile_up(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "OUTSIDE_KEPT", 4)
    bench = started()
    for number in range(10):
        httpx2.get(f"{bench.url}/v1/models?page={number}", headers=KEY, **LOCAL)
        bench.post("chat", orjson.dumps([number]))
    thread = bench.live.desk.threads.get(OUTSIDE)
    record = Logs(bench.workspace.path).read(OUTSIDE)[0]
    assert thread is not None and len(thread.record.sides) + len(thread.record.asked) <= 5
    assert record is not None and len(record.sides) == len(record.asked) == len(record.answers) == 10
