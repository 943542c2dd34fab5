"""The same question is computed once; another one is not."""

import numpy as np

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.memory import SourceBlock, cached
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.trajectory.values import Message


class Counted:
    """Counts how often the inner part is asked."""

    def __init__(self, inner: object) -> None:
        self.inner, self.asked = inner, 0

    def __getattr__(self, name: str) -> object:
        found = getattr(self.inner, name)
        if name not in ("embed", "summarise"):
            return found

        def ask(*given: object) -> object:
            self.asked += 1
            return found(*given)

        return ask


def test_a_summary_is_written_once_for_the_same_task_and_blocks() -> None:
    inner = Counted(ExtractiveSummariser(EstimatedCounter()))
    summaries = cached.CachedSummariser(inner)  # type: ignore[arg-type]
    one, other = (SourceBlock(n, (Message("assistant", f"found {n}"),)) for n in (1, 2))
    assert summaries.summarise("task", [one]) == summaries.summarise("task", [one]) and inner.asked == 1
    summaries.summarise("task", [one, other])
    summaries.summarise("other task", [one])
    assert inner.asked == 3


def test_vectors_are_those_of_the_inner_embedder_and_the_oldest_leave() -> None:
    inner = Counted(HashingEmbedder(16))
    vectors = cached.CachedEmbedder(inner)  # type: ignore[arg-type]
    assert np.array_equal(vectors.embed(["a", "b", "a"]), HashingEmbedder(16).embed(["a", "b", "a"])) and inner.asked == 2
    assert vectors.embed([]).shape == (0, 16)
    for number in range(cached.KEPT):
        vectors.embed([f"text {number}"])
    asked = inner.asked
    vectors.embed(["a"])
    assert inner.asked == asked + 1
