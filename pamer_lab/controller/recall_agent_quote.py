"""The recall agent without a model: quotes the chosen blocks within a token budget.

Complete blocks first, smallest first, as many as fit; what is left of the budget is shared by the others, each with its beginning and
end and a mark that says how much is missing: those are restored in part. Deterministic.
"""

from collections.abc import Sequence

from pamer_lab.blocks import TokenCounter
from pamer_lab.controller.recall_agent import Citation, Packet
from pamer_lab.controller.selection import Evidence
from pamer_lab.memory.summary import block_text, clip

LEAST_TOKENS = 40
"""Under so many tokens a clipped block says nothing, and is left out."""


class QuotingAgent:
    """Quotes, and rewords nothing."""

    def __init__(self, counter: TokenCounter, *, max_tokens: int) -> None:
        self._counter = counter
        self._max_tokens = max_tokens
        self.name = f"quote {max_tokens} {counter.name}"

    def recall(self, task: str, goal: str, blocks: Sequence[Evidence]) -> Packet:
        texts = {block.covered.step: block_text(block.messages) for block in blocks}
        sizes = dict(zip(texts, self._counter.count(list(texts.values())), strict=True))
        left = self._max_tokens
        quoted: dict[int, str] = {}
        for step in sorted(texts, key=lambda step: (sizes[step], step)):
            if sizes[step] <= left:
                quoted[step] = texts[step]
                left -= sizes[step]
        rest = [step for step in texts if step not in quoted]
        for place, step in enumerate(rest):
            text = self._clipped(texts[step], sizes[step], left // (len(rest) - place))
            if text:
                quoted[step] = text
                left -= self._counter.count([text])[0]
        return Packet(tuple(Citation(step, quoted[step]) for step in sorted(quoted) if quoted[step].strip()))

    def _clipped(self, text: str, size: int, budget: int) -> str:
        """Beginning and end of a block within the budget; empty where the budget is too small to say anything."""
        characters = len(text) * budget // max(size, 1)
        while budget >= LEAST_TOKENS and characters > LEAST_TOKENS:
            shorter = clip(text, characters)
            if self._counter.count([shorter])[0] <= budget:
                return shorter
            characters = characters * 9 // 10
        return ""
