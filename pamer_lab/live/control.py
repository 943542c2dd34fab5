"""The lab's own routes below `/_pamer/`: health for anyone on this computer, everything else with the proxy's token.

`GET health`, `GET sessions`, `GET sessions/NAME`, `POST sessions/NAME/pause|resume`, `POST sessions/NAME/policy` with `{"policy": "…"}`.
The token goes in the header `x-pamer-token`.
"""

import asyncio
import hmac
from collections.abc import Callable, MutableMapping
from typing import Any

import orjson

from pamer_lab.errors import LabError
from pamer_lab.live.asgi import answer
from pamer_lab.live.desk import Desk
from pamer_lab.live.record import Record
from pamer_lab.live.summary import described, summary

TOKEN_HEADER = "x-pamer-token"  # noqa: S105 - the name of a header
LONGEST = 10_000
"""Maximum size of a control request, in bytes."""


class Control:
    """Answers the lab's own requests."""

    def __init__(self, desk: Desk, token: str) -> None:
        self.desk, self._token = desk, token

    async def __call__(self, scope: MutableMapping[str, Any], headers: dict[str, str], receive: Any, send: Any) -> None:
        words = scope["path"].removeprefix("/_pamer/").strip("/").split("/")
        if scope["method"] == "GET" and words == ["health"]:
            await answer(send, 200, {"ok": True, "policy": self.desk.workshop.policy.name})
            return
        if not hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            await answer(send, 401, {"error": {"type": "no_token", "message": f"send the proxy's token in {TOKEN_HEADER}"}})
            return
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body") or len(body) > LONGEST:
                break
        status, value = await asyncio.get_running_loop().run_in_executor(None, self._answer, scope["method"], words, body)
        await answer(send, status, value)

    def _answer(self, method: str, words: list[str], body: bytes) -> tuple[int, Any]:
        match method, words:
            case "GET", ["sessions"]:
                return 200, {"sessions": [summary(record) for name in self.desk.threads.places() if (record := self._record(name))]}
            case "GET", ["sessions", name] if record := self._record(name):
                return 200, described(record)
            case "POST", ["sessions", name, "pause" | "resume" as what] if self.desk.threads.get(name):
                return self._changed(lambda: self.desk.pause(name, what == "pause"), name)
            case "POST", ["sessions", name, "policy"] if self.desk.threads.get(name):
                return self._changed(lambda: self.desk.switch(name, str(orjson.loads(body)["policy"])), name)
        return 404, {"error": {"type": "unknown", "message": "no such route or session"}}

    def _changed(self, change: Callable[[], None], name: str) -> tuple[int, Any]:
        try:
            change()
        except (LabError, ValueError, KeyError, TypeError) as error:
            return 400, {"error": {"type": "refused", "message": str(error)}}
        record = self._record(name)
        return 200, summary(record) if record else {}

    def _record(self, name: str) -> Record | None:
        """A session as stored in its file; the one in memory may change while it is read."""
        return self.desk.logs.read(name)[0] if name in self.desk.threads.places() else None
