"""Small traces with sizes one can add up in one's head, and a planted piece of evidence."""

import re
from collections.abc import Sequence

from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.tokens import CountKind
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.values import Resources
from pamer_lab.trajectory.values import Label, Message, Tool, ToolCall, Trace


class SaidSizes:
    """Counts a message as many tokens as it says: `size=30`."""

    name = "said"
    kind: CountKind = "measured"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [sum(int(number) for number in re.findall(r"size=(\d+)", text)) for text in texts]


def resources(*, embed: bool = True) -> Resources:
    return Resources(Counts(MessageTokens(SaidSizes())), HashingEmbedder().embed if embed else None)


def trace(texts: Sequence[str], *, name: str = "t-1", prefix: str = "task size=10", labels: Sequence[Label] = ()) -> Trace:
    """A call and a result per text; the last assistant message answers."""
    messages = [Message("user", prefix)]
    for number, text in enumerate(texts):
        messages.append(Message("assistant", "", (ToolCall(f"c{number}", "look", "{}"),)))
        messages.append(Message("tool", text, tool_call_id=f"c{number}", name="look"))
    messages.append(Message("assistant", "the answer"))
    return Trace(name, name, "native", tuple(messages), (Tool("look", "tools size=5"),), tuple(labels))


def sized(*sizes: int) -> Trace:
    """Blocks of these sizes."""
    return trace([f"block {number} size={size}" for number, size in enumerate(sizes)])


NEEDLE = "The curator Ottoline Marchbanks moved the Halvorsen ledger to shelf K-4471 in Trondheim."
ASKS = "Who moved the Halvorsen ledger, curator Ottoline Marchbanks or somebody else? See shelf K-4471 in Trondheim."
FILLER = (
    "A weather report lists rain over the northern hills and a slow wind from the sea.",
    "The recipe wants flour, butter, two eggs and an hour in a warm oven.",
    "Trains leave every twenty minutes except on Sundays and public holidays.",
    "The orchestra rehearsed a symphony twice before the doors were opened.",
    "Paint dries faster on a clean wall when the windows stay open.",
    "Bees visit clover first and lavender later in the afternoon sun.",
    "A bicycle needs air in its tyres, oil on its chain and a working bell.",
)
PLANTED = 1
"""Block that holds the evidence."""


def planted() -> Trace:
    """Block 1 of eight holds what the last block asks about; six unrelated blocks lie between."""
    texts = [FILLER[0], NEEDLE, *FILLER[1:6], ASKS]
    return trace(texts, name="t-planted", prefix="Answer questions about many unrelated things.")
