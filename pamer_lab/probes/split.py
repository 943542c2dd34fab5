"""Question-grouped splits: 70 / 15 / 15 by question, determined by a seed.

Knows question ids and labels, not features. Questions are ordered by a hash, so the same questions and seed give the same split on any
machine.
Invariant: all rows of one question are in one part.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError

PARTS = ("training", "validation", "test")
TRAIN, VALIDATION, TEST = 0, 1, 2
SHARES = (0.70, 0.15, 0.15)
SEEDS = (0, 1, 2, 3, 4)
MINIMUM_QUESTIONS = 7
"""With fewer, 15% of the questions is less than one question."""


@dataclass(frozen=True)
class Split:
    """One seed's assignment of rows to parts."""

    seed: int
    part: npt.NDArray[np.int8]
    """[n]: 0 training, 1 validation, 2 test."""

    def rows(self, part: int) -> npt.NDArray[np.bool_]:
        return np.asarray(self.part == part)


def split_by_question(question_ids: Sequence[str], seed: int, words: str = "questions") -> Split:
    """Assign every row the part of its question; `InputError` if there are too few. `words` names the groups if they are not questions."""
    questions = sorted(set(question_ids))
    if len(questions) < MINIMUM_QUESTIONS:
        raise InputError(
            f"a question-grouped {'/'.join(f'{share:.0%}'[:-1] for share in SHARES)} split needs at least {MINIMUM_QUESTIONS} {words}, "
            f"but these traces have {len(questions)}; add traces of other {words} (replicas do not count)"
        )
    ordered = sorted(questions, key=lambda question: hashlib.sha256(f"{seed}/{question}".encode()).digest())
    validation, test = (max(1, round(share * len(ordered))) for share in SHARES[1:])
    bounds = (len(ordered) - validation - test, len(ordered) - test)
    part_of = {question: sum(place >= bound for bound in bounds) for place, question in enumerate(ordered)}
    return Split(seed, np.array([part_of[question] for question in question_ids], dtype=np.int8))


def require_both_classes(split: Split, labels: npt.NDArray[np.bool_], counts: npt.NDArray[np.bool_], target: str) -> None:
    """Refuse a split in which a part has no positive or no negative decision of the target."""
    for number, name in enumerate(PARTS):
        rows = labels[split.rows(number) & counts]
        for value, kind in ((True, "positive"), (False, "negative")):
            if not (rows == value).any():
                raise InputError(
                    f"the {name} part of seed {split.seed} has no {kind} {target} decision among its {len(rows)}; "
                    f"add labelled traces of more questions, or leave this seed out"
                )


CLEAN = "none in two parts"
"""End of the sentence about a split without a leak; studies store these sentences."""


@dataclass(frozen=True)
class LeakCheck:
    """How many questions each part has, and which are in two parts (there must be none)."""

    questions: dict[str, int]
    shared: tuple[str, ...]
    words: str = "questions"

    @property
    def sentence(self) -> str:
        counted = ", ".join(f"{number} {name}" for name, number in self.questions.items())
        return f"{counted} {self.words}; " + (f"{len(self.shared)} in two parts" if self.shared else CLEAN)


def leaks(sentences: Iterable[str]) -> int:
    """How many of a study's split sentences report a leak."""
    return sum(not str(sentence).endswith(CLEAN) for sentence in sentences)


def check_leak(split: Split, question_ids: Sequence[str], words: str = "questions") -> LeakCheck:
    """Look at the rows themselves, not at how the split was made."""
    of_part = [{question for question, part in zip(question_ids, split.part, strict=True) if part == number} for number in range(3)]
    shared = (of_part[0] & of_part[1]) | (of_part[0] & of_part[2]) | (of_part[1] & of_part[2])
    return LeakCheck({name: len(of_part[number]) for number, name in enumerate(PARTS)}, tuple(sorted(shared)), words)
