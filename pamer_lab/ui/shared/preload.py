"""Names Streamlit's script for charts in the answer to a page's address, so that the browser loads it along with the page's own scripts.

It is the largest by far, and without this the browser learns of it when the first chart arrives. Its name contains a hash, so it is looked
up in the installed Streamlit; one that has no such script gets no header.
"""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import streamlit

from pamer_lab.ui.shared.gate import App, Message, Receive, Send

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"
CHARTS = "PlotlyChart.*.js"


def chart_link(scripts: Path = SCRIPTS) -> bytes:
    """A `Link` header; the address is relative to the page, as Streamlit's own are, and the page's own scripts come first."""
    return ", ".join(f"<./static/js/{path.name}>; rel=modulepreload; fetchpriority=low" for path in sorted(scripts.glob(CHARTS))).encode()


class Preload:
    """An ASGI layer that adds the header to pages."""

    def __init__(self, app: App, link: bytes | None = None) -> None:
        self._app, self._link = app, chart_link() if link is None else link

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                message["headers"] = [*message["headers"], (b"link", self._link)]
            await send(message)

        await self._app(scope, receive, sent if self._link else send)


def _is_page(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))
