"""What a trace is made of: pure, frozen values, shaped like OpenAI chat messages.

Knows nothing of files, formats or storage. Invariant: a `Trace` has at least one
message; `messages` are in the order they were sent; text is what the source wrote, never trimmed.
"""

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, structs

if TYPE_CHECKING:
    import polars as pl

GENERIC, EVENTS = "generic", "event-log"
"""The formats of files that no reader knows: the longest list of messages, and events by their type names."""

Role = Literal["system", "user", "assistant", "tool"]
"""`system` and `user` speak to the model, `assistant` is the model, `tool` answers its calls."""

Target = Literal["compression", "recall"]
"""`compression`: older history should be condensed. `recall`: earlier evidence is needed again."""

EventKind = Literal["compaction", "memory_write", "memory_read", "context_edit", "subagent", "note"]
"""`compaction`: the source replaced history by a summary. `memory_write` and `memory_read`: the agent
wrote or queried its own memory. `context_edit`: history was trimmed without a summary. `subagent`: a side
agent ran here. `note`: anything else the source recorded that is not a message."""


WarningKind = Literal["changed", "empty", "unread", "tried", "guess"]
"""`changed`: kept in a form other than the source's. `empty`: a message, result or call that came out without content.
`unread`: in the file and not in the trace. `tried`: other readers claimed the file first and gave up. `guess`: the messages were
found by a search."""

Confidence = Literal["recognised", "second choice", "guessed"]
"""How sure the format of a trace is. `recognised`: the first reader that knows the file found what it needs. `second choice`: so did a
later one, after another gave up. `guessed`: no reader knows the file, or a search found its messages; the longest list of them or its
events were read."""


class ToolCall(Struct, frozen=True, omit_defaults=True, gc=False):
    """One call of an assistant message."""

    id: str
    name: str
    arguments: str = "{}"
    """JSON text as the model wrote it; text that is not JSON is kept as it is."""


class Image(Struct, frozen=True, omit_defaults=True, gc=False):
    """An image of the source; only its size is kept, with a placeholder in the text."""

    media_type: str
    bytes: int
    """Size of the decoded image; 0 where the source names an image without its data."""


class Usage(Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens as the source recorded them (never our own count)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of `input_tokens` that the provider served from its prefix cache."""
    cost_usd: float | None = None


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of the conversation."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    """For `tool` messages: the call that this one answers."""
    name: str = ""
    """For `tool` messages the tool's name; else a speaker's name where the source has one."""
    thinking: str = ""
    """Reasoning text kept apart: it is not part of the context and is not counted."""
    images: tuple[Image, ...] = ()
    usage: Usage | None = None
    """For assistant messages: the recorded usage of the call that produced it."""
    error: bool = False
    """For `tool` messages: the source marked this result as an error."""
    at: float | None = None
    """When the source recorded it, in seconds since 1970 (UTC); None where it does not say."""
    result: bool = False
    """For `user` messages: the source has this as a tool result, but no open call that it answers, so it cannot be a `tool` message."""


class Tool(Struct, frozen=True, omit_defaults=True):
    """A tool description as it was sent to the model."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class Label(Struct, frozen=True, omit_defaults=True, gc=False):
    """A memory need at one decision point."""

    t: int
    """The decision point: the state just before assistant message number `t` (0-based)."""
    target: Target
    value: bool = True
    origin: str = "native"
    """Where the label comes from: `native`, `side-file`, `memory-operation`, `generator`, `hindsight` or a model's name."""
    steps: tuple[int, ...] = ()
    """For recall: the block numbers whose evidence is needed, where they are known."""


class Event(Struct, frozen=True, omit_defaults=True):
    """Something the source recorded about its own context, outside the messages."""

    kind: EventKind
    before_message: int
    """Index into `messages`: the event happened just before this message was added."""
    text: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    replaced: tuple[tuple[int, int], ...] = ()
    """Ranges [start, end) of messages that the agent no longer had from here on; empty where the source does not say which."""
    summary: int | None = None
    """Index of the message that replaced them, if one did; otherwise `text` did, if there is any."""

    def shifted(self, index: int) -> "Event":
        """The event after a message was inserted at `index`: indices from there on grow by one."""

        def place(number: int) -> int:
            return number + (number >= index)

        return structs.replace(
            self,
            before_message=place(self.before_message),
            replaced=tuple((place(start), place(end)) for start, end in self.replaced),
            summary=None if self.summary is None else place(self.summary),
        )


class Warning(Struct, frozen=True, omit_defaults=True, gc=False):
    """Something in the source that could not be represented exactly."""

    where: str
    """A place in the source file, such as `line 12` or `messages[3].content[0]`."""
    text: str
    kind: WarningKind = "changed"


class Source(Struct, frozen=True, omit_defaults=True):
    """Where a trace came from."""

    path: str
    index: int = 0
    """Number of the trace within its file, 0-based."""
    sha256: str = ""
    """Of the decompressed bytes of the file."""


class Trace(Struct, frozen=True, omit_defaults=True):
    """One recorded agent trajectory."""

    trace_id: str
    question_id: str
    """The grouping unit of studies: replicas of one question share it."""
    format: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    labels: tuple[Label, ...] = ()
    events: tuple[Event, ...] = ()
    task_id: str = ""
    model: str = ""
    reward: float | None = None
    usage: Usage | None = None
    """Recorded usage of the complete run, if the source has it."""
    warnings: tuple[Warning, ...] = ()
    source: Source | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    """Small facts the source knows and no field above holds (agent, cwd, answer, exit status...)."""

    @property
    def confidence(self) -> Confidence:
        """How sure the format is."""
        kinds = {warning.kind for warning in self.warnings}
        if self.format in (GENERIC, EVENTS) or "guess" in kinds:
            return "guessed"
        return "second choice" if "tried" in kinds else "recognised"

    @property
    def turns(self) -> int:
        """Number of assistant messages, which is also the number of decision points."""
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def results(self) -> int:
        """Number of tool results, including those that answer no recorded call."""
        return sum(message.role == "tool" or message.result for message in self.messages)

    def frame(self) -> "pl.DataFrame":
        """The messages as a frame, one row each; the columns are in `docs/python.md`.

        `block` is the number of the turn that the row belongs to; null before the first one. Token columns are what the source
        recorded, null where it did not: a trace itself counts nothing.
        """
        import polars as pl

        schema: dict[str, Any] = {
            **dict.fromkeys(("message", "block"), pl.Int64),
            **dict.fromkeys(("role", "name", "content", "thinking"), pl.String),
            **dict.fromkeys(("calls", "arguments"), pl.List(pl.String)),
            "tool_call_id": pl.String,
            "error": pl.Boolean,
            **dict.fromkeys(("images", "input_tokens", "output_tokens"), pl.Int64),
        }
        turns_so_far = accumulate(message.role == "assistant" for message in self.messages)
        rows = [
            {
                "message": number,
                "block": turns - 1 if turns else None,
                "role": message.role,
                "name": message.name,
                "content": message.content,
                "thinking": message.thinking,
                "calls": [call.name for call in message.tool_calls],
                "arguments": [call.arguments for call in message.tool_calls],
                "tool_call_id": message.tool_call_id,
                "error": message.error,
                "images": len(message.images),
                "input_tokens": message.usage.input_tokens if message.usage else None,
                "output_tokens": message.usage.output_tokens if message.usage else None,
            }
            for number, (message, turns) in enumerate(zip(self.messages, turns_so_far, strict=True))
        ]
        return pl.DataFrame(rows, schema=schema)
