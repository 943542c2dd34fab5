"""The forms in which PACE shows its older steps, and their layout in a context."""

from typing import Any, Literal, cast

import numpy as np

from pamer_lab.blocks.render import task_text
from pamer_lab.decisions import Item, Spent, spans_of
from pamer_lab.memory.summary import SourceBlock, Summary
from pamer_lab.policies.interface import History, Resources, add_text, summary_spent

Form = Literal["placeholder", "brief", "detailed", "full"]
FORMS: tuple[Form, ...] = ("placeholder", "brief", "detailed", "full")
FULL = len(FORMS) - 1
Array = np.ndarray[Any, np.dtype[np.int64]]


class Forms:
    """The shorter forms of each block, written when its step ends or, after a resume, when first needed."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._written: dict[int, tuple[str, str]] = {}
        """Detailed and brief form."""
        self._fitting: dict[tuple[int, int], Item | None] = {}
        self.charged = 0
        """Number of blocks whose forms were written and charged by the last decided turn; after a failure, later ones are written again."""

    def text(self, history: History, block: int) -> str:
        """The detailed form."""
        return self._of(history, block)[0]

    def item(self, history: History, block: int, place: int) -> Item | None:
        """The block in this form, or in the next longer form if that is shorter than the block; None: in full."""
        if place == FULL:
            return None
        if (block, place) not in self._fitting:
            item = self._item(history, block, FORMS[place])
            fits = item.tokens < history.tokens([(block, block + 1)])
            self._fitting[block, place] = item if fits else self.item(history, block, place + 1)
        return self._fitting[block, place]

    def size(self, history: History, block: int, place: int) -> int:
        """Tokens of the block in a form."""
        item = self.item(history, block, place)
        return item.tokens if item is not None else history.tokens([(block, block + 1)])

    def _item(self, history: History, block: int, form: Form) -> Item:
        detailed, brief = self._of(history, block) if form != "placeholder" else ("", "")
        text = {"placeholder": f"[Step {block} is left out]", "brief": f"[Step {block}, brief] {brief}"}.get(
            form, f"[Step {block}, detailed]\n{detailed}"
        )
        # A placeholder contains nothing of its block, which is therefore absent.
        spans = ((block, block + 1),) if form != "placeholder" else ()
        return add_text("summary", text, spans, self._resources.tokens, source=f"step {block}, {form}")

    def write(self, history: History, spent: list[Spent]) -> None:
        """Write both forms of the blocks since the last decided turn, as PACE does when a step ends; adds the cost of each to `spent`."""
        for block in range(self.charged, history.t):
            summary, source = self._write(history, block)
            spent.append(summary_spent(summary, source, self._resources))

    def _of(self, history: History, block: int) -> tuple[str, str]:
        if block not in self._written:
            self._write(history, block)
        return self._written[block]

    def _write(self, history: History, block: int) -> tuple[Summary, list[SourceBlock]]:
        source = [SourceBlock(block, tuple(history.block_messages(block)))]
        summary = self._resources.summariser.summarise(task_text(history.messages[: history.prefix_end]), source)
        self._written[block] = (summary.text, summary.details[0])
        return summary, source


class Layout:
    """The form of each older block, turn by turn; a turn costs only what it changes."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._sizes = np.empty((0, len(FORMS)), np.int64)
        """Tokens of each block in each form; -1: not computed yet."""
        self._places = np.empty(0, np.int64)
        self._items: list[Item | None] = []
        """Each block in its form; None: in full."""

    def within(self, history: History, scored: Array, places: Array, allowed: float) -> Array:
        """The chosen forms, but shorter ones from the step on that would exceed the token budget."""
        if history.tokens([(0, int(scored[-1]) + 1)]) <= allowed:
            return places
        self._sizes = grown(self._sizes, int(scored[-1]) + 1, -1)
        sizes = self._sizes[scored, places]
        for number in np.flatnonzero(sizes < 0).tolist():
            sizes[number] = self._size(history, int(scored[number]), int(places[number]))
        sums = np.cumsum(sizes)
        over = int(np.searchsorted(sums, allowed, side="right"))
        left = allowed - (int(sums[over - 1]) if over else 0)
        places = places.copy()
        for number in range(over, len(places)):
            if left < 0:  # no form fits any more
                places[number:] = 0
                break
            block, place = int(scored[number]), int(places[number])
            while (size := self._size(history, block, place)) > left and place:
                place -= 1
            places[number] = place
            left -= size
        return places

    def _size(self, history: History, block: int, place: int) -> int:
        if self._sizes[block, place] < 0:
            self._sizes[block, place] = self._forms.size(history, block, place)
        return int(self._sizes[block, place])

    def items(self, history: History, scored: Array, places: Array, last: int) -> list[Item]:
        """The blocks before `last` in their forms, those that were not scored and all later ones in full."""
        before, now = grown(self._places, last, FULL), np.full(last, FULL)
        now[scored] = places
        self._items += [None] * (last - len(self._items))
        for block in np.flatnonzero(before != now).tolist():
            self._items[block] = self._forms.item(history, block, int(now[block]))
        self._places = now
        laid: list[Item] = []
        place = 0
        for span in spans_of([*(block for block in range(last) if self._items[block] is None), *range(last, history.t)]):
            laid += cast(list[Item], self._items[place : span[0]]) + history.raw([span])
            place = span[1]
        return laid + cast(list[Item], self._items[place:])


def grown(array: Array, rows: int, fill: int) -> Array:
    """The array with at least `rows` rows; new ones are filled with `fill`."""
    missing = rows - len(array)
    return np.concatenate([array, np.full((missing, *array.shape[1:]), fill)]) if missing > 0 else array
