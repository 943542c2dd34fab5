"""Every real trace file beside this checkout, through every policy, with the ledger intact.

The suite takes the first `PER_FILE` traces of each file and their first `TURN_LIMIT` turns; heads without a model stand in for the frozen
one, because hidden states for all of them take hours (`test_embedded.py` runs the real heads).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from pamer_lab.blocks import MessageTokens
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.evidence import Use, fates, uses
from pamer_lab.runs.timeline import Timeline, lay_out
from pamer_lab.runs.turns import replay_turns
from pamer_lab.trajectory import Trace, iter_traces
from pamer_lab.workspace import Workspace
from tests.runs.making import PAMER, PARTS

TURN_LIMIT = 9
PER_FILE = 1
POLICIES = ["base", "sliding-window:3", "periodic-summary:3", *(f"{name}:minimum=400" for name in PAMER)]
TOKENS = MessageTokens(embedded_counter())


@pytest.fixture(scope="module")
def laid_out(real_traces: Path) -> list[tuple[Timeline, list[Use]]]:
    kept: dict[str, list[Timeline]] = {}
    for item in iter_traces([real_traces]):
        if isinstance(item, Trace) and item.source and len(kept.setdefault(item.source.path, [])) < PER_FILE:
            kept[item.source.path].append(lay_out(item, TOKENS, turn_limit=TURN_LIMIT))
    return [(timeline, uses(timeline)) for timelines in kept.values() for timeline in timelines]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_real_trace_replays_with_its_ledger_intact(laid_out: list[tuple[Timeline, list[Use]]], tmp_path: Path, policy: str) -> None:
    chosen, acted = parse_policy(policy), 0
    for number, (timeline, used) in enumerate(laid_out):
        factory = Factory(load_profile("embedded"), Workspace(tmp_path), "cpu", parts=replace(PARTS, tokens=TOKENS))
        resources = RunResources(factory, f"session-{number}")
        turns = list(replay_turns(timeline, chosen, resources))
        counted = totals(timeline, turns)
        assert counted["main_input"] == sum(item.tokens for turn in turns for item in turn.items)
        assert all(len(turn.states) == turn.t for turn in turns)
        assert policy != "base" or all(fate.survival == "active" for fate in fates(timeline, turns, used))
        acted += sum(turn.action in ("compress", "recall") for turn in turns)
    assert len(laid_out) > 40
    assert acted > 0 or not policy.startswith(("pamer", "periodic"))
