"""Runs side by side: what each is compared with, and where its numbers come from."""

import pytest

from pamer_lab.analysis.compare import compare
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.evidence import fates, survival_rates
from pamer_lab.runs.timeline import lay_out
from tests.runs.making import PARTS, SMALL, call, estimated, long_trace, make_trace

TRACE = long_trace(9)


def test_a_run_is_compared_with_the_base_run_wherever_it_is_in_the_list() -> None:
    runs = [replay(TRACE, policy) for policy in ("sliding-window:2", "base", "periodic-summary:2")]
    table = compare(runs)
    assert table["policy"].to_list() == ["sliding-window:2", "base", "periodic-summary:2"]
    assert table["against"].to_list() == ["base"] * 3
    assert table["change_pct"].to_list() == pytest.approx([-run.totals["reduction_pct"] for run in runs])
    assert table["peak_active"].to_list() == [max(turn.active_tokens for turn in run.turns) for run in runs]
    assert (table["cached_input"] + table["uncached_input"]).to_list() == [run.totals["main_input"] for run in runs]


def test_without_a_base_run_the_first_of_the_trace_is_the_measure() -> None:
    other = long_trace(5, trace_id="t-other", words=9)
    runs = [replay(TRACE, "sliding-window:2"), replay(other, "periodic-summary:2"), replay(TRACE, "sliding-window:3")]
    table = compare(runs)
    assert table["against"].to_list() == ["sliding-window:2", "periodic-summary:2", "sliding-window:2"]
    assert table["change_pct"].to_list()[:2] == [0.0, 0.0]
    assert table["change_pct"][2] == pytest.approx(100 * (runs[2].totals["total"] / runs[0].totals["total"] - 1))


def test_runs_over_fewer_turns_are_not_compared_with_longer_ones() -> None:
    short = replay(TRACE, "sliding-window:2", options=ReplayOptions(turn_limit=4))
    assert compare([replay(TRACE, "base"), short])["against"].to_list() == ["base", "sliding-window:2"]


def test_actions_are_counted() -> None:
    run = replay(TRACE, f"pamer{SMALL}", options=ReplayOptions(device="cpu", parts=PARTS))
    done = [turn.action for turn in run.turns]
    [row] = compare([run]).to_dicts()
    assert [row["compressions"], row["recalls"], row["fallbacks"]] == [done.count(name) for name in ("compress", "recall", "fallback")]
    assert row["compressions"] > 0


def test_evidence_is_looked_up_in_the_traces_that_are_given() -> None:
    found = [call(0, "where", "Letter L0042 lies in box B-17.")]
    trace = make_trace([*found, *(call(n, f"other {n}", f"nothing {n}") for n in range(1, 6)), call(6, "open L0042", "done")])
    runs = [replay(trace, policy) for policy in ("base", "sliding-window:2")]
    assert compare(runs)["evidence_in_context_pct"].to_list() == [None, None]
    table = compare(runs, [TRACE, trace])
    rates = [survival_rates(fates(lay_out(trace, estimated()), run.turns)) for run in runs]
    assert table["evidence_in_context_pct"].to_list() == [rate["in_context_pct"] for rate in rates] == [100.0, 0.0]
    assert table["evidence_uses"].to_list() == [rate["uses"] for rate in rates]


def test_no_runs_are_an_empty_table_with_all_columns() -> None:
    assert compare([]).columns == compare([replay(TRACE, "base")]).columns
