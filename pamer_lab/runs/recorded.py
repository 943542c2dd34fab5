"""What the source recorded about its own context, placed on our turns: compactions, edits, memory operations.

Shown next to a policy's decisions, never mixed into them.
"""

from bisect import bisect_left
from typing import Any

from pamer_lab.blocks import cut
from pamer_lab.trajectory.values import Trace


def recorded_events(trace: Trace) -> list[dict[str, Any]]:
    """Each event with the first decision point that stands after it; `t` equals the number of turns when none does."""
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


def compacted_turns(trace: Trace) -> list[int]:
    """Turns before which the source changed its own context."""
    return [event["t"] for event in recorded_events(trace) if event["kind"] in ("compaction", "context_edit")]
