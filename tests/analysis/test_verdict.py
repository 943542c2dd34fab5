"""The verdict on a policy: its own numbers against the baseline, and the paper's live result from the published tables."""

import pytest

from pamer_lab.analysis.paper_comparison import POLICIES, live_result
from pamer_lab.analysis.published import table
from pamer_lab.analysis.verdict import Account, account, signed, token_sense, verdict_json, verdicts
from pamer_lab.runs.drops import Drop
from pamer_lab.runs.evidence import fates
from tests.runs.making import timeline_of, turns_of
from tests.runs.test_evidence import hand_made


def test_changes_are_per_trace_and_against_the_baseline() -> None:
    base = Account("base", 2, 2_000, uses=10, kept=10, cost=4.0)
    window = Account("sliding-window:5", 1, 250, uses=10, kept=4, dropped=15, cost=3.0)
    first, second = verdicts([base, window], "base")
    assert (first.tokens_pct, first.cost_pct, first.kept_pct) == (None, None, 100.0)
    assert (second.tokens_pct, second.cost_pct, second.kept_pct, second.baseline_kept_pct, second.dropped) == (-75.0, 50.0, 40.0, 100.0, 15)
    assert {"-75.0", "+50.0", "40.0", "15"} <= set(verdict_json(second)["sentence"].replace(",", "").split())


def test_without_prices_no_cost_is_said_and_without_a_baseline_nothing_is_compared() -> None:
    alone = verdicts([Account("pamer", 1, 100, uses=0)], "base")[0]
    assert (alone.tokens_pct, alone.cost_pct, alone.kept_pct, alone.baseline) == (None, None, None, "")
    assert len(verdicts([Account("pamer", 1, 100)], "base")[0].parts) == len(alone.parts) - 1


def test_the_sums_are_those_of_fates_and_drops() -> None:
    timeline = timeline_of(hand_made())
    turns = turns_of(hand_made(), "sliding-window:2")
    found = account("sliding-window:2", [{"total": 7}, {"total": 5}], fates(timeline, turns), [Drop(3, ((0, 2),), 9)], 1.5)
    assert (found.traces, found.tokens, found.uses, found.kept, found.dropped, found.cost) == (2, 12, 4, 1, 2, 1.5)


@pytest.mark.parametrize("policy", sorted({name for rows in POLICIES.values() for name in rows.values()}))
def test_the_live_result_is_the_published_row(policy: str) -> None:
    live = live_result(policy)
    assert live is not None
    row = table(live["table"]).row(live["row"])
    assert POLICIES[live["table"]][live["row"]] == policy
    if "tokens_change_pct" in row:
        assert (live["tokens_pct"], live["points"]) == (row["tokens_change_pct"], row["average_change"])
    else:
        base = table(live["table"]).rows[0]
        assert live["points"] == pytest.approx(100 * (row["reward"] - base["reward"]))


def test_a_policy_the_paper_did_not_run_has_no_live_result() -> None:
    assert live_result("sliding-window:8") is None and live_result("base") is None
    assert verdicts([Account("sliding-window:8", 1, 5)], "base")[0].live is None


@pytest.mark.parametrize(
    ("tokens", "cost", "sense"),
    [(50, 3.0, "good"), (50, 4.0, "good"), (50, 5.0, ""), (50, None, ""), (150, 5.0, "bad"), (150, 3.0, ""), (100, 4.0, "")],
)
def test_fewer_tokens_are_good_only_where_the_cost_is_not_higher(tokens: int, cost: float | None, sense: str) -> None:
    assert token_sense(tokens, 100, cost, 4.0) == sense


def test_signs_are_real_minus_signs_and_zero_has_none() -> None:
    assert [signed(value) for value in (56.3, -11.2, 0.04, -0.04)] == ["+56.3", "-11.2", "0.0", "0.0"]
