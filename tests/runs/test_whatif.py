"""What-if against the truth: the same settings replayed for real."""

import re
from pathlib import Path

import numpy as np
import pytest

from pamer_lab.decisions import Item
from pamer_lab.errors import InputError
from pamer_lab.prices import find_prices
from pamer_lab.runs import whatif
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.values import FIXED_ACTIONS, Run, RunInfo, Turn
from pamer_lab.runs.whatif import Changes, WhatIf, WhatIfRun
from pamer_lab.trajectory.values import Message, ToolCall, Trace
from pamer_lab.workspace import Workspace
from tests.counting import lines_run
from tests.runs.making import PARTS, call, long_trace, make_trace
from tests.runs.test_cost import at_times


def mixed_trace() -> Trace:
    """Blocks of different length, some with an unanswered call."""
    blocks = [call(n, f"clue {n}", f"Doc D{n:03d} " + "word " * (n * 37 % 90 + 5)) for n in range(24)]
    blocks[5] = blocks[13] = [Message("assistant", "waiting", (ToolCall("open", "search", "{}"),))]
    return make_trace(blocks, trace_id="t-mixed")


def run_of(policy: str, folder: Path, trace: Trace | None = None) -> Run:
    return replay(trace or mixed_trace(), policy, Workspace(folder), ReplayOptions(parts=PARTS))


@pytest.mark.parametrize("policy", ["pamer:minimum=90", "pamer-no-recall:minimum=40:retained=1", "pamer:minimum=0:retained=0", "pamer"])
def test_unchanged_settings_give_exactly_the_stored_decisions(tmp_path: Path, policy: str) -> None:
    laid_out = WhatIfRun(run_of(policy, tmp_path))
    assert laid_out.verified == (24, 24)
    assert laid_out.ask().changed_turns == [] and not laid_out.ask().estimated.any() and laid_out.ask().missing == []


@pytest.mark.parametrize("policy", ["pamer", "pamer-no-recall"])
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (Changes(vote=1), "vote=1:minimum=90"),
        (Changes(vote=5), "vote=5:minimum=90"),
        (Changes(minimum=200), "minimum=200"),
        (Changes(minimum=10, vote=2), "vote=2:minimum=10"),
        (Changes(retained=4), "minimum=90:retained=4"),
    ],
)
def test_changed_settings_decide_as_a_real_replay_would(tmp_path: Path, policy: str, changes: Changes, name: str) -> None:
    asked = WhatIfRun(run_of(f"{policy}:minimum=90", tmp_path)).ask(changes)
    real = run_of(f"{policy}:{name}", tmp_path)
    assert asked.actions == [turn.action for turn in real.turns]
    assert asked.candidate_tokens.tolist() == [turn.candidate_tokens for turn in real.turns]
    exact = ~asked.estimated
    assert (asked.active_tokens == [turn.active_tokens for turn in real.turns])[exact].all()
    assert exact.sum() > (8 if policy == "pamer" else 23)


def test_thresholds_can_be_given_for_all_heads_or_each(tmp_path: Path) -> None:
    laid_out = WhatIfRun(run_of("pamer:minimum=90", tmp_path))
    never, always = laid_out.ask(Changes(thresholds=(1.0,))), laid_out.ask(Changes(thresholds=(0.0,) * 5))
    assert "compress" not in never.actions and never.active_tokens.tolist() == laid_out.raw.tolist()
    assert always.actions.count("compress") > laid_out.actions.count("compress")
    assert laid_out.ask(Changes(threshold_scale=100.0)).actions == never.actions
    with pytest.raises(InputError, match="5 heads"):
        laid_out.ask(Changes(thresholds=(0.5, 0.5)))


def test_a_turn_without_a_stored_logit_says_so(tmp_path: Path) -> None:
    laid_out = WhatIfRun(run_of("pamer:minimum=400:logits=asked", tmp_path))
    assert laid_out.verified == (24, 24)
    asked = laid_out.ask(Changes(minimum=10))
    assert asked.missing and any(f" {len(asked.missing)} turn" in note for note in asked.notes)


def test_the_answer_names_its_kind_and_the_caveat(tmp_path: Path) -> None:
    answer = WhatIfRun(run_of("pamer:minimum=90", tmp_path)).ask(Changes(vote=1, retained=3)).as_json()
    assert {turn["tokens_kind"] for turn in answer["turns"]} == {"measured", "estimated"}
    assert answer["notes"][-1] == FIXED_ACTIONS and any(re.search(r"\b3\b", note) for note in answer["notes"])


def test_a_policy_without_heads_has_no_what_if(tmp_path: Path) -> None:
    for policy in ("base", "pamer-no-compression"):
        with pytest.raises(InputError, match=f"'{policy}'"):
            WhatIfRun(run_of(policy, tmp_path, long_trace(4)))
    with pytest.raises(InputError, match="'pamer-no-compression'"):
        WhatIfRun(replay(long_trace(3), "pamer-no-compression", Workspace(tmp_path), ReplayOptions(parts=PARTS)))


def run_of_length(turns_in_all: int) -> Run:
    rng = np.random.default_rng(0)
    sizes = rng.integers(200, 1500, turns_in_all)
    sums = np.concatenate([[0], np.cumsum(sizes)])
    turns, covered = [], 0
    for t in range(turns_in_all):
        logits, window = tuple(rng.normal(size=5).tolist()), max(t - 2, 0)
        candidate = int(sums[window] - sums[covered])
        votes = tuple(1 / (1 + np.exp(-np.array(logits))) >= 0.5)
        fires = candidate >= 1024 and sum(votes) >= 3
        covered = window if fires else covered
        recalls = bool(covered) and not fires
        items = (Item("recalled", 900, ((0, covered),), "m", "text"),) if recalls else ()
        active = int(sums[t] - sums[covered]) + 900 * recalls
        action = "compress" if fires else "recall" if recalls else "pass"
        stored = ((0, covered),) if covered else ()
        measured = {"t": t, "raw_tokens": int(sums[t]), "active_tokens": active, "output_tokens": 10, "cached_tokens": 0, "states": ""}
        turns.append(Turn(action, "", items, stored, candidate, logits, (0.5,) * 5, votes, **measured))  # type: ignore[arg-type]
    rule = {"retained": 2, "vote": 3, "minimum": 1024, "top": 3, "recalls": "summaries", "compresses": True}
    head = RunInfo(
        "r", "t", "q", "", "pamer", "embedded", {"rule": rule}, "made", "measured", turns_in_all, turns_in_all, 0, 0, tuple(sizes.tolist())
    )
    return Run(head, tuple(turns))


def test_a_question_takes_one_pass_over_the_turns() -> None:
    work = []
    for turns in (500, 1000):
        laid_out = WhatIfRun(run_of_length(turns))
        assert laid_out.verified == (turns, turns)
        for vote in (1, 2, 4, 5):
            assert laid_out.ask(Changes(vote=vote)).changed_turns
        work.append(lines_run(lambda laid_out=laid_out: laid_out.ask(Changes(vote=4)), whatif))  # type: ignore[misc]
    assert work[0] > 500, "the pass is counted"
    assert work[1] < 2.1 * work[0] and work[1] < 40 * 1000


@pytest.mark.parametrize("vote", [0, 6])
def test_a_vote_that_no_number_of_heads_can_give_is_refused(tmp_path: Path, vote: int) -> None:
    with pytest.raises(InputError, match=rf"\b5\b.*\b{vote}\b"):
        WhatIfRun(run_of("pamer:minimum=90", tmp_path)).ask(Changes(vote=vote))


APPEND = ":inject=append"
PRICED = ":gate=priced"


@pytest.mark.parametrize("policy", ["pamer", "pamer+"])
@pytest.mark.parametrize("more", [APPEND, PRICED, f"{APPEND}{PRICED}:horizon=5", f"{PRICED}:horizon=2:prices=anthropic-sonnet-4.5-1h"])
def test_appended_and_priced_runs_are_reproduced_exactly(tmp_path: Path, policy: str, more: str) -> None:
    run = run_of(f"{policy}:minimum=90{more}", tmp_path)
    laid_out = WhatIfRun(run)
    assert laid_out.verified == (24, 24) and not laid_out.ask().estimated.any()
    assert any(turn.action == "compress" for turn in run.turns)


@pytest.mark.parametrize("inject", ["", APPEND])
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (Changes(horizon=2), ":horizon=2"),
        (Changes(horizon=60), ":horizon=60"),
        (Changes(prices=find_prices("no-cache")), ":prices=no-cache"),
        (Changes(prices=find_prices("openai-gpt-4o"), horizon=1), ":prices=openai-gpt-4o:horizon=1"),
    ],
)
def test_another_horizon_or_table_decides_as_a_real_replay_would(tmp_path: Path, inject: str, changes: Changes, name: str) -> None:
    """With appended memory, which the gate counts, up to the first changed turn: its size is not known from there on."""
    stored, real = (
        run_of(f"pamer:minimum=90{inject}{PRICED}:horizon=8", tmp_path),
        run_of(f"pamer:minimum=90{inject}{PRICED}{name}", tmp_path),
    )
    compressed = [turn.action == "compress" for turn in real.turns]

    def alike(run: Run) -> tuple[WhatIf, int]:
        asked = WhatIfRun(run).ask(changes)
        changed = [(turn.action == "compress") != wanted for turn, wanted in zip(run.turns, compressed, strict=True)]
        known = changed.index(True) + 1 if inject and any(changed) else len(compressed)
        assert [action == "compress" for action in asked.actions][:known] == compressed[:known]
        return asked, known

    asked, known = alike(stored)
    exact = asked.active_tokens[:known] == [turn.active_tokens for turn in real.turns[:known]]
    assert exact[~asked.estimated[:known]].all()
    if changes.horizon is not None:
        alike(run_of(f"pamer:minimum=90{inject}", tmp_path))


def test_a_horizon_of_no_turn_waits_and_a_cold_cache_does_not(tmp_path: Path) -> None:
    slow = at_times(long_trace(16, trace_id="t-slow"), [700.0])
    quick = at_times(long_trace(16, trace_id="t-quick"), [4.0])
    policy = f"pamer:minimum=90{PRICED}:horizon=0"
    cold, warm = run_of(policy, tmp_path, slow), run_of(policy, tmp_path, quick)
    free = run_of("pamer:minimum=90", tmp_path, slow)
    assert [turn.action for turn in cold.turns] == [turn.action for turn in free.turns]
    assert sum(turn.action == "compress" for turn in warm.turns) < sum(turn.action == "compress" for turn in cold.turns)
    assert WhatIfRun(cold).verified == WhatIfRun(warm).verified == (16, 16)
    waited = [turn for turn in warm.turns if sum(turn.votes) >= 3 and turn.candidate_tokens >= 90 and turn.action != "compress"]
    assert waited and all("horizon 0" in turn.reason for turn in waited)
