"""Named questions to the runs of a workspace."""

import msgspec
import pytest
from msgspec.structs import replace

from pamer_lab.decisions import Item
from pamer_lab.errors import Cancelled
from pamer_lab.runs.engine import ReplayOptions
from pamer_lab.runs.engine import replay as replay_trace
from pamer_lab.runs.store import RunStore, newest
from pamer_lab.runs.turn_rows import TURNS, StoredItems, turn_rows, unpacked
from pamer_lab.runs.values import Turn
from pamer_lab.runs.whatif import what_if
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, long_trace

OPTIONS = ReplayOptions(device="cpu", parts=PARTS)


def test_questions_to_an_empty_workspace_have_empty_answers(workspace: Workspace) -> None:
    store = RunStore(workspace)
    assert store.policies_by_trace() == {}
    assert store.first_turn("r-none", "compress") is None and store.seconds_per_turn("r-none") == 0


def test_runs_answer_for_their_policies_paces_and_first_events(workspace: Workspace) -> None:
    store = RunStore(workspace)
    pamer = replay_trace(long_trace(8), f"pamer{SMALL}", workspace, OPTIONS)
    base = replay_trace(long_trace(8), "base", workspace)
    store.put_head(replace(base.head, run_id="r-stopped", status="failed", started="2099"))
    assert store.policies_by_trace() == {"t-long": [(pamer.head.policy, True), ("base", True), ("base", False)]}
    compressed = [turn.t for turn in pamer.turns if turn.action == "compress"]
    assert compressed and store.first_turn(pamer.run_id, "compress") == compressed[0]
    assert store.first_turn(base.run_id, "compress") is None
    mean = sum(turn.seconds for turn in pamer.turns) / len(pamer.turns)
    assert abs(store.seconds_per_turn(pamer.run_id) - mean) < 1e-9
    assert set(store.memories(pamer)) == {name for turn in pamer.turns for name in turn.memory_ids} and store.memories(base) == {}
    assert what_if(base) is None
    asked = what_if(pamer)
    assert asked is not None and asked.verified[0] == asked.verified[1] > 0


def test_the_run_to_show_is_the_newest_over_all_turns(workspace: Workspace) -> None:
    head = replay_trace(long_trace(4), "base", workspace).head
    whole, later, limited = (replace(head, run_id=name, started=name) for name in "abc")
    limited = replace(limited, turns=2)
    assert newest([limited, later, whole], ["base"], "embedded") == {"base": later}
    assert newest([limited], ["base"], "embedded") == {"base": limited}
    assert newest([whole], ["base"], "paper") == newest([whole], ["pamer"], "embedded") == {}


def test_a_turn_is_stored_by_what_changed_and_read_back_complete(workspace: Workspace) -> None:
    run = replay_trace(long_trace(60), "observation-masking:2", workspace)
    store = RunStore(workspace)
    assert tuple(store.turns(run.run_id)) == run.turns and len(run.turns[-1].items) > 50
    sizes = {row["t"]: len(row["items"]) for row in workspace.database.rows(TURNS, columns=["t", "items"])}
    assert sizes[59] <= 1.5 * sizes[10], "a turn with fifty shortened blocks takes no more than one with a few"


def test_items_that_stayed_behind_a_changed_one_are_stored_as_their_places() -> None:
    texts = [Item("summary", 3, source=f"step {number}", text=f"text {number}") for number in range(400)]
    contexts = [
        texts[:100],
        [*texts[:3], texts[200], *texts[4:100]],
        [*texts[50:90], Item("prefix", 2), *texts[:20], *texts[120:400]],
        texts[::-1],
    ]
    turns = [turn_with(t, tuple(items)) for t, items in enumerate(contexts)]
    rows, fresh = turn_rows("r", turns, (), set())
    previous: tuple[Item, ...] = ()
    for row, turn in zip(rows, turns, strict=True):
        previous = unpacked(row["items"], previous, fresh)
        assert previous == turn.items
    second = msgspec.msgpack.decode(rows[1]["items"], type=StoredItems)
    assert [second[0], *second[2:]] == [3, (4, 100)] and isinstance(second[1], Item)
    assert len(rows[3]["items"]) > len(rows[2]["items"]), "reversed, nothing is in its order"


def turn_with(t: int, items: tuple[Item, ...]) -> Turn:
    return Turn("pass", "", items, t=t, raw_tokens=0, active_tokens=0, output_tokens=0, cached_tokens=0, states="", seconds=0.0)


def test_a_run_that_was_stopped_goes_on_with_the_items_it_has(workspace: Workspace) -> None:
    seen: list[int] = []
    with pytest.raises(Cancelled):
        stopping = ReplayOptions(watch=lambda turn, of: seen.append(0), cancelled=lambda: len(seen) == 7)
        replay_trace(long_trace(12), "observation-masking:2", workspace, stopping)
    run = replay_trace(long_trace(12), "observation-masking:2", workspace)
    other = replay_trace(long_trace(12, trace_id="t-other"), "observation-masking:2", workspace)
    assert [turn.items for turn in RunStore(workspace).turns(run.run_id)] == [turn.items for turn in other.turns]
