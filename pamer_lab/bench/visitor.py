"""A visitor of a running dashboard without a browser: it sends the websocket messages that Streamlit's own page would send.

For the load benchmark and its test. It keeps what a page would keep (the widgets, their values, the URL) and draws nothing.
Invariant: a rerun is timed from the request to the message that says it is finished, and every exception or error box is reported.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pamer_lab.errors import LabError

STREAM = "/_stcore/stream"
PATIENCE_SECONDS = 120.0


@dataclass
class Drawn:
    """What one rerun came to."""

    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    elements: int = 0
    widgets: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kind, label) -> widget id."""


class DashboardVisitor:
    """A session of its own on the server; use it as an async context."""

    def __init__(self, address: str) -> None:
        self._address = address.replace("http://", "ws://") + STREAM
        self._socket: Any = None
        self._page = self._query = self._hash = ""
        self._states: dict[str, dict[str, Any]] = {}
        self.drawn = Drawn()

    async def __aenter__(self) -> "DashboardVisitor":
        import websockets

        self._socket = await websockets.connect(self._address, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()

    async def open(self, page: str, query: str = "") -> Drawn:
        """Go to a page by its name in the URL; the home page has none."""
        self._page, self._query, self._hash, self._states = page, query, "", {}
        return await self._rerun({})

    async def fill(self, label: str, text: str) -> Drawn:
        """Type into a text field."""
        self._states[self._widget("text_input", label)] = {"string_value": text}
        return await self._rerun({})

    async def click(self, label: str) -> Drawn:
        """Press a button."""
        return await self._rerun({self._widget("button", label): {"trigger_value": True}})

    def _widget(self, kind: str, label: str) -> str:
        if (kind, label) not in self.drawn.widgets:
            shown = "; ".join(f"{kind} {label!r}" for kind, label in self.drawn.widgets)
            raise LabError(f"the page {self._page!r} shows no {kind} {label!r}; it shows {shown or 'nothing to use'} {self.drawn.errors}")
        return self.drawn.widgets[kind, label]

    async def _rerun(self, pressed: dict[str, dict[str, Any]]) -> Drawn:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_name, state.page_script_hash = self._query, self._page if not self._hash else "", self._hash
        for name, value in {**self._states, **pressed}.items():
            state.widget_states.widgets.add(id=name, **value)
        began = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        drawn = Drawn()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self._finished(ForwardMsg.FromString(await self._socket.recv()), drawn):
                pass
        drawn.seconds = time.perf_counter() - began
        self.drawn = drawn
        return drawn

    def _finished(self, message: ForwardMsg, drawn: Drawn) -> bool:
        match message.WhichOneof("type"):
            case "navigation":
                self._hash = message.navigation.page_script_hash
            case "page_info_changed":
                self._query = message.page_info_changed.query_string
            case "page_not_found":
                drawn.errors.append("page not found")
            case "delta":
                _note(message, drawn)
            case "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    drawn.errors.append("the script does not compile")
                return message.script_finished in (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_WITH_COMPILE_ERROR)
        return False


def _note(message: ForwardMsg, drawn: Drawn) -> None:
    """What an element is: a widget to use later, an error, or just one more."""
    element = message.delta.new_element
    kind = element.WhichOneof("type") or ""
    drawn.elements += 1
    if kind == "exception":
        drawn.errors.append(f"{element.exception.type}: {element.exception.message}")
    elif kind == "alert" and element.alert.format == Alert.ERROR:
        drawn.errors.append(element.alert.body)
    elif kind in ("button", "text_input"):
        widget = getattr(element, kind)
        drawn.widgets[kind, widget.label] = widget.id
