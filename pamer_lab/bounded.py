"""A bounded dict: keeps what was computed, and drops the oldest entries when it is full."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Bounded(OrderedDict[Key, Value]):
    """At most `limit` entries; setting one makes it the newest, and the oldest leave first."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.limit:
            self.popitem(last=False)

    def one(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is missing."""
        return self.many([key], lambda _: [compute()])[0]

    def many(self, keys: Sequence[Key], compute: Callable[[list[Key]], Iterable[Value]]) -> list[Value]:
        """The values of all keys, even if they exceed the limit; missing ones are computed together, each once."""
        missing = [key for key in dict.fromkeys(keys) if key not in self]
        fresh = dict(zip(missing, compute(missing), strict=True)) if missing else {}
        found = [fresh[key] if key in fresh else self[key] for key in keys]
        self.update(fresh)
        return found
