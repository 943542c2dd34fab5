"""A dict with a limit."""

from pamer_lab.bounded import Bounded


def lengths(asked: list[list[str]]):  # type: ignore[no-untyped-def]
    def compute(keys: list[str]) -> list[int]:
        asked.append(keys)
        return [len(key) for key in keys]

    return compute


def test_the_oldest_entry_leaves_and_a_changed_one_counts_as_new() -> None:
    kept: Bounded[str, int] = Bounded(2)
    kept["a"], kept["b"] = 1, 2
    kept["a"] = 3
    kept["c"] = 4
    assert dict(kept) == {"a": 3, "c": 4}


def test_missing_values_are_computed_together_and_once() -> None:
    kept: Bounded[str, int] = Bounded(10)
    asked: list[list[str]] = []
    assert kept.many(["a", "bb", "a"], lengths(asked)) == [1, 2, 1]
    assert kept.many(["bb", "ccc"], lengths(asked)) == [2, 3]
    assert kept.many(["a"], lengths(asked)) == [1] and asked == [["a", "bb"], ["ccc"]]
    assert kept.one("a", lambda: 9) == 1 and kept.one("d", lambda: 9) == 9


def test_more_keys_than_the_limit_are_all_answered() -> None:
    kept: Bounded[str, int] = Bounded(2)
    kept["a"] = 7
    assert kept.many(["a", "bb", "ccc", "dddd"], lengths([])) == [7, 2, 3, 4]
    assert list(kept) == ["ccc", "dddd"]


def test_a_limit_of_zero_keeps_nothing() -> None:
    kept: Bounded[str, int] = Bounded(0)
    assert kept.many(["a", "a"], lengths([])) == [1, 1] and not kept
