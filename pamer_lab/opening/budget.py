"""Limits how far one source may expand: bytes of text and messages, counted as they are created.

A reader that repeats parts of its source (attachments, dictionaries, shared prefixes) asks before it repeats them.
"""

from pamer_lab.errors import InputError

MOST_EXPANSION = 8
"""Bytes of text that one byte of a source may become."""
FREE_BYTES = 50_000_000
"""Bytes that any source may become in addition, whatever its size."""
MOST_MESSAGES = 1_000_000


class Budget:
    """How far one source may still expand; `take` raises `InputError` when it is used up."""

    def __init__(self, size: int, *, messages: int = MOST_MESSAGES) -> None:
        self.most = FREE_BYTES + MOST_EXPANSION * size
        self._bytes, self._messages = self.most, messages
        self._most_messages = messages

    @property
    def left(self) -> int:
        """Bytes that may still be created."""
        return self._bytes

    def take(self, size: int, messages: int = 0) -> None:
        """Count what is about to be created."""
        self._bytes -= size
        self._messages -= messages
        if self._bytes < 0:
            raise InputError(f"would expand to more than {self.most / 1e6:,.0f} MB of text; it repeats the same parts too often")
        if self._messages < 0:
            raise InputError(f"has more than {self._most_messages:,} messages; split it")
