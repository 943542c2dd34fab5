"""Tokens of the message that carries recalled memory, each entry counted once.

The same summaries are recalled again and again in changing company, so their tokens are remembered entry by entry. Most
tokenizers split a text at line ends before they do anything else, and every piece ends with its line, so the pieces'
counts add up to the message's (`tests/controller/test_injection.py` compares). With a counter that does not add up by
line, the complete message is counted.
"""

from collections import OrderedDict
from collections.abc import Sequence

from pamer_lab.blocks import MessageTokens
from pamer_lab.controller.injection import Entry, message, pieces
from pamer_lab.controller.request import read_message

KEPT = 4_096
"""Entries whose count is remembered."""


class InjectionTokens:
    """Counts injected messages."""

    def __init__(self, tokens: MessageTokens) -> None:
        self._tokens = tokens
        self._known: OrderedDict[str, int] = OrderedDict()

    def count(self, entries: Sequence[Entry], kind: str) -> int:
        """Tokens of `message(entries, kind)` as it is rendered."""
        if not getattr(self._tokens.counter, "adds_up_by_line", False):
            return self._tokens.counts([read_message(message(entries, kind), "recalled memory")])[0]
        parts = pieces(entries, kind)
        parts[0] = f"<|im_start|>user\n{parts[0]}"
        parts[-1] = f"{parts[-1]}<|im_end|>\n"
        missing = [part for part in dict.fromkeys(parts) if part not in self._known]
        self._known.update(zip(missing, self._tokens.counter.count(missing), strict=True))
        total = sum(self._known[part] for part in parts)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return total
