"""Every setting of the controller, with the paper's values (Appendix C.5) as defaults.

What belongs to a model (input limits, output reserve, time-outs, attempts) is a setting of the profile.
"""

from typing import Literal

from pydantic import Field, model_validator

from pamer_lab.blocks.render import QUERY_CHARACTERS
from pamer_lab.config import Settings


class ControllerSettings(Settings):
    """How PaMER decides, compresses and recalls."""

    retained_blocks: int = Field(default=2, ge=0)
    """Number of newest complete blocks that are never compressed. 0: only the prefix stays."""
    vote: int = Field(default=3, ge=1)
    """Number of heads that must vote for compression."""
    heads: int = Field(default=5, ge=1)
    """Number of heads that are asked; a probe with a different number is an error."""
    minimum_candidate_tokens: int = Field(default=1024, ge=0)
    """Minimum size of the older blocks in tokens for the probe to be asked. 0: it is asked whenever there is an older block."""
    summary_source_characters: int = Field(default=40_000, ge=1)
    """Maximum characters of the blocks that a summary reads; above it, long messages keep only their beginning and end."""
    summary_tokens: int = Field(default=1_024, ge=1)
    """Maximum tokens of a summary."""
    summary_retries: int = Field(default=3, ge=0)
    """Retries, each with half the source, for a summary that exceeds its limit or whose prompt does not fit the model. 0: none."""
    detail_tokens: int = Field(default=128, ge=1)
    """Maximum tokens of one step's detail, its JSON included, if a language model writes it (PaMER+)."""
    details_per_call: int = Field(default=8, ge=1)
    """Number of steps whose details are requested in one call (PaMER+)."""
    failures_before_shorter: int = Field(default=2, ge=1)
    """Number of failed compressions after which a session compresses a shorter range: the oldest half of the candidate's blocks, halved
    again with each further failure down to one block, then all of them again. Each success cancels one failure."""
    top_k: int = Field(default=3, ge=1)
    """Maximum number of summaries recalled."""
    query_characters: int = Field(default=QUERY_CHARACTERS, ge=1)
    """Maximum characters of the recall query: the last ones of task and recent blocks."""
    evidence_tokens: int = Field(default=8_192, ge=1)
    """Maximum tokens of restored raw evidence (PaMER+)."""
    inject: Literal["front", "append"] = "front"
    """Where recalled memory goes. `front`: between prefix and blocks, chosen again for every request, as in the paper. `append`: after the
    newest block, where it stays until the next compression, each memory or step once; so a prompt cache can serve what was sent before."""
    compression: bool = True
    """False: nothing is ever compressed, and the probe is not asked."""
    recall: bool = True
    """False: nothing is recalled."""
    race_attempts: int = Field(default=3, ge=1)
    """Number of attempts at a decision when other processes keep storing a memory of the session first."""

    @model_validator(mode="after")
    def _vote_is_possible(self) -> "ControllerSettings":
        if self.vote > self.heads:
            raise ValueError(
                f"a vote of {self.vote} needs at least as many heads, but there are {self.heads}: lower the vote, or train more heads"
            )
        return self
