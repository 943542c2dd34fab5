"""Token counts per message -> tokens per block, and the context before each decision point.

Invariant: the prefix, the tool descriptions and all blocks sum to the trace's tokens.
"""

from collections.abc import Sequence

from pamer_lab.blocks.cut import Cut


def block_sizes(pieces: Cut, message_tokens: Sequence[int]) -> list[int]:
    """Tokens of each block."""
    return [sum(message_tokens[block.start : block.end]) for block in pieces.blocks]


def context_before(pieces: Cut, message_tokens: Sequence[int], tools: int = 0) -> list[int]:
    """Tokens of the complete recorded history, including tool descriptions, just before each assistant message."""
    context = tools + sum(message_tokens[: pieces.prefix_end])
    before: list[int] = []
    for size in block_sizes(pieces, message_tokens):
        before.append(context)
        context += size
    return before
