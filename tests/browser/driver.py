"""Chromium and a dashboard of its own, for the browser tests and for `docs/screenshots.py`.

What always holds: the server listens on a free loopback port with its own workspace, and the browser's requests to
anywhere else fail and are written down.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, expect

PROJECT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
"""The last one makes every host but loopback unreachable; Playwright's own interception would switch off the cache."""
READY_SECONDS = 180
PATIENCE_MS = 180_000
"""How long an element may take to appear on a busy machine."""


@contextmanager
def dashboard(workspace: Path) -> Iterator[str]:
    """The address of a running dashboard."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.headless", "true"]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            command, cwd=PROJECT, env=os.environ | {"PAMER_LAB_HOME": str(workspace)}, stdout=log, stderr=subprocess.STDOUT
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait(address, server)
            yield address
        finally:
            server.terminate()
            server.wait(timeout=20)


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the dashboard did not start")


def launch(playwright: Playwright) -> Browser:
    """Chromium with an empty profile of its own."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


class Visitor:
    """One reader: fresh cookies and cache, no way out of loopback."""

    def __init__(self, browser: Browser, address: str, *, dark: bool = False, size: tuple[int, int] = (1440, 900)) -> None:
        self.address = address
        self.outside: list[str] = []
        """Addresses outside loopback that the page asked for."""
        self.context: BrowserContext = browser.new_context(
            color_scheme="dark" if dark else "light", reduced_motion="reduce", viewport={"width": size[0], "height": size[1]}
        )
        self.context.on("request", self._note)
        self.context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        self.page: Page = self.context.new_page()

    def _note(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", None):
            self.outside.append(request.url)

    def open(self, path: str = "") -> Page:
        """A page once Streamlit has finished drawing it."""
        self.page.goto(self.address + path)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the script has run and nothing is stale."""
        self.page.get_by_test_id("stApp").wait_for()
        self.page.wait_for_function("document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'")
        self.page.wait_for_function(
            "document.querySelectorAll('[data-stale=true], [data-testid=stSpinner], [data-testid=stSkeleton]').length === 0"
        )

    def close(self) -> None:
        self.context.close()
