"""What is recorded of every selection, accepted or refused, for the audit.

Pure values and the `Recorder` Protocol; `audit` stores them. A refused selection has its reason in words.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from pamer_lab.controller.recall_cache import CacheOutcome
from pamer_lab.controller.router import Candidate

SelectionOutcome = Literal["accepted", "empty", "declined", "refused"]
"""`accepted`: evidence entered the request. `empty`: the router chose nothing. `declined`: the recall agent found nothing of use in
what was chosen. `refused`: selection or packet was invalid, and the original request was returned."""


@dataclass(frozen=True)
class SelectionRecord:
    """One selection."""

    session_id: str
    turn: int
    """The decision point."""
    table_version: int
    """Version of the memory table that was read; where memories are held back, the first one that holds all that was read."""
    query: str
    """Task and recent blocks, as the recall query has them."""
    router: str
    agent: str
    answer: str
    """The router's answer as JSON, shortened; for refused ones the only trace of what was asked."""
    outcome: SelectionOutcome
    reason: str
    candidates: tuple[Candidate, ...] = ()
    """Best first, as far as they are kept."""
    summary_ids: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    goal: str = ""
    near_misses: tuple[Candidate, ...] = ()
    """The best candidates that were not chosen."""
    cache: CacheOutcome | Literal[""] = ""
    """Empty where no selection came to the cache."""
    cited_steps: tuple[int, ...] = ()
    chosen_tokens: int = 0
    """Of the chosen steps, complete."""
    covered_tokens: int = 0
    """Of all steps that the chosen summaries cover."""
    restored_tokens: int = 0
    """Of what came back into the request: less than `chosen_tokens` where a block was clipped or left out."""
    restored_in_part: tuple[int, ...] = ()
    """Cited steps of which only an excerpt came back."""


class Recorder(Protocol):
    """Keeps records."""

    def record(self, record: SelectionRecord) -> None: ...


class NoRecorder:
    """Keeps nothing; what `pamer_lab.load_controller` and replay use keeps everything."""

    def record(self, record: SelectionRecord) -> None:
        return None
