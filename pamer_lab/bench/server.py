"""A dashboard for the benchmarks, a headless Chromium with an empty profile that reaches loopback only, and a visitor without a browser.

The visitor keeps what a page would keep (the widgets, their values, the URL) and draws nothing. Invariant: a rerun is timed from the
request to the message that says it is finished, and every exception or error box is reported.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pamer_lab.config import app_folder
from pamer_lab.errors import InputError, LabError

APP = app_folder() / "app.py"
READY_SECONDS = 600.0
"""How long a server may take to start on a busy machine."""
STOP_SECONDS = 30.0
"""How long it may take to end before it is killed."""


@contextmanager
def serving(workspace: Path, script: Path = APP, *, log: Path | None = None) -> Iterator[tuple[str, psutil.Process]]:
    """A running script, by default the dashboard: its address and its process. `log` receives its output, such as the link."""
    words = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true", "--server.port"]
    with started(words, APP.parent, os.environ | {"PAMER_LAB_HOME": str(workspace)}, log) as found:
        yield found


@contextmanager
def started(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path | None = None
) -> Iterator[tuple[str, psutil.Process]]:
    """A command run in a folder that serves Streamlit, with a free port appended as its last word: its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") if log else tempfile.TemporaryFile() as printed:
        server = subprocess.Popen([*words, str(port)], cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT)
        try:
            _wait(address, server)
            yield address, psutil.Process(server.pid)
        finally:
            _stop(server)


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):  # noqa: S310 - an address on loopback
                return
        except urllib.error.HTTPError:
            return  # it answers, even if it refuses
        except OSError:
            time.sleep(0.1)
    raise LabError("the dashboard did not start")


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *"--headless --no-sandbox --disable-gpu --disable-quic --no-first-run".split(),
    *"--disable-background-networking --disable-component-update --disable-sync".split(),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
"""The last one makes every host but loopback unreachable; Playwright's own interception would switch off the cache."""
MEMORY_FLAGS = ["--enable-precise-memory-info", "--js-flags=--expose-gc"]
PATIENCE = 600.0
"""Seconds an element may take on a busy machine."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium page with an empty profile, at 1440 x 900."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise InputError("this bench needs playwright; install it: pip install playwright") from None
    if CHROMIUM is None:
        raise InputError("this bench needs Chromium; install it, for example: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *MEMORY_FLAGS])
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        context.set_default_timeout(1000 * PATIENCE)
        yield context.new_page()
        browser.close()


STREAM = "/_stcore/stream"
PATIENCE_SECONDS = 120.0


@dataclass
class Drawn:
    """The result of one rerun."""

    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    elements: int = 0
    widgets: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kind, label) -> widget id."""


class DashboardVisitor:
    """A separate session on the server; use it as an async context manager."""

    def __init__(self, address: str) -> None:
        self._origin = address
        self._address = address.replace("http://", "ws://") + STREAM
        self._socket: Any = None
        self._page = self._query = self._hash = ""
        self._states: dict[str, dict[str, Any]] = {}
        self.drawn = Drawn()

    async def __aenter__(self) -> "DashboardVisitor":
        import websockets

        self._socket = await websockets.connect(
            self._address, origin=websockets.Origin(self._origin), subprotocols=[websockets.Subprotocol("streamlit")], max_size=None
        )
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

    def shows(self, kind: str, label: str) -> bool:
        """Whether the page has this widget."""
        return (kind, label) in self.drawn.widgets

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
    """Record an element: a widget to use later, an error, or just one more."""
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
