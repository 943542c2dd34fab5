import pytest

from pamer_lab.runs.alignment import sent_and_seen
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, long_trace


@pytest.mark.parametrize("policy", ["base", "sliding-window:2", "periodic-summary:2", f"pamer{SMALL}", f"pamer+{SMALL}"])
def test_both_columns_sum_to_what_was_sent_and_seen_at_every_turn(workspace: Workspace, policy: str) -> None:
    run = replay(long_trace(14), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    for turn in run.turns:
        rows = sent_and_seen(turn, run.head)
        assert sum(row.sent or 0 for row in rows) == turn.raw_tokens
        assert sum(row.seen or 0 for row in rows) == turn.active_tokens
        assert [row.block for row in rows if row.block is not None and row.sent is not None] == list(range(turn.t))
        assert all((row.sent == row.seen) if row.state == "same" else (row.sent is None) != (row.seen is None) for row in rows)


def test_a_block_left_out_stands_where_it_was_with_its_state_and_a_text_says_what_it_covers(workspace: Workspace) -> None:
    run = replay(long_trace(8), "sliding-window:2", workspace)
    rows = sent_and_seen(run.turns[5], run.head)
    assert [(row.name, row.state) for row in rows if row.block is not None] == [
        *((f"block {number}", "absent") for number in range(3)),
        ("block 3", "same"),
        ("block 4", "same"),
    ]
    summed = replay(long_trace(8), "periodic-summary:2", workspace)
    turn = next(turn for turn in summed.turns if any(item.text for item in turn.items))
    (added,) = [row for row in sent_and_seen(turn, summed.head) if row.state == "added"]
    assert added.seen and added.sent is None and added.covers and turn.items[added.item or 0].text
