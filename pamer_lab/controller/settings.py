"""Every setting of the controller in one model, with the paper's values (Appendix C.5) as defaults."""

from pydantic import Field, model_validator

from pamer_lab.config import Settings
from pamer_lab.models.profiles import Profile


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
    probe_input_tokens: int = Field(default=35_000, ge=0)
    """Most tokens of the probe's input. 0: the frozen model's window."""
    prefix_kept_tokens: int = Field(default=2_048, ge=0)
    """Tokens kept from the beginning when the probe's input is over its limit."""
    output_reserve_tokens: int = Field(default=16_384, ge=0)
    """Tokens added to the context hint for the coming output."""
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
    summary_timeout_seconds: float = Field(default=100.0, gt=0)
    """Of one attempt."""
    summary_attempts: int = Field(default=8, ge=1)
    embedding_timeout_seconds: float = Field(default=30.0, gt=0)
    """Of one attempt."""
    embedding_attempts: int = Field(default=8, ge=1)
    top_k: int = Field(default=3, ge=1)
    """Summaries recalled at most."""
    query_characters: int = Field(default=30_000, ge=1)
    """Characters of the recall query: the last ones of task and recent blocks."""
    evidence_tokens: int = Field(default=8_192, ge=1)
    """Most tokens of restored raw evidence (PaMER+)."""
    compression: bool = True
    """False: nothing is ever compressed, and the probe is not asked."""
    recall: bool = True
    """False: nothing is recalled."""
    race_attempts: int = Field(default=3, ge=1)
    """How often a request is decided anew after another process stored a memory of its session first."""

    @model_validator(mode="after")
    def _vote_is_possible(self) -> "ControllerSettings":
        if self.vote > self.heads:
            raise ValueError(f"vote {self.vote} of {self.heads} heads can never be reached")
        return self

    @classmethod
    def of_profile(cls, profile: Profile) -> "ControllerSettings":
        """The defaults, with the limits the profile names."""
        return cls(
            probe_input_tokens=profile.probe_limit,
            prefix_kept_tokens=profile.prefix_kept,
            output_reserve_tokens=profile.output_reserve,
            summary_timeout_seconds=profile.chat.timeout_seconds,
            summary_attempts=profile.chat.attempts,
            embedding_timeout_seconds=profile.embedding.timeout_seconds,
            embedding_attempts=profile.embedding.attempts,
        )
