"""Requirements 3, 6, 7: whose request it is, and what a restart, a retry or a changed history does to it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import orjson
import pytest

from pamer_lab.live.logs import Logs
from pamer_lab.live.record import Record, Side
from pamer_lab.live.view import MARKED
from tests.live.conftest import KEY, PATHS, Agent, Bench
from tests.live.test_policies import violations
from tests.loopback import LOCAL

SMALL = "pamer:minimum=200"


def texts(record: Record) -> str:
    return " ".join(message.content for message in record.history)


@pytest.mark.parametrize("policy", ["sliding-window:2", "observation-masking:2", "periodic-summary:3", SMALL])
@pytest.mark.parametrize("api", PATHS)
def test_a_restart_goes_on_with_the_same_bytes(started: Callable[..., Bench], api: str, policy: str) -> None:
    gate = "summary" not in policy  # a summary of so few blocks would never pay
    one = started(policy, gate=gate)
    agent = Agent(one, api)
    for _ in range(8):
        agent.step()
    two = started(policy, fake=one.fake, clock=one.clock, upstream=one.direct, gate=gate)
    two.post(api, agent.body)
    one.post(api, agent.body)
    assert one.got[-2].body == one.got[-1].body != agent.body
    agent.bench = two
    agent.grow()
    for _ in range(6):
        agent.step()
    assert len(two.records()) == 1 and two.summary["fallbacks"] == 0
    assert violations(two) == []


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("task", ["one task", "a task of its own"])
def test_interleaved_sessions_with_one_system_prompt_never_mix(started: Callable[..., Bench], named: bool, task: str) -> None:
    bench = started(SMALL)
    count = 20 if named else 6
    agents = []
    for number in range(count):
        own = f"Task {number}" if task != "one task" else "The same task"
        agents.append(Agent(bench, task=own, **({"x_session_id": f"run-{number}"} if named else {})))
        agents[-1].turn = number * 100
    with ThreadPoolExecutor(4) as pool:
        for _ in range(6):
            list(pool.map(lambda agent: agent.step(), agents))
    records = bench.records()
    assert len(records) == count
    for record in records:
        hundreds = {word.partition(" ")[0] for word in texts(record).split("room ")[1:]}
        assert len({int("".join(filter(str.isdigit, word))) // 100 for word in hundreds}) == 1
    for entry in bench.got:
        rooms = {
            int(word.split(":")[0].split(".")[0].split(" ")[0]) // 100
            for word in entry.body.decode().split("room ")[1:]
            if word[0].isdigit()
        }
        assert len(rooms) <= 1, "a request has text of two sessions"
    assert {record.session for record in records} == {f"run-{number}" for number in range(count)} or not named


def test_three_subagents_under_one_id_are_three_sessions(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agents = [Agent(bench, "messages", task=f"Subtask {number}", x_claude_code_session_id="s1") for number in range(3)]
    for _ in range(4):
        for agent in agents:
            agent.step()
    assert sorted(len(record.asked) for record in bench.records()) == [4, 4, 4]
    assert all(record.opened.how == "header" for record in bench.records())


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ({"prompt_cache_key": "k1"}, "body"),
        ({"metadata": {"user_id": "user_1_account__session_2"}}, "body"),
        ({"user": "u1"}, "first message"),
    ],
)
def test_ids_in_the_body_count_and_users_do_not(started: Callable[..., Bench], body: dict[str, object], how: str) -> None:
    bench = started()
    agent = Agent(bench, "responses")
    agent.more = body
    agent.step()
    agent.step()
    assert bench.record.opened.how == how and len(bench.record.asked) == 2


def test_another_credential_is_another_session(started: Callable[..., Bench]) -> None:
    bench = started()
    for key in ("sk-one-00000000", "sk-two-00000000", "sk-one-00000000"):
        bench.post("chat", Agent(bench).body, authorization=f"Bearer {key}", x_session_id="same")
    assert sorted(len(record.asked) for record in bench.records()) == [1, 2]


def test_a_retry_gets_the_same_bytes_and_no_second_decision(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    for _ in range(5):
        agent.step()
    bench.post("chat", agent.body)
    bench.post("chat", agent.body)
    assert bench.got[-1].body == bench.got[-2].body
    assert [row["again"] for row in bench.rows][-2:] == [False, True] and len(bench.record.turns) == 6


@pytest.mark.parametrize("policy", ["sliding-window:2", SMALL])
def test_an_edited_or_shorter_history_is_a_line_of_its_own(started: Callable[..., Bench], policy: str) -> None:
    bench = started(policy, gate=False)
    agent = Agent(bench)
    for _ in range(6):
        agent.step()
    history = list(agent.history)
    agent.history = [*history[:7], {"role": "user", "content": "Go back: look at the NEW wing."}]
    agent.step()
    sent = bench.got[-1].body.decode()
    assert "NEW wing" in sent and all(f"exhibit {number} " not in sent for number in (3, 4, 5))
    fork = next(record for record in bench.records() if record.opened.parent)
    assert len(bench.records()) == 2 and len(fork.turns) == 4
    agent.history = history  # the main line goes on where it was
    agent.step()
    assert len(bench.records()) == 2 and "NEW wing" not in bench.got[-1].body.decode()


def test_cache_marks_that_move_do_not_part_a_session_and_are_never_lost(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench, "messages")
    for _ in range(6):
        body = orjson.loads(agent.body)
        for message in body["messages"][-2:]:
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        bench.post("messages", body)
        agent.grow()
        assert bench.got[-1].body.count(b"cache_control") == orjson.dumps(body).count(b"cache_control")
    assert len(bench.record.asked) == 6 and bench.summary["edits"] > 0


def test_a_mark_on_an_old_message_keeps_it_in_the_request(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:1", gate=False)
    agent = Agent(bench, "messages")
    for _ in range(4):
        agent.grow()
    body = orjson.loads(agent.body)
    body["messages"][2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    sent = orjson.dumps(body)
    bench.post("messages", sent)
    assert bench.got[-1].body == sent and MARKED in bench.rows[-1]["fallback"]


@pytest.mark.parametrize("more", [{}, {"store": True}])
def test_a_conversation_that_the_provider_keeps_is_passed_on_and_joined(started: Callable[..., Bench], more: dict[str, bool]) -> None:
    bench = started("sliding-window:1", gate=False)
    first = bench.post("responses", {"model": "fake", "input": "Hello", **more}).json()
    body = orjson.dumps({"model": "fake", "previous_response_id": first["id"], "input": "And then?", **more})
    bench.post("responses", body)
    assert bench.got[-1].body == body
    assert [message.content for message in bench.record.history if message.role == "user"] == ["Hello", "And then?"]


@pytest.mark.parametrize("stored", [True, False])
def test_a_history_that_the_client_sends_is_edited_whether_the_provider_keeps_it_or_not(
    started: Callable[..., Bench], stored: bool
) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench, "responses")
    agent.more = {"store": stored}
    for _ in range(5):
        body = agent.body
        agent.step()
    assert len(bench.got[-1].body) < len(body) and orjson.loads(bench.got[-1].body)["store"] is stored
    assert bench.summary["fallbacks"] == 0 and violations(bench) == []


def test_a_request_that_comes_before_the_last_is_read_stays_in_its_session(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = started()
    read, inner = threading.Event(), bench.live.desk.decider.decide

    def slow(*given: Any) -> Any:
        assert read.wait(60)
        return inner(*given)

    monkeypatch.setattr(bench.live.desk.decider, "decide", slow)
    agent = Agent(bench)
    for _ in range(3):
        answer = httpx2.post(bench.url + PATHS["chat"], content=agent.body, headers=KEY, timeout=60, **LOCAL)
        assert answer.status_code == 200
        agent.grow()
    read.set()
    bench.settle()
    assert [asked.t for asked in bench.record.asked] == [0, 1, 2]


def test_a_new_session_does_not_wait_for_one_that_is_worked_on(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2")
    Agent(bench, x_session_id="slow").step()
    (slow,) = bench.live.desk.threads.all()
    Logs(bench.workspace.path).append("slow", slow.place, [Side(0.0, "/v1/models")])  # another process had a part in it
    held, done = threading.Event(), threading.Event()

    def work() -> None:
        with slow.lock:
            held.set()
            assert done.wait(60)
            bench.live.desk.threads.tidy()

    worker = threading.Thread(target=work)
    worker.start()
    assert held.wait(60)
    Agent(bench, task="Another task.", x_session_id="quick").step()
    done.set()
    worker.join(60)
    assert not worker.is_alive() and {record.session for record in bench.records()} == {"slow", "quick"}


def test_two_proxies_on_one_workspace_share_a_session(started: Callable[..., Bench]) -> None:
    one = started("periodic-summary:2")
    two = started("periodic-summary:2", fake=one.fake, clock=one.clock, upstream=one.direct)
    agent = Agent(one)
    for number in range(8):
        agent.bench = (one, two)[number % 2]
        agent.step()
    record, _ = Logs(one.workspace.path).read(one.record.session)
    assert record is not None and [asked.t for asked in record.asked] == list(range(8))
    assert len(record.answers) == 8 and len(record.turns) == 8 and len(Logs(one.workspace.path).names()) == 1
