"""What the deterministic router reads of an archived step: its lines in the index (the default), or its raw block.

`IndexSource` is the paper's: summaries and step details only. `ArchiveSource` reads the raw archive, which the paper's router never
sees; it exists for comparison, and audit rows name it. Neither scores anything.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pamer_lab.controller.router_index import BlockTerms, block_terms
from pamer_lab.memory import CoveredBlock, Memory
from pamer_lab.memory.summary import block_text, read_detail
from pamer_lab.memory.terms import terms
from pamer_lab.trajectory.values import Message

RouterKind = Literal["index", "archive"]
"""`index`: the router sees summaries and step details, as in the paper. `archive`: it also reads every raw archived block."""

Read = Callable[[Sequence[CoveredBlock]], Mapping[str, Sequence[Message]]]
"""Raw messages of covered blocks, by raw hash."""

_STEP_LINE = re.compile(r"^Step (\d{1,9}): (.*)$")


@dataclass(frozen=True)
class StepText:
    """One archived step as a router sees it."""

    terms: BlockTerms
    text: str
    """What is embedded beside the detail line."""


class StepSource(Protocol):
    """Where the router's view of archived steps comes from."""

    name: str
    """Part of the router's name, and so of every audit row."""

    def steps(self, memory: Memory) -> list[StepText]:
        """One entry per block of the memory, in order."""
        ...


class IndexSource:
    """Reads summaries and step details, nothing else."""

    name = "index"

    def steps(self, memory: Memory) -> list[StepText]:
        lines = summary_lines(memory.summary)
        own = [lines.get(block.step, []) for block in memory.blocks]
        return [
            StepText(index_terms(block.detail, said), "\n".join((block.detail, *said)))
            for block, said in zip(memory.blocks, own, strict=True)
        ]


class ArchiveSource:
    """Reads the raw blocks."""

    name = "archive"

    def __init__(self, read: Read) -> None:
        self._read = read

    def steps(self, memory: Memory) -> list[StepText]:
        raw = self._read(memory.blocks)
        return [StepText(block_terms(raw[block.raw_hash]), block_text(raw[block.raw_hash])) for block in memory.blocks]


def summary_lines(summary: str) -> dict[int, list[str]]:
    """Step -> its lines in a summary that names steps (`Step 4: ...`, then `- ...`); empty for running text."""
    found: dict[int, list[str]] = {}
    for step, line in _numbered(summary):
        found.setdefault(step, []).append(line)
    return found


def _numbered(summary: str) -> Iterator[tuple[int, str]]:
    step: int | None = None
    for line in summary.splitlines():
        match = _STEP_LINE.match(line)
        step = int(match[1]) if match else step if line.startswith("- ") else None
        if step is not None:
            yield step, match[2] if match else line[2:]


def index_terms(detail: str, lines: Sequence[str]) -> BlockTerms:
    """The terms of a step, from its detail and its lines in the summary.

    A detail without the extractive form does not say who named a term, so each counts as asked and answered. A summary line does not
    either; what the agent is not known to have named counts as answered.
    """
    parts = read_detail(detail)
    if parts is None:
        named = terms(detail)
        return BlockTerms(named, named, named, named | _terms_of(lines))
    called = terms(parts.calls)
    asked = called | frozenset(name.lower() for name in parts.says)
    answered = terms(parts.line) | frozenset(name.lower() for name in parts.names)
    return BlockTerms(asked, called, called, answered | (_terms_of(lines) - asked))


def _terms_of(lines: Sequence[str]) -> frozenset[str]:
    return frozenset().union(*(terms(line) for line in lines))
