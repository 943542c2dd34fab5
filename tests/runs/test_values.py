"""A run as a frame."""

import polars as pl

from pamer_lab.runs.engine import ReplayOptions, replay
from tests.runs.making import PARTS, SMALL, long_trace


def test_a_frame_has_the_turns_as_they_are() -> None:
    run = replay(long_trace(7), f"pamer+{SMALL}", options=ReplayOptions(device="cpu", parts=PARTS))
    frame = run.turns_frame()
    assert set(frame["run_id"]) == {run.run_id} and set(frame["policy"]) == {run.head.policy}
    for row, turn in zip(frame.to_dicts(), run.turns, strict=True):
        lists = {"logits", "thresholds", "votes", "memory_ids", "restored_steps"}
        own = {name: value for name, value in row.items() if name not in ("run_id", "trace_id", "policy")}
        assert own == {name: list(getattr(turn, name)) if name in lists else getattr(turn, name) for name in own}
    assert any(row["votes"] for row in frame.to_dicts())


def test_frames_of_runs_with_and_without_votes_can_be_concatenated() -> None:
    trace = long_trace(5)
    voted = replay(trace, f"pamer{SMALL}", options=ReplayOptions(device="cpu", parts=PARTS))
    both = pl.concat([replay(trace, "base").turns_frame(), voted.turns_frame()])
    assert both.group_by("policy").len()["len"].to_list() == [5, 5]
