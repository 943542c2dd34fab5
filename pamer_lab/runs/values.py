"""What a replay leaves behind: turns and runs, as pure values.

Invariant: `Turn.items` sum to `active_tokens`; `states` has one letter per earlier block; nothing in a turn but
`seconds` changes when the same trace is replayed again with the same settings.
"""

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from pamer_lab.decisions import Decision

if TYPE_CHECKING:
    import polars as pl

Status = Literal["running", "done", "cancelled", "failed"]
"""`running`: turns are being added, or the process was killed (replaying again continues it). `done`: every turn is
stored. `cancelled`: stopped on request. `failed`: stopped by an error, which the run carries."""

STATUS_WORDS: dict[str, str] = {"running": "unfinished", "done": "done", "cancelled": "stopped", "failed": "failed"}
"""A run's status as people read it; whatever ended a run early on request is `stopped`."""

FIXED_ACTIONS = (
    "Actions are fixed: replay measures contexts, decisions and tokens of a recorded trajectory. "
    "It cannot measure task reward or re-exploration, and token changes may differ in sign from live runs."
)
"""Shown with every table and chart of replay results."""


class Turn(Decision, frozen=True, omit_defaults=True, kw_only=True):
    """One decision point under one policy: the decision, and what replay measures of it."""

    t: int
    raw_tokens: int
    """Tokens of the request as it came."""
    active_tokens: int
    """Tokens of the request the model would get."""
    output_tokens: int
    """Tokens of the recorded assistant message."""
    cached_tokens: int
    """Part of `active_tokens` that is a common prefix with the previous request."""
    states: str
    """One letter per earlier block (`decisions.LETTERS`)."""
    seconds: float = 0.0


class RunInfo(Struct, frozen=True, omit_defaults=True):
    """What a run is, without its turns."""

    run_id: str
    trace_id: str
    question_id: str
    task_id: str
    policy: str
    profile: str
    settings: dict[str, Any]
    """Every setting that changes a decision."""
    tokenizer: str
    tokens_kind: str
    turns: int
    """Turns the run has when it is done."""
    trace_turns: int
    """Turns the trace has; more than `turns` where a limit was set."""
    prefix_tokens: int
    tools_tokens: int
    block_tokens: tuple[int, ...]
    incomplete: tuple[int, ...] = ()
    """Blocks with an unanswered call: never compressed."""
    status: Status = "running"
    started: str = ""
    finished: str = ""
    totals: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    demo: bool = False
    heads: dict[str, str] = field(default_factory=dict)
    """Name, hash, model, layer and hint of the heads that voted; empty if none did."""
    times: tuple[float, ...] = ()
    """When each request was sent, in seconds, by the trace's timestamps; empty if it has none."""
    estimated: float = 0.0
    """Seconds the run was expected to take when it started, with its models loaded; for a continued run, what it had taken plus the rest.
    A guess is corrected by the pace of the run's own first turns."""
    taken: float = 0.0
    """Seconds it took, without loading models."""
    read: int = 0
    """Number of first turns whose states were read before the run was stopped."""


class Run(Struct, frozen=True):
    """A run with its turns."""

    head: RunInfo
    """What was replayed and how, with the totals."""
    turns: tuple[Turn, ...]
    """One per decision point, in order."""

    def turns_frame(self) -> "pl.DataFrame":
        """The turns as a frame, one row each, columns named after the fields of `Turn` with the run's id, trace and policy first.

        Frames of several runs can be concatenated.
        """
        import polars as pl

        schema: dict[str, Any] = {
            "t": pl.Int64,
            **dict.fromkeys(("action", "reason"), pl.String),
            **dict.fromkeys(("raw_tokens", "active_tokens", "candidate_tokens", "output_tokens", "cached_tokens"), pl.Int64),
            "states": pl.String,
            **dict.fromkeys(("logits", "thresholds"), pl.List(pl.Float64)),
            "votes": pl.List(pl.Boolean),
            "memory_ids": pl.List(pl.String),
            "restored_steps": pl.List(pl.Int64),
            "error": pl.String,
            "seconds": pl.Float64,
        }
        rows = [{name: getattr(turn, name) for name in schema} for turn in self.turns]
        named = [pl.lit(getattr(self.head, name), pl.String).alias(name) for name in ("run_id", "trace_id", "policy")]
        return pl.DataFrame(rows, schema=schema).select(*named, pl.all())

    @property
    def run_id(self) -> str:
        return self.head.run_id

    @property
    def totals(self) -> dict[str, Any]:
        return self.head.totals
