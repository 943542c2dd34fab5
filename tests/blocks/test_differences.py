"""Differences of texts that are made to be compared for ever."""

import random
from difflib import SequenceMatcher

import pytest

from pamer_lab.blocks.differences import MOST_PAIRS, Limited, opcodes

SIZE = 2_000
CHANCE = random.Random(0)
SLOW = {
    "one line among others": (["a"] * SIZE, ["a", "b"] * (SIZE // 2)),
    "two lines at random": ([CHANCE.choice("ab") for _ in range(SIZE)], [CHANCE.choice("ab") for _ in range(SIZE)]),
    "shifted": (["a", "b"] * (SIZE // 2), ["b", "a"] * (SIZE // 2)),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_hostile_pair_stays_within_its_budget_and_nothing_is_lost(name: str) -> None:
    one, other = SLOW[name]
    looked_at: list[int] = []

    class Watched(Limited):
        def find_longest_match(self, *args: int, **named: int) -> object:  # type: ignore[override]
            before = self.left
            found = super().find_longest_match(*args, **named)
            looked_at.append(before - self.left if self.left >= 0 else 0)
            return found

    Watched(one, other, autojunk=False).get_opcodes()
    assert sum(looked_at) <= MOST_PAIRS
    rebuilt = [entry for kind, a, b, c, d in opcodes(one, other) for entry in (one[a:b] if kind == "equal" else other[c:d])]
    assert rebuilt == other


def test_usual_texts_are_compared_as_difflib_does() -> None:
    chance = random.Random(1)
    one = [f"line {chance.randrange(80)}" for _ in range(300)]
    other = [line for line in one if chance.random() > 0.1] + ["more"]
    assert opcodes(one, other) == SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
