"""How fast the machine is does not depend on other programs; how long work takes does."""

import time

import pytest

from pamer_lab.models import speed
from pamer_lab.models.speed import NOTICED, Watch, slower


def test_time_in_which_other_programs_had_the_processor_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {"perf_counter": iter([0.0, 12.0]), "thread_time": iter([0.0, 3.0])}
    for name, shown in clocks.items():
        monkeypatch.setattr(time, name, lambda shown=shown: next(shown))
    assert Watch().alone() == 3.0


def test_small_differences_are_no_other_programs() -> None:
    assert slower(NOTICED - 0.01, 1.0) == 1.0 and slower(3.0, 1.0) == 3.0 and slower(1.0, 0.0) == 1.0


def test_the_speed_is_by_processor_time_and_the_load_by_the_slowest_core(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([(1.0, 1.0), (4.0, 1.0)])
    monkeypatch.setattr(speed, "cores", lambda: 2)
    monkeypatch.setattr(speed, "_product", lambda: next(taken))
    found = speed._machine.__wrapped__(0)
    assert found.busy == 4.0 and found.speed == 2 * 2.0 * speed.ROWS * speed.WIDTH**2 * speed.ROUNDS
