"""Reviews of labels: the same sample for everyone, revisions, and agreement with its interval."""

import pytest

from pamer_lab.audit.labels import LabelReview, agreement, all_reviews, current, sample, save
from pamer_lab.audit.tables import NAME_CHARACTERS
from pamer_lab.errors import InputError
from pamer_lab.trajectory.values import Label
from pamer_lab.workspace import Workspace

LABELS = [(f"t-{number}", Label(5, target, bool(number % 2), "hindsight")) for number in range(40) for target in ("compression", "recall")]  # type: ignore[arg-type]


def review(trace_id: str, value: bool, agree: bool, reviewer: str = "Ada") -> LabelReview:
    return LabelReview(trace_id, 5, "recall", "hindsight", value, reviewer, agree)


def test_a_sample_has_all_kinds_and_does_not_depend_on_the_order() -> None:
    drawn = sample(LABELS, 12)
    assert drawn == sample(list(reversed(LABELS)), 12) and len(drawn) == 12
    assert {(label.target, label.value) for _, label in drawn[:4]} == {(t, v) for t in ("compression", "recall") for v in (True, False)}


def test_the_newest_revision_counts_and_all_are_kept(workspace: Workspace) -> None:
    save(workspace.database, review("t-1", True, True))
    save(workspace.database, review("t-1", True, False))
    save(workspace.database, review("t-2", False, True, "Bo"))
    assert len(all_reviews(workspace.database)) == 3
    rows = {(row["target"], row["value"]): row for row in agreement(current(workspace.database), LABELS)}
    assert (rows["recall", True]["agreed"], rows["recall", True]["reviews"]) == (0, 1)
    assert rows["all", None]["share"] == 0.5 and rows["all", None]["interval"] == pytest.approx([0.0945, 0.9055], abs=1e-3)


def test_a_review_of_a_label_that_changed_does_not_count() -> None:
    found = agreement([review("t-1", False, True)], LABELS)  # the label at t-1 is positive
    assert found == [{"target": "all", "value": None, "reviews": 0, "agreed": 0, "share": None, "interval": None}]


def test_a_review_needs_a_name(workspace: Workspace) -> None:
    with pytest.raises(InputError):
        save(workspace.database, review("t-1", True, True, "  "))


def test_a_label_review_has_the_same_limits_as_any_review(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="name is longer"):
        save(workspace.database, review("t-1", True, True, "A" * (NAME_CHARACTERS + 1)))
    assert all_reviews(workspace.database) == []
