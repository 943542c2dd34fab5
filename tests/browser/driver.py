"""Chromium and a dashboard of its own, for the browser tests and for `docs/screenshots.py`.

Invariant: the server listens on a free loopback port with its own workspace, and the browser's requests to
anywhere else fail and are written down.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, expect

from pamer_lab.bench.server import CHROMIUM, FLAGS, serving

PATIENCE_MS = 90_000
"""How long an element may take to appear on a busy machine."""


@contextmanager
def dashboard(workspace: Path, log: Path | None = None) -> Iterator[str]:
    """The address of a running dashboard; `log` gets what it prints."""
    with serving(workspace, log=log) as (address, _):
        yield address


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
