"""Requirements 4, 11, 14, 15: what is recorded replays to the same decisions, adds up to the upstream's ledger, and has no key in it."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx2
import orjson
import pytest

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.errors import StorageError
from pamer_lab.factory import Parts
from pamer_lab.live.fake_upstream import FakeUpstream
from pamer_lab.live.logs import Logs
from pamer_lab.live.publish import publish
from pamer_lab.live.summary import summary
from pamer_lab.memory import MemoryStore
from pamer_lab.prices import find_prices
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from tests.live.conftest import KEY, PARTS, PATHS, Agent, Bench, Clock
from tests.loopback import LOCAL

LIVE = ["base", "sliding-window:2", "observation-masking:2", "periodic-summary:3", "pamer:minimum=200", "pamer+:minimum=200"]


@pytest.mark.parametrize("policy", LIVE)
def test_the_record_replays_to_the_same_decisions(started: Callable[..., Bench], policy: str) -> None:
    clock = Clock()
    bench = started(policy, clock=clock)
    agent = Agent(bench, "messages")
    for number in range(10):
        clock.now += 900.0 if number == 6 else 7.0
        agent.step()
    record = bench.record
    assert publish(bench.workspace, record, PARTS.tokens) and publish(bench.workspace, record, PARTS.tokens)
    live = RunStore(bench.workspace).run(record.run_id)
    again = replay(record.trace_id, record.policy, bench.workspace, ReplayOptions(parts=PARTS))
    assert again.run_id != live.run_id and len(live.turns) == 10
    for ours, theirs in zip(live.turns, again.turns, strict=True):
        same = ("action", "votes", "restored_steps", "raw_tokens", "output_tokens", "states", "stored", "candidate_tokens")
        assert {name: getattr(ours, name) for name in same} == {name: getattr(theirs, name) for name in same}
        # A memory's id names its session, so texts that quote one may differ in a token.
        assert abs(ours.active_tokens - theirs.active_tokens) <= 3
    assert live.totals["actions"] == again.totals["actions"]
    trace = bench.workspace.trace(record.trace_id).trace
    assert trace.turns == 10 and trace.messages[-1].usage is not None


def test_a_trace_that_grew_drops_replays_of_what_it_was(started: Callable[..., Bench]) -> None:
    bench = started()
    agent = Agent(bench)
    agent.step()
    publish(bench.workspace, bench.record, PARTS.tokens)
    old = replay(bench.record.trace_id, "sliding-window:2", bench.workspace, ReplayOptions(parts=PARTS))
    agent.step()
    publish(bench.workspace, bench.record, PARTS.tokens)
    new = replay(bench.record.trace_id, "sliding-window:2", bench.workspace, ReplayOptions(parts=PARTS))
    assert (len(old.turns), len(new.turns)) == (1, 2)


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_billed_tokens_are_the_upstreams_ledger(started: Callable[..., Bench], api: str, stream: bool) -> None:
    clock = Clock()
    bench = started("sliding-window:2", gate=False, clock=clock)
    agent = Agent(bench, api)
    agent.more = {"stream": stream} | ({"stream_options": {"include_usage": True}} if stream and api == "chat" else {})
    for _ in range(7):
        clock.now += 60.0
        agent.step()
    billed = bench.summary["tokens"]["billed"]
    totals = bench.fake.totals
    assert {name: billed[name] or 0 for name in ("uncached", "read", "write", "output")} == vars(totals)
    prices = find_prices("")
    money = (
        totals.uncached * prices.uncached + totals.read * prices.read + totals.write * prices.write + totals.output * prices.output
    ) / 1e6
    assert bench.summary["cost"]["total"] == pytest.approx(money) and bench.summary["cost"]["complete"]
    assert bench.summary["tokens"]["model"] < bench.summary["tokens"]["client"]


def test_unknown_usage_is_not_zero(started: Callable[..., Bench]) -> None:
    bench = started()
    agent = Agent(bench)
    agent.more = {"stream": True}
    agent.step()
    found = summary(bench.record)
    assert found["tokens"]["billed"]["calls_without_usage"] == 1 and found["tokens"]["billed"]["output"] is None
    assert found["cost"]["total"] is None and not found["cost"]["complete"]


@pytest.mark.parametrize("policy", ["sliding-window:2", "pamer:minimum=200"])
def test_an_edit_waits_until_it_pays_or_the_cache_is_cold(started: Callable[..., Bench], policy: str) -> None:
    clock = Clock()
    bench = started(f"{policy}:gate=priced:horizon=0", clock=clock, fake=FakeUpstream(clock))
    agent = Agent(bench)
    for _ in range(6):
        clock.now += 10.0
        agent.step()
    assert bench.summary["edits"] == 0 and all(row["sent"] == "original" for row in bench.rows)
    assert any("horizon 0" in row["reason"] for row in bench.rows)
    clock.now += 599.0  # under twice the lifetime: the cache may still be warm
    agent.step()
    assert not bench.rows[-1]["edit"]
    clock.now += 601.0
    agent.step()
    assert bench.rows[-1]["edit"] and "cold" in bench.rows[-1]["reason"]


@pytest.mark.parametrize("policy", ["sliding-window:2", "pamer:minimum=200"])
def test_an_edit_is_made_when_the_client_has_rewritten_its_history(started: Callable[..., Bench], policy: str) -> None:
    bench = started(f"{policy}:gate=priced:horizon=0", clock=Clock())
    agent = Agent(bench)
    for _ in range(6):
        agent.step()
    assert bench.summary["edits"] == 0
    agent.history[2] = agent.history[2] | {"content": "[cleared by the client]"}
    agent.step()
    (fork,) = [record for record in bench.records() if record.opened.parent]
    assert fork.opened.rewritten and fork.asked[0].sent == "edited" and len(bench.got[-1].body) < len(agent.body)
    agent.step()
    assert [asked.sent for asked in fork.asked] == ["edited", "edited"] and not fork.asked[1].edit  # one edit, then it waits again
    assert publish(bench.workspace, fork, PARTS.tokens)
    live = RunStore(bench.workspace).run(fork.run_id)
    again = replay(fork.trace_id, fork.policy, bench.workspace, ReplayOptions(parts=PARTS))
    assert [turn.states for turn in again.turns] == [turn.states for turn in live.turns] and len(live.turns) == 8


def test_an_edit_is_made_near_the_windows_limit(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2:gate=priced:horizon=0:window=700")
    agent = Agent(bench)
    for _ in range(8):
        agent.step()
    assert any(row["edit"] and "700" in row["reason"] for row in bench.rows)


def test_memory_is_stored_before_the_request_and_a_missing_one_sends_the_original(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = started("pamer:minimum=200", gate=False)
    agent = Agent(bench)

    def missing(*_: object) -> object:
        raise StorageError("an archived block is missing")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "raw_blocks", missing)
        bodies = []
        for _ in range(6):
            bodies.append(agent.body)
            agent.step()
        assert [entry.body for entry in bench.got] == bodies and bench.summary["fallbacks"] > 0
    for _ in range(4):
        agent.step()
    assert bench.summary["edits"] > 0 and MemoryStore(bench.workspace.database).load(bench.record.run_id).memories


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_no_key_and_no_header_is_stored_anywhere(started: Callable[..., Bench], tmp_path: Path) -> None:
    bench = started("pamer:minimum=200", gate=False)
    secret = "sk-planted-5f2e9c7ab1"
    for api in PATHS:
        agent = Agent(
            bench, api, task=f"My key is {secret}, use it.", x_api_key=secret, authorization=f"Bearer {secret}", cookie=f"a={secret}"
        )
        for _ in range(6):
            agent.step()
    escaped = f'{{"role": "user", "content": "It is \\u0073{secret[1:]}."}}'
    tool = f'{{"type": "function", "function": {{"name": "t", "description": "Send {secret}.", "parameters": {{}}}}}}'
    bench.post("chat", f'{{"messages": [{escaped}], "tools": [{tool}]}}'.encode(), authorization=f"Bearer {secret}")
    httpx2.get(f"{bench.url}/v1/models?key={secret}", headers={"authorization": f"Bearer {secret}"}, **LOCAL)
    bench.settle()
    for record in bench.records():
        publish(bench.workspace, record, PARTS.tokens)
    assert all(secret[1:].encode() in entry.body for entry in bench.got if entry.billed)
    files = _files(bench.workspace.path)
    assert len(files) > 10
    for path in files:
        assert secret.encode() not in path.read_bytes(), path
    assert oct((bench.workspace.path / "live").stat().st_mode & 0o777) == "0o700"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (bench.workspace.path / "live").glob("*.log"))


def test_own_headers_never_go_upstream(started: Callable[..., Bench]) -> None:
    bench = started()
    bench.post(
        "chat", Agent(bench).body, x_session_id="mine", x_pamer_token="t", x_stainless_lang="python", connection="close, x-gone", x_gone="1"
    )
    names = {name for name, _ in bench.got[0].headers}
    assert "x-stainless-lang" in names and not names & {"x-session-id", "x-pamer-token", "x-gone", "connection"}
    assert dict(bench.got[0].headers)["host"] == bench.direct.removeprefix("http://")


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "127.0.0.1@evil.example"}],
)
def test_other_names_and_other_sites_are_refused(started: Callable[..., Bench], headers: dict[str, str]) -> None:
    bench = started()
    for path in ("/v1/models", "/_pamer/health", "/_pamer/sessions"):
        assert httpx2.get(bench.url + path, headers=headers, **LOCAL).status_code == 403
    assert bench.got == []


def test_control_routes_need_the_token_and_pause_or_switch_one_session(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    one, other = Agent(bench, x_session_id="one"), Agent(bench, x_session_id="other")
    for _ in range(4):
        one.step()
        other.step()
    token = {"x-pamer-token": bench.live.token}

    def control(path: str, content: bytes = b"", headers: dict[str, str] = token) -> httpx2.Response:
        return httpx2.post(f"{bench.url}/_pamer/sessions/{path}", content=content, headers=headers, **LOCAL)

    assert control("one/pause", headers={}).status_code == 401 and control("one/pause", headers=KEY).status_code == 401
    assert control("one/pause").json()["paused"] is True
    assert control("unknown/pause").status_code == 404
    body = one.body
    one.step()
    other.step()
    assert bench.got[-2].body == body and len(bench.got[-1].body) < len(body)
    assert control("one/resume").json()["paused"] is False
    one.step()
    assert len(bench.got[-1].body) < len(one.body)
    for refused in ("acm", "oracle", "none", "oracle:gate=priced"):
        assert control("one/policy", orjson.dumps({"policy": refused})).status_code == 400
    assert control("one/policy", orjson.dumps({"policy": "observation-masking:1"})).json()["policy"].startswith("observation-masking:1")
    one.step()
    assert b"omitted" in bench.got[-1].body
    record, _ = Logs(bench.workspace.path).read("one")
    assert record is not None and record.part == 1 and len(record.turns) == 7
    listed = httpx2.get(f"{bench.url}/_pamer/sessions", headers=token, **LOCAL).json()["sessions"]
    assert {entry["session"] for entry in listed} == {"one", "other"}


def test_a_frame_that_was_cut_off_is_forgotten_and_the_next_one_counts(started: Callable[..., Bench]) -> None:
    bench = started()
    agent = Agent(bench)
    agent.step()
    path = Logs(bench.workspace.path).path(bench.record.session)
    with path.open("ab") as stream:
        stream.write(os.urandom(30))
    agent.step()
    record, place = Logs(bench.workspace.path).read(bench.record.session)
    assert record is not None and len(record.asked) == 2 and place == path.stat().st_size


def test_counts_are_of_the_profiles_tokenizer(started: Callable[..., Bench]) -> None:
    bench = started(parts=Parts())
    Agent(bench).step()
    assert bench.summary["tokens"]["kind"] == "measured" and bench.summary["tokens"]["tokenizer"] != EstimatedCounter.name
