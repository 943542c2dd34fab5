"""A seeded sample of decision points, question by question.

Every question keeps its share of the points and, up to rounding, of the positives and negatives of both targets. The same seed and corpus
give the same sample on any machine; the order of rows stays.
"""

import hashlib
from collections import defaultdict
from dataclasses import replace

import numpy as np

from pamer_lab.errors import InputError
from pamer_lab.studies.decisions import Decisions


def sample(decisions: Decisions, count: int, seed: int = 0) -> Decisions:
    """About `count` decision points; zero, or more than there are, keeps all."""
    if count < 0:
        raise InputError(f"a sample has at least one decision point, not {count}")
    if not count or count >= len(decisions):
        return decisions
    rows = sample_rows(decisions, count, seed)
    return replace(
        decisions,
        keys=tuple(decisions.keys[row] for row in rows),
        questions=tuple(decisions.questions[row] for row in rows),
        labels=np.ascontiguousarray(decisions.labels[:, rows]),
        counts=np.ascontiguousarray(decisions.counts[:, rows]),
    )


def sample_rows(decisions: Decisions, count: int, seed: int = 0) -> list[int]:
    """Row numbers of the sample, ascending."""
    of_question: dict[str, list[int]] = defaultdict(list)
    for row, question in enumerate(decisions.questions):
        of_question[question].append(row)
    chosen: list[int] = []
    for question, quota in _quotas({name: len(rows) for name, rows in of_question.items()}, count).items():
        rows = sorted(of_question[question], key=lambda row: (_stratum(decisions, row), _lot(seed, *decisions.keys[row])))
        start = _lot(seed, question, -1)
        chosen += [rows[int((number + start) * len(rows) / quota)] for number in range(quota)]
    return sorted(chosen)


def _quotas(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Points per question: its share of all, the largest remainders rounded up, at least one each."""
    total = sum(sizes.values())
    exact = {name: count * size / total for name, size in sizes.items()}
    quotas = {name: max(1, int(share)) for name, share in exact.items()}
    # By what a question still lacks: one that got its single point whole has more than its share, and no second point to give.
    for name in sorted(exact, key=lambda name: (quotas[name] - exact[name], name)):
        if sum(quotas.values()) >= count:
            break
        quotas[name] += 1
    return quotas


def _stratum(decisions: Decisions, row: int) -> tuple[int, ...]:
    """Rows that the labels cannot tell apart."""
    return tuple(int(value) for value in (*decisions.labels[:, row], *decisions.counts[:, row]))


def _lot(seed: int, name: str, t: int) -> float:
    digest = hashlib.sha256(f"{seed}/{name}/{t}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
