"""A proxy that is killed and started again: nothing lost, nothing doubled, and every session goes on with the same bytes."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
import pytest

from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.live.logs import Logs
from pamer_lab.workspace import Workspace
from tests.live.conftest import KEY, PATHS, Agent, Bench, wait
from tests.live.test_policies import violations
from tests.loopback import LOCAL

SESSIONS = 20
POLICY = "sliding-window:2"


@contextmanager
def served(upstream: str, workspace: Workspace) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A proxy in a process of its own."""
    words = ["serve", "--json", "--workspace", str(workspace.path), "--upstream", upstream, "--policy", POLICY, "--gate", "none"]
    with subprocess.Popen([sys.executable, "-m", "pamer_lab.cli", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


@dataclass
class Client:
    """A bench of nothing but an address."""

    url: str

    def post(self, api: str, body: bytes, **headers: str) -> httpx2.Response:
        given = {**KEY, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return httpx2.post(self.url + PATHS[api], content=body, headers=given, timeout=60, **LOCAL)


def test_a_killed_proxy_loses_and_doubles_nothing_and_goes_on_with_the_same_bytes(workspace: Workspace) -> None:
    fake = FakeUpstream()
    killed = threading.Event()
    with serving(fake) as direct, ThreadPoolExecutor(SESSIONS) as pool:
        with served(direct, workspace) as (process, url):
            agents = [Agent(Client(url), task=f"Task {n}.", size=100, x_session_id=f"run-{n}") for n in range(SESSIONS)]  # type: ignore[arg-type]
            for _ in range(4):
                list(pool.map(lambda agent: agent.step(), agents))
            cut = [agent.body for agent in agents]

            def left(agent: Agent) -> bool:
                try:
                    agent.bench.post(agent.api, agent.body, **agent.headers, x_fake="wait=30")  # type: ignore[arg-type]
                except httpx2.TransportError:
                    return killed.is_set()
                return False

            waiting = [pool.submit(left, agent) for agent in agents]
            wait(lambda: all(_asked(workspace, f"run-{n}") == 5 for n in range(SESSIONS)))  # every one of them is on its way
            killed.set()
            process.kill()
            assert all(future.result() for future in waiting)
        before = {name: Logs(workspace.path).read(name)[0] for name in Logs(workspace.path).names()}
        with served(direct, workspace) as (_, url):
            known = len(fake.ledger)
            for agent in agents:
                agent.bench = Client(url)  # type: ignore[assignment]
            assert [agent.body for agent in agents] == cut
            list(pool.map(lambda agent: agent.step(), agents))  # the client's retry
            retried = list(fake.ledger[known:])
            list(pool.map(lambda agent: agent.step(), agents))
            wait(lambda: all(_answers(workspace, f"run-{n}") == 6 for n in range(SESSIONS)))
    assert len(retried) == SESSIONS and all(b"exhibit 0 " not in entry.body and b"exhibit 3 " in entry.body for entry in retried)
    names = Logs(workspace.path).names()
    assert sorted(names) == sorted(before) == sorted(f"run-{n}" for n in range(SESSIONS))
    for name in names:
        record, old = Logs(workspace.path).read(name)[0], before[name]
        assert record is not None and old is not None
        assert [turn.t for turn in record.turns] == list(range(6)) and record.turns[:5] == old.turns
        assert [asked.again for asked in record.asked] == [False] * 5 + [True, False]
        assert len({message.tool_call_id for message in record.history if message.role == "tool"}) == 5
        task = f"Task {name.removeprefix('run-')}."
        assert [message.content for message in record.history if message.role == "user"] == [task]


def _asked(workspace: Workspace, name: str) -> int:
    record = Logs(workspace.path).read(name)[0]
    return len(record.asked) if record else 0


def _answers(workspace: Workspace, name: str) -> int:
    record = Logs(workspace.path).read(name)[0]
    return len(record.answers) if record else 0


@pytest.mark.parametrize("api", PATHS)
def test_over_fifty_turns_and_a_restart_each_request_begins_with_the_last_but_for_edits(started: Callable[..., Bench], api: str) -> None:
    one = started("periodic-summary:8")
    agent = Agent(one, api, size=60)
    for _ in range(25):
        agent.step()
    two = started("periodic-summary:8", fake=one.fake, clock=one.clock, upstream=one.direct)
    agent.bench = two
    for _ in range(25):
        agent.step()
    assert violations(two) == [] and len(two.rows) == 50 and two.summary["fallbacks"] == 0
    assert 0 < two.summary["edits"] <= 7


@pytest.mark.parametrize("policy", ["base", POLICY])
def test_a_slow_server_holds_up_its_own_client_only(started: Callable[..., Bench], policy: str) -> None:
    bench = started(policy)
    order: list[str] = []

    def ask(name: str, **headers: str) -> int:
        body = Agent(bench, task=name).body
        status = httpx2.post(bench.url + PATHS["chat"], content=body, headers=KEY | headers, timeout=60, **LOCAL).status_code
        order.append(name)
        return status

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(ask, "slow", **{"x-fake": "wait=2"})
        wait(lambda: bench.live.proxy.busy)
        quick = [ask(f"quick {n}") for n in range(3)]
        assert [*quick, slow.result()] == [200] * 4
    bench.settle()
    assert order[-1] == "slow" and len(bench.records()) == 4
