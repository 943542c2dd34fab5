"""Requirements 2, 3, 8, 9: what a policy leaves of a request keeps its bytes, and between edits each request begins with the last."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pamer_lab.live.json_spans import elements, members
from tests.live.conftest import PATHS, Agent, Bench

POLICIES = ["sliding-window:2", "observation-masking:2", "periodic-summary:3", "pamer:minimum=200", "pamer+:minimum=200"]


def parts(body: bytes) -> list[bytes]:
    """The elements of a body's history, as they were sent."""
    top = members(body)
    return [body[slice(*span)] for span in elements(body, top.get("messages", top.get("input", (0, 0))))]


def until_history(body: bytes) -> bytes:
    top = members(body)
    return body[: top.get("messages", top.get("input", (0, 0)))[1] - 1]


def violations(bench: Bench) -> list[int]:
    """Requests that do not begin with the one before and are not recorded as edits."""
    bodies = [entry.body for entry in bench.got if entry.billed]
    rows = bench.rows
    return [
        number
        for number in range(1, len(bodies))
        if not bodies[number].startswith(until_history(bodies[number - 1])) and not rows[number]["edit"]
    ]


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("policy", POLICIES)
def test_between_edits_each_request_begins_with_the_last(started: Callable[..., Bench], api: str, policy: str) -> None:
    bench = started(policy)
    agent = Agent(bench, api)
    for _ in range(14):
        agent.step()
    assert violations(bench) == []
    assert bench.summary["edits"] > 0 and bench.summary["fallbacks"] == 0, [row["reason"] for row in bench.rows]
    last, sent = orjson.loads(agent.body), orjson.loads(bench.got[-1].body)
    assert len(bench.got[-1].body) < len(agent.body) * 0.8
    assert {key: value for key, value in sent.items() if key not in ("messages", "input")} == {
        key: value for key, value in last.items() if key not in ("messages", "input")
    }


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_stays_keeps_its_bytes_order_and_pairs(started: Callable[..., Bench], api: str, policy: str) -> None:
    bench = started(policy, gate=False)
    agent = Agent(bench, api)
    bodies = []
    for _ in range(9):
        bodies.append(agent.body)
        agent.step()
    for client, entry in zip(bodies, bench.got, strict=True):
        ours, theirs = parts(entry.body), parts(client)
        kept = [part for part in ours if part in theirs]
        assert kept == [part for part in theirs if part in kept]
        assert _paired(orjson.loads(entry.body))
        changed = [part for part in ours if part not in theirs]
        assert all(b"recalled_memory" in part or b"Summary of steps" in part or b"omitted" in part for part in changed)
        if api == "responses":
            assert all(b"encrypted_content" not in part for part in changed)


def _paired(request: dict[str, Any]) -> bool:
    text = orjson.dumps(request).decode()
    calls = [f"call_{number}" for number in range(20)]
    return all(text.count(f'"{name}"') in (0, 2) for name in calls)


def test_spaces_between_messages_stay(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:1", gate=False)
    agent = Agent(bench)
    for _ in range(3):
        agent.grow()
    body = orjson.dumps(orjson.loads(agent.body), option=orjson.OPT_INDENT_2)
    bench.post("chat", body)
    (sent,) = [entry.body for entry in bench.got]
    assert sent != body and sent.startswith(body[: body.index(b"I look at room 0") - 60])
    assert all(part in body for part in parts(sent)) and sent.endswith(body[-4:])
