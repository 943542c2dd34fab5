"""What the source recorded about its own context, placed on our turns: its size, compactions, edits, memory operations.

Shown next to a policy's decisions and our own counts, never mixed into them: the source counts with its own tokenizer, and it counts
what its file may not have, such as the system prompt.
"""

from bisect import bisect_left
from typing import Any

from pamer_lab.blocks import cut
from pamer_lab.trajectory.values import Trace

EDITS = ("compaction", "context_edit")
"""Events with which a source changes its own context."""


def recorded_events(trace: Trace) -> list[dict[str, Any]]:
    """Each event with the first decision point after it; `t` equals the number of turns if there is none."""
    starts = [block.start for block in cut(trace.messages).blocks]
    return [
        {
            "t": bisect_left(starts, event.before_message),
            "kind": event.kind,
            "text": event.text,
            "tokens_before": event.tokens_before,
            "tokens_after": event.tokens_after,
            "tokens_kind": "recorded",
            "data": event.data,
        }
        for event in trace.events
    ]


def recorded_context(trace: Trace) -> list[int | None]:
    """Input tokens, cached ones included, that the source recorded for each turn's request; None if it recorded none."""
    said = [trace.messages[block.start].usage for block in cut(trace.messages).blocks]
    return [usage.input_tokens or None if usage is not None else None for usage in said]


def compactions(trace: Trace) -> list[dict[str, Any]]:
    """Turns before which the source changed its own context, with its size before and after.

    Sizes are the event's own; if it has none, those of the requests around it (`"sizes": "usage"`).
    """
    sizes = recorded_context(trace)
    found = []
    for event in recorded_events(trace):
        if event["kind"] not in EDITS:
            continue
        t, before, after = event["t"], event["tokens_before"], event["tokens_after"]
        own = before is not None and after is not None
        around = (next((size for size in reversed(sizes[:t]) if size), None), next((size for size in sizes[t:] if size), None))
        before, after = (said if said is not None else near for said, near in zip((before, after), around, strict=True))
        found.append({"t": t, "kind": event["kind"], "tokens_before": before, "tokens_after": after, "sizes": "event" if own else "usage"})
    return found


def not_in_file(trace: Trace) -> list[str]:
    """Parts of the agent's requests that the file does not have, so that no count of ours includes them."""
    pieces = cut(trace.messages)
    missing = []
    if not any(message.role == "system" for message in trace.messages[: pieces.prefix_end]):
        missing.append("system prompt")
    if not trace.tools and any(message.tool_calls for message in trace.messages):
        missing.append("tool descriptions")
    return missing
