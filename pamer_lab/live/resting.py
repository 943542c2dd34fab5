"""Sessions that a proxy has removed from memory: the index by which it recognizes a request that continues one of them.

Their histories are in their files. A session with a client id is found by that id, others by a hash of their complete history, so that a
thousand sessions with the same first message are not all read again for each new request.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from pamer_lab.live.record import Record
from pamer_lab.live.whose import Who
from pamer_lab.live.wire import Wire

Line = tuple[int, bytes]
"""Number of units of a history, and a hash of them."""


@dataclass
class Resting:
    """The sessions of one proxy that are not in memory."""

    places: dict[str, int] = field(default_factory=dict)
    """Where each session's file ends, by name."""
    _named: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _lines: dict[tuple[str, Line], str] = field(default_factory=dict)
    _responses: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, record: Record, place: int) -> None:
        """Add a session that is removed from memory."""
        name, opened = record.session, record.opened
        self.places[name] = place
        if opened.named:
            self._named.setdefault((opened.scope, opened.named), set()).add(name)
            return
        if record.digests:
            self._lines[opened.scope, _lines(record.digests)[-1]] = name
        for answer in record.answers.values():
            if answer.response_id:
                self._responses[opened.scope, answer.response_id] = name

    def wanted(self, who: Who, wire: Wire) -> list[str]:
        """The sessions that a request may belong to."""
        if not self.places:
            return []
        found = self._named.get((who.scope, who.named), ()) if who.named else self._of(who.scope, wire)
        return [name for name in found if name in self.places]

    def _of(self, scope: str, wire: Wire) -> Iterable[str]:
        if name := self._responses.get((scope, str(wire.fields.get("previous_response_id")))):
            yield name
        for line in _lines(wire.digests):
            if name := self._lines.get((scope, line)):
                yield name


def _lines(digests: Iterable[str]) -> list[Line]:
    """A `Line` for each prefix of a history."""
    running, found = sha256(), []
    for number, digest in enumerate(digests, 1):
        running.update(f"{digest}\0".encode())
        found.append((number, running.digest()))
    return found
