"""`inject=append` and `gate=priced` in replay: conservation, resuming, evidence, accounting."""

from pathlib import Path

import pytest

from pamer_lab.runs.accounting import totals
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.evidence import IN_CONTEXT, fates
from pamer_lab.runs.recount import faults
from pamer_lab.trajectory.values import Message, ToolCall, Trace
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, call, long_trace, make_trace, timeline_of, turns_of

APPEND = [f"{kind}:minimum=300:inject=append{gate}" for kind in ("pamer", "pamer+") for gate in ("", ":gate=priced")]


def asking_trace() -> Trace:
    """Documents that later searches ask for again, and one call that is never answered."""
    blocks = [call(n, f"D{max(0, n - 9):04d} and clue {n}", f"Document D{n:04d} says " + f"word{n} " * 50) for n in range(30)]
    blocks[17] = [Message("assistant", "waiting", (ToolCall("open", "search", "{}"),))]
    return make_trace(blocks, trace_id="t-asking")


@pytest.mark.parametrize("policy", APPEND)
@pytest.mark.parametrize("trace", [asking_trace(), long_trace(24)], ids=lambda trace: trace.trace_id)
def test_every_block_and_token_is_accounted_for_and_no_request_breaks_the_prefix(tmp_path: Path, policy: str, trace: Trace) -> None:
    timeline, turns = timeline_of(trace), turns_of(trace, policy, workspace=tmp_path)
    counted = totals(timeline, turns)
    assert faults(timeline, turns) == [] and counted["prefix"]["violations"] == 0
    assert counted["prefix"]["breaks"] == counted["actions"]["compress"] > 0
    epochs = [turn.t for turn in turns if turn.action == "compress"]
    for turn in turns:
        sources = [source for item in turn.items if item.kind == "recalled" for source in item.source.split()]
        assert len(sources) == len(set(sources)) and (turn.action != "compress" or not sources)
        assert not any(item.text for item in turn.items) or turn.t > epochs[0]
    assert any(turn.action == "recall" for turn in turns) or policy.startswith("pamer+")


def test_the_papers_layout_breaks_the_prefix_between_compressions(tmp_path: Path) -> None:
    trace = asking_trace()
    front = totals(timeline_of(trace), turns_of(trace, "pamer:minimum=300", workspace=tmp_path))
    assert front["prefix"]["violations"] > 0
    assert totals(timeline_of(trace), turns_of(trace, "base"))["prefix"] == {"breaks": 0, "violations": 0}


@pytest.mark.parametrize("policy", APPEND)
def test_a_run_that_was_stopped_goes_on_with_the_same_requests(tmp_path: Path, policy: str) -> None:
    trace = asking_trace()
    complete = turns_of(trace, policy, workspace=tmp_path / "one")
    for stopped in (5, 12, 13, 20, 29):
        folder = tmp_path / str(stopped)
        first = turns_of(trace, policy, workspace=folder)[:stopped]
        assert turns_of(trace, policy, tuple(first), workspace=folder) == complete


def test_what_was_appended_counts_as_evidence_until_the_next_compression(tmp_path: Path) -> None:
    trace = asking_trace()
    front, append = (
        turns_of(trace, policy, workspace=tmp_path / policy) for policy in ("pamer:minimum=300", "pamer:minimum=300:inject=append")
    )
    kept = [sum(fate.survival in IN_CONTEXT for fate in fates(timeline_of(trace), turns)) for turns in (front, append)]
    assert kept[1] >= kept[0] > 0


def test_the_names_settings_and_ids_of_the_papers_policies_do_not_change(tmp_path: Path) -> None:
    workspace, options = Workspace(tmp_path), ReplayOptions(parts=PARTS)
    run = replay(long_trace(4), "pamer:inject=front:gate=heads", workspace, options)
    assert (
        run.head.policy == "pamer"
        and "inject" not in run.head.settings["controller"]
        and not {"inject", "gate"} & set(run.head.settings["rule"])
    )
    priced = replay(long_trace(4), "pamer:gate=priced:inject=append", workspace, options)
    assert priced.head.policy == "pamer:inject=append:gate=priced" and priced.head.settings["rule"]["gate"]["horizon"] == 20
    assert priced.run_id != run.run_id
