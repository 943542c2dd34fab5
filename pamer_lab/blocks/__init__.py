"""A trace -> prefix, blocks, identities, tool-protocol check and token counts."""

from pamer_lab.blocks.cut import Block, Cut, Split, canonical, content_hash, cut, identities, is_complete, recent_start, split
from pamer_lab.blocks.protocol import Violation, check, violations
from pamer_lab.blocks.tokens import EstimatedCounter, MessageTokens, TokenCounter, block_sizes, context_before

__all__ = [
    "Block",
    "Cut",
    "EstimatedCounter",
    "MessageTokens",
    "Split",
    "TokenCounter",
    "Violation",
    "block_sizes",
    "canonical",
    "check",
    "content_hash",
    "context_before",
    "cut",
    "identities",
    "is_complete",
    "recent_start",
    "split",
    "violations",
]
