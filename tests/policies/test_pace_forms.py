"""The layout of PACE's steps is that of going through all of them at every turn."""

import random
from typing import Any, cast

import numpy as np

from pamer_lab.blocks import Block
from pamer_lab.decisions import Item
from pamer_lab.policies.interface import History
from pamer_lab.policies.pace_forms import FULL, Forms, Layout
from pamer_lab.policies.plain import arranged


class GivenForms:
    """Forms of given sizes; a form that is no shorter than its block is the block in full."""

    def __init__(self, sizes: list[tuple[int, int, int]], full: list[int]) -> None:
        self.full = full
        self.items = [
            [Item("summary", size, source=f"{block}-{place}") if size < full[block] else None for place, size in enumerate(row)] + [None]
            for block, row in enumerate(sizes)
        ]

    def item(self, history: Any, block: int, place: int) -> Item | None:
        return self.items[block][place]

    def size(self, history: Any, block: int, place: int) -> int:
        item = self.items[block][place]
        return item.tokens if item else self.full[block]


def history_of(t: int, full: list[int]) -> History:
    cumulative = [0]
    for size in full[:t]:
        cumulative.append(cumulative[-1] + size)
    return History(t, (), 0, cast(list[Block], [None] * t), cumulative, 0, (), 0)


def one_by_one(forms: GivenForms, scored: list[int], places: list[int], left: float) -> list[int]:
    """Every step takes shorter forms until it fits what the steps before it leave."""
    found = []
    for block, place in zip(scored, places, strict=True):
        while (size := forms.size(None, block, place)) > left and place:
            place -= 1
        found.append(place)
        left -= size
    return found


def test_steps_take_the_forms_and_places_that_one_pass_over_all_of_them_gives() -> None:
    shortened = 0
    for seed in range(60):
        chance = random.Random(seed)
        turns = chance.randrange(3, 60)
        full = [chance.randrange(1, 300) for _ in range(turns)]
        forms = GivenForms([(chance.randrange(1, 9), chance.randrange(4, 40), chance.randrange(20, 200)) for _ in range(turns)], full)
        complete = [chance.random() < 0.9 for _ in range(turns)]
        layout = Layout(cast(Forms, forms))
        for t in range(1, turns):
            history, last = history_of(t, full), max(t - 2, 0)
            scored = [block for block in range(last) if complete[block]]
            if not scored:
                continue
            chosen = [chance.choice([0, 0, 1, 2, FULL]) for _ in scored]
            allowed = chance.choice([float("inf"), 0, chance.randrange(2000)])
            places = layout.within(history, np.array(scored), np.array(chosen), allowed).tolist()
            fits = sum(full[: scored[-1] + 1]) <= allowed
            assert places == (chosen if fits else one_by_one(forms, scored, chosen, allowed))
            shortened += places != chosen
            shown = {block: item for block, place in zip(scored, places, strict=True) if (item := forms.item(history, block, place))}
            assert layout.items(history, np.array(scored), np.array(places), last) == [*arranged(history, shown)]
    assert shortened > 100
