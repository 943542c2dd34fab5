"""Which turns `bench replay` compares."""

import pytest
from msgspec.structs import replace

from pamer_lab.bench.replay import EARLY_BEGIN, LATEST_BEGIN, first_compared
from pamer_lab.bench.stored_runs import what_if_run


@pytest.mark.parametrize(
    ("first_work", "begin"),
    [(0, EARLY_BEGIN), (EARLY_BEGIN, EARLY_BEGIN), (60, 60), (LATEST_BEGIN + 1, EARLY_BEGIN), (None, EARLY_BEGIN)],
)
def test_a_policy_that_is_idle_first_is_compared_from_its_first_work_on(first_work: int | None, begin: int) -> None:
    turns = [replace(turn, action="pass" if first_work is None or turn.t < first_work else "compress") for turn in what_if_run(256).turns]
    assert first_compared(turns) == begin
