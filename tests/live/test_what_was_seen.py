"""Requirements 3 and 15 across a pause and a switch: the record says what the model was shown, not what the policy in force would show."""

from collections.abc import Callable

import pytest

from pamer_lab.live.logs import Logs
from pamer_lab.live.summary import described
from tests.live.conftest import PATHS, Agent, Bench
from tests.live.test_policies import violations


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("other", ["base", "observation-masking:2", "sliding-window:1"])
def test_a_pause_and_a_switch_change_nothing_that_was_seen(started: Callable[..., Bench], api: str, other: str) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench, api)
    bodies = []

    def steps(count: int) -> list[dict[str, object]]:
        for _ in range(count):
            bodies.append(agent.body)
            agent.step()
        return bench.rows

    first = steps(5)
    session = bench.record.session
    bench.live.desk.pause(session, True)
    paused = steps(2)
    assert all(row["client_tokens"] == row["model_tokens"] and row["sent"] == "original" for row in paused[5:])
    assert paused[5]["edit"] and not paused[6]["edit"]
    bench.live.desk.pause(session, False)
    resumed = steps(2)
    bench.live.desk.switch(session, other)
    switched = steps(3)
    for before, after in ((first, paused), (paused, resumed), (resumed, switched)):
        assert after[: len(before)] == before
    assert violations(bench) == []
    for row, body, entry in zip(switched, bodies, bench.got, strict=True):
        assert (row["model_tokens"] < row["client_tokens"]) == (len(entry.body) < len(body))
    summary = bench.summary
    assert summary["tokens"]["model"] == sum(row["model_tokens"] for row in switched)
    record, _ = Logs(bench.workspace.path).read(session)
    assert record is not None and described(record) == described(bench.record)
