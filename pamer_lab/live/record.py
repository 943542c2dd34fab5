"""The record of a live session: frames in an append-only file, and the session state built from them.

After a restart the proxy continues from these frames; pages and commands read them while it runs. A frame has messages, decisions, sizes,
times and the provider's usage, but no headers and no keys. Invariant: frames are only added; histories are rebuilt from them.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct, structs

from pamer_lab.live.usage import Billing
from pamer_lab.live.wire import Api
from pamer_lab.runs.timeline import REWRITTEN
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Tool, Trace, Usage

Sent = Literal["original", "edited", "kept"]
"""`original`: the client's own bytes. `edited`: the view that the policy decided on. `kept`: the view of the previous request plus
newer messages."""
How = Literal["header", "body", "lineage", "first message", "unread"]
"""How a request's session was found: by a header, by an id in the body, by the history that it continues, or opened for a new first
message; `unread`: the body could not be read, so the request belongs to no session."""


class Opened(Struct, frozen=True, omit_defaults=True, tag="opened"):
    """A session was opened."""

    session: str
    scope: str
    """Hash of upstream, API and credential."""
    named: str
    """Hash of the client's session id; empty if it gave none."""
    how: How
    api: Api
    client: str
    upstream: str
    profile: str
    policy: str
    tokenizer: str
    tokens_kind: str
    at: float
    trace_id: str
    preamble: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    parent: str = ""
    """The session from whose history this one branched off."""
    settings: dict[str, Any] = {}
    """The policy's settings."""
    heads: dict[str, str] = {}
    rewritten: bool = False
    """The client sent a different history than before: less than half of it is the same."""


class Asked(Struct, frozen=True, omit_defaults=True, tag="asked"):
    """A request came, and this was sent."""

    n: int
    """Identifies the request within its session."""
    at: float
    t: int
    """Blocks of the client's history: the decision point."""
    kept: int
    """Units kept from the previous history; `units` follow them."""
    digests: tuple[str, ...] = ()
    units: tuple[tuple[Message, ...], ...] = ()
    turns: tuple[Turn, ...] = ()
    """Decisions added by this request; the last one is on the request itself."""
    sent: Sent = "original"
    edit: bool = False
    """What was sent does not begin with what was sent for the previous request."""
    reason: str = ""
    fallback: str = ""
    """Why the policy's decision was not used; empty if nothing failed."""
    model: str = ""
    client_bytes: int = 0
    sent_bytes: int = 0
    ms: dict[str, float] = {}
    """Milliseconds of each stage before the request went out."""
    again: bool = False
    """The request repeats the previous one."""
    path: str = ""
    shown: Turn | None = None
    """What the model was shown if `turns` does not say: the request was sent unchanged, or the previous one was under another policy."""


class Answered(Struct, frozen=True, omit_defaults=True, tag="answered"):
    """The answer to a request, or the error that replaced it."""

    n: int
    at: float
    status: int
    message: Message | None = None
    usage: Billing | None = None
    """None: the provider did not say."""
    ms: dict[str, float] = {}
    """`first_byte` and `total`, from the moment the request went out."""
    error: str = ""
    refused: int = 0
    """HTTP status with which an edited request was refused before the original was sent; 0 if none was."""
    response_id: str = ""


class Side(Struct, frozen=True, omit_defaults=True, tag="side"):
    """A call outside the conversation, such as counting tokens."""

    at: float
    path: str
    status: int = 0


class Changed(Struct, frozen=True, omit_defaults=True, tag="changed"):
    """The session was paused, resumed or given another policy, or editing was stopped because the server refused an edit."""

    at: float
    policy: str = ""
    paused: bool = False
    stopped: str = ""
    """Why editing was stopped."""
    settings: dict[str, Any] = {}
    heads: dict[str, str] = {}
    by_hand: bool = False
    """The user chose the policy for this session; otherwise it is the proxy's."""


Frame = Opened | Asked | Answered | Side | Changed


@dataclass
class Record:
    """A session, built from its frames."""

    opened: Opened
    policy: str = ""
    part: int = 0
    """How often the policy was changed; each policy has its own run."""
    settings: dict[str, Any] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    by_hand: bool = False
    paused: bool = False
    stopped: str = ""
    digests: list[str] = field(default_factory=list)
    units: list[tuple[Message, ...]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    """Decisions of the current policy, from the first turn on."""
    seen: dict[int, Turn] = field(default_factory=dict)
    """What the model was shown for each request, whichever policy was in force."""
    raw_tokens: dict[int, int] = field(default_factory=dict)
    """Tokens of the client's history at each turn."""
    asked: list[Asked] = field(default_factory=list)
    under: dict[int, str] = field(default_factory=dict)
    """The policy in force at each request."""
    policies: list[str] = field(default_factory=list)
    """All policies of the session, in order; the last one is in force."""
    answers: dict[int, Answered] = field(default_factory=dict)
    sides: list[Side] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)

    ends: dict[int, int] = field(default_factory=dict)
    """Length of the history at each request, in units."""

    def __post_init__(self) -> None:
        self.policy, self.settings, self.heads = self.opened.policy, self.opened.settings, self.opened.heads
        self.policies = [self.policy]

    def add(self, frame: Frame) -> None:
        """Apply one more frame."""
        match frame:
            case Asked():
                del self.digests[frame.kept :]
                del self.units[frame.kept :]
                self.digests += frame.digests
                self.units += frame.units
                self.ends[frame.n] = len(self.units)
                if frame.turns:
                    del self.turns[frame.turns[0].t :]
                self.turns += frame.turns
                seen = frame.shown or (frame.turns[-1] if frame.turns else self.last_seen if frame.again else None)
                if seen is not None:
                    self.seen[frame.n] = seen
                    self.raw_tokens |= {turn.t: turn.raw_tokens for turn in (*frame.turns, seen)}
                self.under[frame.n] = self.policy
                self.asked.append(structs.replace(frame, turns=(), units=(), digests=(), shown=None))
            case Answered():
                self.answers[frame.n] = frame
            case Side():
                self.sides.append(frame)
            case Changed():
                self.changes.append(frame)
                self.paused, self.stopped = frame.paused, frame.stopped or self.stopped
                if frame.policy and frame.policy != self.policy:
                    self.policy, self.settings, self.heads = frame.policy, frame.settings, frame.heads
                    self.policies.append(frame.policy)
                    self.part, self.turns, self.stopped, self.by_hand = self.part + 1, [], "", frame.by_hand
            case Opened():
                self.opened = frame

    @property
    def session(self) -> str:
        return self.opened.session

    @property
    def trace_id(self) -> str:
        return self.opened.trace_id

    @property
    def run_id(self) -> str:
        return f"r-{self.opened.trace_id}" + (f"-{self.part + 1}" if self.part else "")

    @property
    def history(self) -> tuple[Message, ...]:
        """The client's messages as it last sent them."""
        return (*self.opened.preamble, *(message for unit in self.units for message in unit))

    def up_to(self, answer: Answered) -> tuple[list[str], list[tuple[Message, ...]]]:
        """The history up to and including an answer: digests and units."""
        end = self.ends[answer.n]
        said = [(answer.message,)] if answer.message else []
        return [*self.digests[:end], *(answer.response_id for _ in said)], [*self.units[:end], *said]

    @property
    def last_seen(self) -> Turn | None:
        """What the model was shown for the newest request; None if unknown."""
        return self.seen.get(self.asked[-1].n) if self.asked else None

    @property
    def last(self) -> float:
        """Time of the last request or answer."""
        return max([self.opened.at, *(asked.at for asked in self.asked[-1:]), *(answer.at for answer in self.answers.values())])

    @property
    def _rewritten(self) -> dict[str, int]:
        return {REWRITTEN: self.asked[0].t} if self.opened.rewritten and self.asked else {}

    @property
    def trace(self) -> Trace | None:
        """The session as a trace: what the client sent plus the newest answer; None if there is no message yet."""
        usages: dict[int, Usage] = {}
        for asked in self.asked:
            answer = self.answers.get(asked.n)
            if answer and answer.usage:
                usages[asked.t] = answer.usage.as_usage()
        messages: list[Message] = []
        turn = 0
        newest = self.asked[-1] if self.asked else None
        answer = self.answers.get(newest.n) if newest else None
        last = [answer.message] if answer and answer.message else []
        for message in (*self.history, *last):
            if message.role == "assistant":
                message, turn = structs.replace(message, usage=usages.get(turn)), turn + 1
            messages.append(message)
        if not messages:
            return None
        first = next((message.content for message in messages if message.role == "user"), "")
        return Trace(
            self.trace_id,
            f"live {self.session}",
            "live",
            tuple(messages),
            self.opened.tools,
            model=newest.model if newest else "",
            meta={"client": self.opened.client, "api": self.opened.api, "policy": self.policy, "task": first[:200]} | self._rewritten,
        )
