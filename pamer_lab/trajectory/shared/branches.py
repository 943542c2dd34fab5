"""Trees of messages, in which a regenerated answer starts a branch -> the path that was shown."""

from collections.abc import Mapping


def path_to(last: str, parents: Mapping[str, str]) -> list[str]:
    """The ids from the root to `last`; a parent that is not in the tree ends the path, and so does a cycle."""
    path: list[str] = []
    seen: set[str] = set()
    while last in parents and last not in seen:
        seen.add(last)
        path.append(last)
        last = parents[last]
    return path[::-1]
