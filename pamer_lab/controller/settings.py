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
    """Newest complete blocks that are never compressed. 0: only the prefix stays."""
    vote: int = Field(default=3, ge=1)
    """Heads that must say yes."""
    heads: int = Field(default=5, ge=1)
    """Heads that are asked; a probe with another number is a probe error."""
    minimum_candidate_tokens: int = Field(default=1024, ge=0)
    """Tokens the older blocks must have before the probe is asked. 0: it is asked whenever there is an older block."""
    summary_source_characters: int = Field(default=40_000, ge=1)
    """Characters of the blocks a summary is made from; over it each message keeps its beginning and end."""
    summary_tokens: int = Field(default=1_024, ge=1)
    """Most tokens of a summary."""
    summary_retries: int = Field(default=3, ge=0)
    """How often a summary that did not fit its limit, or whose prompt did not fit the model, is asked for again from half the source.
    0: never."""
    detail_tokens: int = Field(default=128, ge=1)
    """Most tokens of one step's detail, its JSON included, where a language model writes them (PaMER+)."""
    details_per_call: int = Field(default=8, ge=1)
    """Steps whose details are asked for in one call (PaMER+)."""
    failures_before_shorter: int = Field(default=2, ge=1)
    """Failed compressions after which a session compresses a shorter range: the oldest half of the candidate's blocks, halved again
    with each further failure down to one block, then all of them again. A compression that succeeds takes one failure back."""
    top_k: int = Field(default=3, ge=1)
    """Summaries recalled at most."""
    query_characters: int = Field(default=QUERY_CHARACTERS, ge=1)
    """Characters of the recall query: the last ones of task and recent blocks."""
    evidence_tokens: int = Field(default=8_192, ge=1)
    """Most tokens of restored raw evidence (PaMER+)."""
    inject: Literal["front", "append"] = "front"
    """Where recalled memory goes. `front`: between prefix and blocks, chosen again for every request, as in the paper. `append`: after the
    newest block, where it stays until the next compression, each memory or step once; so a prompt cache can serve what was sent before."""
    compression: bool = True
    """False: nothing is ever compressed, and the probe is not asked."""
    recall: bool = True
    """False: nothing is recalled."""
    race_attempts: int = Field(default=3, ge=1)
    """How often a decision is retried after another process stored a memory of the session first."""

    @model_validator(mode="after")
    def _vote_is_possible(self) -> "ControllerSettings":
        if self.vote > self.heads:
            raise ValueError(
                f"a vote of {self.vote} needs at least as many heads, but there are {self.heads}: lower the vote, or train more heads"
            )
        return self
