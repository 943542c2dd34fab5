"""Lines that name their parent: what cannot be ordered is kept, with a warning."""

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.chain import in_causal_order


def test_lines_that_are_each_others_parents_come_last_with_one_warning() -> None:
    draft = Draft("x")
    rows = [(own, {"uuid": own, "parentUuid": parent}) for own, parent in (("a", "b"), ("b", "a"), ("d", "c"), ("c", None))]
    assert [place for place, _ in in_causal_order(draft, rows)] == ["c", "d", "a", "b"]
    assert [(warning.where, warning.text.partition(" ")[0]) for warning in draft.warnings] == [("a", "2")]
