"""One client call on its way through the proxy: what came in, what goes out, and how that was decided."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from msgspec import structs

from pamer_lab.decisions import Item
from pamer_lab.live.record import Asked, Sent
from pamer_lab.live.threads import Thread
from pamer_lab.live.usage import decoded
from pamer_lab.live.wire import Api, Wire
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message


@dataclass(eq=False)
class Call:
    """One client request for a model's answer."""

    api: Api
    path: str
    headers: Mapping[str, str]
    """Lower-case names, plus credentials from the address (`live.credentials`); they identify the sender and are never stored."""
    body: bytes
    at: float
    """When it came, in seconds since 1970."""
    upstream: str
    """Where it goes."""
    thread: Thread | None = None
    wire: Wire | None = None
    asked: Asked | None = None
    ms: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    """HTTP status with which the server refused the edited body; 0 if it did not."""
    instead: "Future[Outgoing]" = field(default_factory=Future)
    """What was sent when the event loop stopped waiting for the decision."""
    _settled: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def settle(self) -> bool:
        """True for the first caller only: the worker with its decision, or the event loop that stopped waiting and sends something else."""
        with self._lock:
            first = not self._settled
            self._settled = True
            return first

    @property
    def plain(self) -> bytes:
        """The body without its content encoding."""
        return decoded(self.body, self.headers.get("content-encoding", ""))


@dataclass(frozen=True)
class Outgoing:
    """What goes upstream."""

    body: bytes
    edited: bool = False
    """False: the client's own body, in its original encoding."""
    items: tuple[Item, ...] = ()
    """What an edited body shows, if it was made without the policy."""


@dataclass(frozen=True)
class Deciding:
    """How one request was decided, before it is recorded."""

    turns: tuple[Turn, ...]
    sent: Sent
    body: bytes
    reason: str
    fallback: str = ""
    edit: bool = False
    view: tuple[int, tuple[Item, ...]] | None = None
    shown: Turn | None = None
    """What the model is shown, if that is not the last of `turns`."""


def stamped(message: Message, at: float) -> Message:
    """The message with its time of arrival, unless it already has a time."""
    return message if message.at is not None else structs.replace(message, at=at)
