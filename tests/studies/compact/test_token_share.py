"""The budget identity, recalled tokens and agreement against small cases worked out by hand."""

import numpy as np
import pytest

from pamer_lab.probes.split import Split
from pamer_lab.studies.compact.points import decision_points
from pamer_lab.studies.compact.recent import scalars_of
from pamer_lab.studies.compact.registry import condition
from pamer_lab.studies.compact.study import evidence_tokens, token_share
from pamer_lab.studies.decisions import Decisions
from pamer_lab.studies.distill import agreement
from tests.studies.compact.making import resources, sized

SIZES = (20, 30, 40, 50, 60)
HEAD = 15
"""Five tokens of tools and ten of the task."""


@pytest.mark.parametrize(
    ("name", "read"),
    [
        # decision points 1, 3 and 5: full contexts of 35, 105 and 215 tokens
        ("full", 35 + 105 + 215),
        ("current", 3 * HEAD),
        ("recent1", 35 + 55 + 75),
        ("recent2", 35 + 85 + 125),
        ("recent4", 35 + 105 + 195),
        ("recent2-scalar", 35 + 85 + 125),
        ("recent2-kd", 35 + 85 + 125),
        ("recency-top3", 35 + 105 + 215),
        ("bank-recent5", 35 + 55 + 75),
        ("gru512", 35 + 55 + 75),
    ],
)
def test_the_token_share_is_the_sum_of_contexts_over_the_sum_of_full_ones(name: str, read: int) -> None:
    tools = resources()
    points = decision_points(sized(*SIZES), [1, 3, 5])
    readings = [condition(name).read(point, tools) for point in points]
    assert token_share(points, readings, tools.counts) == pytest.approx(100 * read / 355)


def test_recalled_tokens_count_evidence_alone_at_points_that_have_older_blocks() -> None:
    tools = resources()
    points = decision_points(sized(*SIZES), [1, 2, 3, 4, 5])
    readings = [condition("recency-top3").read(point, tools) for point in points]
    # older blocks: none, none, {20}, {20, 30}, {20, 30, 40}
    found = evidence_tokens(points, readings, tools.counts)
    assert found == {"mean": pytest.approx((20 + 50 + 90) / 3), "p95": pytest.approx(86.0), "max": 90, "n": 3}
    capped = [condition("embedding-top3-cap45", (45,)).read(point, tools) for point in points]
    assert evidence_tokens(points, capped, tools.counts)["max"] <= 45


def test_the_scalar_state_counts_what_the_window_leaves_out() -> None:
    tools = resources()
    point = decision_points(sized(*SIZES), [5])[0]
    turn, whole, left_out, last = scalars_of(point, 2, tools.counts)
    assert (turn, np.expm1(whole), np.expm1(left_out), np.expm1(last)) == pytest.approx((5, 215, 90, 60))


def test_agreement_counts_test_decisions_that_are_the_same_at_each_probes_own_threshold() -> None:
    labels = np.array([[1, 0, 1, 0, 1, 0, 1, 0]], dtype=bool)
    counts = np.array([[1, 1, 1, 1, 1, 1, 1, 0]], dtype=bool)
    decisions = Decisions(tuple((f"t{row}", 1) for row in range(8)), tuple(f"q{row}" for row in range(8)), labels, counts, "")
    split = Split(0, np.array([0, 0, 1, 1, 2, 2, 2, 2], dtype=np.int8))
    # thresholds from validation rows 2 and 3: halfway, 0 for the candidate and 10 for the teacher
    candidate = np.array([[0, 0, 2, -2, 1, -1, -1, 9]], dtype=np.float32)
    teacher = np.array([[0, 0, 12, 8, 11, 9, 11, -9]], dtype=np.float32)
    # test rows 4, 5, 6 (row 7 is not asked): yes-yes, no-no, no-yes
    found = agreement(decisions, [split], 0, candidate, teacher)
    assert found == {"mean": pytest.approx(2 / 3), "sd": 0.0, "seeds": [pytest.approx(2 / 3)]}
