"""A trace in the making: where its warnings say they are."""

import pytest

from pamer_lab.trajectory.draft import Draft


@pytest.mark.parametrize(
    ("trace", "given", "shown"),
    [
        ("line 1", "line 2", "line 2"),
        ("line 1 to line 3", "line 2 messages[0]", "line 2 messages[0]"),
        ("line 1", "messages[0]", "line 1 messages[0]"),
        ("line 1", "line 1 messages[0]", "line 1 messages[0]"),
        ("[1] to [3]", "[0]", "[0]"),
        ("", "messages[0]", "messages[0]"),
        ("line 1", "", "line 1"),
    ],
)
def test_a_place_names_one_record(trace: str, given: str, shown: str) -> None:
    draft = Draft("any", where=trace)
    assert draft.warning(given, "odd").where == draft.fault(given, "odd").where == shown
