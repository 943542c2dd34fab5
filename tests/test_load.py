"""The short form of `pamer-lab bench load`: a few real websocket sessions for seconds, a few processes in one store."""

import pytest

from pamer_lab.bench import load


@pytest.mark.server
def test_visitors_at_once_see_no_error_and_lose_no_review_and_processes_at_once_lose_no_memory() -> None:
    ratios, details = load.run(3, 3.0, 0.5, len(load.ROUND), least_actions=5, processes=3, turns=8)
    assert ratios["errors"] == 0, details["first_errors"]
    assert ratios["lost_reviews"] == ratios["memories_lost"] == ratios["memories_doubled"] == 0
    assert details["reviews"] >= 6 and details["actions"] >= 15
    assert details["compressing"]["memories"] >= 6 and details["compressing"]["check_clean"]
    assert details["compressing"]["changed_blocks"] == 0
    assert ratios["p95_vs_single"] > 0 and ratios["memory_growth"] < 0.5
