"""The tree of runs holds every input exactly, and shared beginnings once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.features.tree import Run, build

INPUTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8, unique_by=tuple)


def paths(run: Run, before: list[int]) -> dict[int, list[int]]:
    """Input -> the tokens that the tree gives it."""
    tokens = [*before[: run.start], *run.tokens.tolist()]
    found = {index: tokens[:length] for length, index in run.ends}
    for fork in run.forks:
        assert run.start <= fork.start <= run.end
        found |= paths(fork, tokens)
    return found


@settings(max_examples=150, deadline=None)
@given(INPUTS, st.sampled_from([1, 3]))
def test_following_the_runs_gives_back_every_input(inputs: list[list[int]], share: int) -> None:
    found: dict[int, list[int]] = {}
    for root in build([np.asarray(tokens, dtype=np.int32) for tokens in inputs], min_share=share, boundary=0):
        found |= paths(root, [])
    assert found == dict(enumerate(inputs))


@settings(max_examples=150, deadline=None)
@given(INPUTS)
def test_every_distinct_prefix_is_computed_once(inputs: list[list[int]]) -> None:
    roots = build([np.asarray(tokens, dtype=np.int32) for tokens in inputs])
    prefixes = {tuple(tokens[:length]) for tokens in inputs for length in range(1, len(tokens) + 1)}
    assert sum(root.size() for root in roots) == len(prefixes)
