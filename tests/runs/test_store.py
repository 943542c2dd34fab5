"""Named questions to the runs of a workspace."""

from msgspec.structs import replace

from pamer_lab.runs.engine import ReplayOptions
from pamer_lab.runs.engine import replay as replay_trace
from pamer_lab.runs.store import RunStore, newest
from pamer_lab.runs.whatif import what_if
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, long_trace

OPTIONS = ReplayOptions(device="cpu", parts=PARTS)


def test_questions_to_an_empty_workspace_have_empty_answers(workspace: Workspace) -> None:
    store = RunStore(workspace)
    assert store.newest_done() == {} and store.policies_by_trace() == {}
    assert store.first_turn("r-none", "compress") is None and store.seconds_per_turn("r-none") == 0


def test_runs_answer_for_their_policies_paces_and_first_events(workspace: Workspace) -> None:
    store = RunStore(workspace)
    pamer = replay_trace(long_trace(8), f"pamer{SMALL}", workspace, OPTIONS)
    base = replay_trace(long_trace(8), "base", workspace)
    store.put_head(replace(base.head, run_id="r-stopped", status="failed", started="2099"))
    assert store.policies_by_trace() == {"t-long": [(pamer.head.policy, True), ("base", True), ("base", False)]}
    assert store.newest_done() == {(pamer.head.policy, "embedded"): pamer.run_id, ("base", "embedded"): base.run_id}
    assert ("base", "embedded") not in store.newest_done(without={base.run_id})
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
