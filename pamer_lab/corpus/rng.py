"""Random choices that are the same on every machine and Python version.

A counter hashed with SHA-256: `random.Random` keeps its floats stable between versions but not its `choice` and `shuffle`.
Invariant: the sequence depends only on the words a `Draw` was made from.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """A stream of choices named by words, such as `Draw(7, "world", 3)`."""

    def __init__(self, *words: object) -> None:
        self._key = "/".join(str(word) for word in words).encode()
        self._count = 0

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit - 1`."""
        self._count += 1
        digest = hashlib.sha256(self._key + b"#" + str(self._count).encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items (or all of them), in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(min(count, len(rest)))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self.some(items, len(items))
