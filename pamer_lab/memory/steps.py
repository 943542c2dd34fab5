"""Step details as a partition: every covered block has exactly one, and nothing else has any.

Pure. Checked when a model hands over details, when a memory is written, and again whenever one is read.
"""

from collections import Counter
from collections.abc import Sequence

from pamer_lab.memory.records import Memory


def partition_faults(covered: Sequence[int], detailed: Sequence[int]) -> list[str]:
    """What keeps `detailed` from being a partition of `covered`, in words: gaps, overlaps, unknown steps, disorder."""
    found: list[str] = []
    counts, known = Counter(detailed), set(covered)
    if repeated := sorted(step for step, count in counts.items() if count > 1):
        found.append(f"overlap: more than one detail for {_listed(repeated)}")
    if missing := sorted(known - set(counts)):
        found.append(f"gap: no detail for {_listed(missing)}")
    if unknown := sorted(set(counts) - known):
        found.append(f"unknown: a detail for {_listed(unknown)}, which is not covered")
    if len(known) != len(covered):
        found.append("overlap: a step is covered twice")
    return found


def memory_faults(memories: Sequence[Memory]) -> list[str]:
    """What is wrong with the partitions of several memories of one session, in words."""
    found: list[str] = []
    owner: dict[int, str] = {}
    for memory in memories:
        found += [f"{memory.memory_id}: {fault}" for fault in memory.faults()]
        for step in memory.steps:
            if step in owner:
                found.append(f"overlap: step {step} belongs to {owner[step]} and to {memory.memory_id}")
            owner[step] = memory.memory_id
    return found


def _listed(steps: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(str(step) for step in steps[:most])
    return f"step {shown}" + (f" and {len(steps) - most} more" if len(steps) > most else "")
