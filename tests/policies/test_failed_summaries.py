"""Replay with a model that cannot summarise many steps at once: what is paid, how sessions recover, and how they go on."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.controller import FixedProbe
from pamer_lab.factory import Parts
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.llm_summary import LlmSummariser
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import trust
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.recount import faults
from pamer_lab.runs.values import Turn
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.workspace import Workspace
from tests.controller.test_llm_parts import served, summary_or_details
from tests.memory.chats import ScriptedChat
from tests.runs.making import PARTS, estimated, long_trace, timeline_of, turns_of

MOST_STEPS = 3
TURNS = 16
PAMER = ["pamer:minimum=700:retained=1", "pamer+:minimum=700:retained=1", "pamer-no-compression:minimum=700:retained=1"]
PERIODIC = ["periodic-summary:6", "periodic-summary:6:accumulate"]


def scripted() -> ScriptedChat:
    """Writes 40 tokens for each step; with more than three steps that is over the limit of 120."""
    return ScriptedChat(lambda prompt: "word " * 32 * len(re.findall(r"^## Step \d+$", prompt, re.MULTILINE)))


def parts(chat: ScriptedChat) -> Parts:
    return Parts(embedder=PARTS.embedder, probe=FixedProbe(), summariser=LlmSummariser(chat, max_tokens=MOST_STEPS * 40, retries=1))


def spent(turns: list[Turn]) -> tuple[int, int, int]:
    """Input, output and number of model calls."""
    entries = [entry for turn in turns for entry in turn.spent if not entry.local]
    return (sum(entry.input_tokens for entry in entries), sum(entry.output_tokens for entry in entries), sum(e.calls for e in entries))


@pytest.mark.parametrize("policy", [*PAMER, *PERIODIC])
def test_every_call_is_paid_for_and_the_session_recovers(tmp_path: Path, policy: str) -> None:
    chat, trace = scripted(), long_trace(TURNS)
    turns = turns_of(trace, policy, workspace=tmp_path, parts=parts(chat))
    failed = [turn.t for turn in turns if turn.action == "fallback"]
    assert len(failed) >= 2 and failed[1] == failed[0] + 1
    assert any(turn.memory_ids or turn.action == "compress" for turn in turns if turn.t > failed[1])
    assert all([entry.calls for entry in turns[t].spent if entry.operation == "summary"] == [2] for t in failed)
    assert spent(turns) == (*chat.total, len(chat.used))
    counted = totals(timeline_of(trace), turns)
    assert (counted["aux_input"], counted["aux_output"]) == chat.total
    assert counted["auxiliary"]["summary"]["calls"] == {"llm scripted": len(chat.used)}
    assert faults(timeline_of(trace), turns) == []


@pytest.mark.parametrize("policy", [*PAMER, *PERIODIC])
def test_a_run_goes_on_after_any_turn_as_if_it_had_never_stopped(tmp_path: Path, policy: str) -> None:
    trace = long_trace(TURNS)
    complete = turns_of(trace, policy, workspace=tmp_path, parts=parts(scripted()))
    for cut in range(TURNS):
        folder = tmp_path / str(cut)
        known = turns_of(long_trace(TURNS), policy, workspace=folder, parts=parts(scripted()))
        assert turns_of(trace, policy, tuple(known[:cut]), workspace=folder, parts=parts(scripted())) == complete


def test_blocks_that_were_not_compressed_stay_in_the_request(tmp_path: Path) -> None:
    turns = turns_of(long_trace(TURNS), PAMER[0], workspace=tmp_path, parts=parts(scripted()))
    first = next(turn for turn in turns if turn.action == "compress")
    covered = first.states.count("S")
    assert 1 <= covered <= MOST_STEPS and first.states == "S" * covered + "A" * (first.t - covered)
    assert first.active_tokens == first.raw_tokens - sum(timeline_of(long_trace(TURNS)).block_tokens[:covered])


def test_what_if_finds_the_stored_decisions_of_shorter_ranges_again(tmp_path: Path) -> None:
    options = ReplayOptions(parts=parts(scripted()))
    for policy in (PAMER[0], "pamer-no-recall:minimum=700:retained=1"):
        laid_out = WhatIfRun(replay(long_trace(TURNS), policy, Workspace(tmp_path), options))
        assert laid_out.verified == (TURNS, TURNS) and laid_out.ask().changed_turns == []
        assert laid_out.ask().candidate_tokens.tolist() == [turn.candidate_tokens for turn in laid_out.run.turns]
        assert laid_out.ask(Changes(vote=5)).changed_turns == []


def test_a_periodic_summary_that_failed_goes_on_from_its_last_summary(tmp_path: Path) -> None:
    chat = scripted()
    turns = turns_of(long_trace(24), PERIODIC[0], workspace=tmp_path, parts=parts(chat))
    written = [turn for turn in turns if turn.action == "compress"]
    assert len(written) > 1 and all(len([item for item in turn.items if item.text]) == 1 for turn in written)
    ends = [item.spans[-1][1] for turn in written for item in turn.items if item.text]
    assert ends == sorted(set(ends)), "each summary stands for more than the one before"
    assert any("[End of the summary]" in prompt for _, prompt, _ in chat.asked)
    assert estimated().counter.count([written[0].items[2].text])[0] < 200


@pytest.mark.server
@pytest.mark.parametrize(("policy", "operations"), [("pamer", {"summary"}), ("pamer+", {"summary", "details", "router"})])
def test_only_pamer_plus_asks_a_model_for_step_details(tmp_path: Path, policy: str, operations: set[str]) -> None:
    def answer(body: Any) -> str:
        nothing = json.dumps({"summary_ids": [], "raw_steps_needed": [], "goal": ""})
        return nothing if "raw_steps_needed" in json.dumps(body.get("response_format", "")) else summary_or_details(body)

    with served(answer) as port:
        profile = tmp_path / "served.toml"
        profile.write_text(f'base = "embedded"\n[chat]\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:{port}/v1"\n')
        trust(load_profile(profile))
        options = ReplayOptions(profile=str(profile), parts=Parts(embedder=PARTS.embedder, probe=FixedProbe()))
        run = replay(long_trace(8), f"{policy}:minimum=300:retained=1", Workspace(tmp_path / "workspace"), options)
    called = [entry for turn in run.turns for entry in turn.spent if not entry.local]
    assert {entry.operation for entry in called} == operations
    assert run.totals["aux_input"] == 100 * len(called) and run.totals["aux_output"] == 20 * len(called)
    memories = MemoryStore(Workspace(tmp_path / "workspace").database).load(run.run_id).memories
    lines = [block.detail for memory in memories for block in memory.blocks]
    assert lines and all((line == f"read part {step}") == (policy == "pamer+") for step, line in enumerate(lines))
