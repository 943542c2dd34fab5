"""Follows live sessions for a page: reads their files as they grow, tells which are running, and controls their proxy.

Knows nothing about pages. Invariant: each read of a session's file resumes where the last one ended; returned values are plain and never
change.
"""

import http.client
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import orjson

from pamer_lab.bounded import Bounded
from pamer_lab.errors import InputError
from pamer_lab.live.control import TOKEN_HEADER
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.logs import Logs
from pamer_lab.live.record import Record
from pamer_lab.live.serve import Running, running_proxies
from pamer_lab.live.summary import described, summary
from pamer_lab.prices import PriceTable
from pamer_lab.storage import equals
from pamer_lab.workspace import Workspace

SHOWN = 100
"""Maximum number of listed sessions, the most recently changed first."""
BUSY = 60.0
"""Seconds after its last request or answer during which a session counts as active."""
PATIENCE = 10.0
"""Seconds a proxy may take to answer."""

State = Literal["active", "idle", "ended"]
"""`active`: a proxy runs, and something happened within the last minute. `idle`: a proxy runs and waits for the next request. `ended`: no
proxy for its upstream is running."""


@dataclass
class _Read:
    """A session as far as it was read."""

    record: Record | None = None
    place: int = 0
    made: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Values computed since it last grew, by kind and price table."""


class Watched:
    """The sessions of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._logs = Logs(workspace.path)
        self._read: Bounded[str, _Read] = Bounded(2 * SHOWN)
        self._lock = threading.Lock()

    def sessions(self, prices: PriceTable, also: str = "") -> tuple[list[dict[str, Any]], int]:
        """A line for each of the newest sessions and for `also`, however old it is; and how many others there are."""
        names = [name for name in self._logs.names() if name != OUTSIDE]
        shown = [*names[:SHOWN], *(name for name in names[SHOWN:] if name == also)]
        lines = [line for name in shown if (line := self._made(name, "summary", prices)) is not None]
        return lines, len(names) - len(shown)

    def session(self, name: str, prices: PriceTable) -> dict[str, Any] | None:
        """A session with all its requests; None if no session has that name."""
        return self._made(name, "described", prices) if name in self._logs.names() else None

    def _made(self, name: str, kind: str, prices: PriceTable) -> dict[str, Any] | None:
        with self._lock:
            known = self._read.get(name) or _Read()
            self._read[name] = known
            if self._logs.size(name) != known.place:
                known.record, known.place = self._logs.read(name, known.record, known.place)
                known.made.clear()
            if known.record is None:
                return None
            if (kind, prices.name) not in known.made:
                known.made[kind, prices.name] = (described if kind == "described" else summary)(known.record, prices)
            return known.made[kind, prices.name]

    def in_library(self, line: dict[str, Any]) -> bool:
        """Whether the session is a trace of the workspace already."""
        return bool(self.workspace.trace_rows(equals("trace_id", line["trace_id"])))

    def proxies(self) -> list[Running]:
        return running_proxies(self.workspace)


def state_of(line: dict[str, Any], proxies: list[Running], now: float | None = None) -> State:
    """The state of a session, from the running proxies and its last request or answer."""
    if not any(proxy.upstream == line["upstream"] for proxy in proxies):
        return "ended"
    return "active" if (time.time() if now is None else now) - line["last"] <= BUSY else "idle"


def control(proxies: list[Running], line: dict[str, Any], what: Literal["pause", "resume", "policy"], policy: str = "") -> None:
    """Pause a session, resume it, or give it another policy; `InputError` if no proxy accepts that."""
    said = "no proxy for its upstream is running"
    for proxy in (proxy for proxy in proxies if proxy.upstream == line["upstream"]):
        status, answer = _post(proxy, f"/_pamer/sessions/{quote(line['session'], safe='')}/{what}", {"policy": policy} if policy else {})
        if status == 200:
            return
        said = answer
    raise InputError(f"session {line['session']!r}: {said}")


def _post(proxy: Running, path: str, value: dict[str, Any]) -> tuple[int, str]:
    """Status of the proxy's answer, and its error message unless it succeeded."""
    address = urlsplit(proxy.url)
    connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=PATIENCE)
    try:
        connection.request("POST", path, orjson.dumps(value), {TOKEN_HEADER: proxy.token, "content-type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200:
            return 200, ""
        return answer.status, str(orjson.loads(body)["error"]["message"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        return 0, f"the proxy at {proxy.url} does not answer ({type(error).__name__})"
    finally:
        connection.close()
