"""What counts as a vote."""

from pamer_lab.controller.probe import Votes


def test_a_vote_is_a_probability_at_or_above_its_heads_own_threshold() -> None:
    votes = Votes((0.0, 0.0, -1.0, 1.0), (0.5, 0.501, 0.26, 0.74))  # probabilities 0.5, 0.5, 0.269, 0.731
    assert votes.votes == (True, False, True, False)
