"""Starts a headless Chromium for the page benchmark and the browser tests, with an empty profile and access to loopback only."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pamer_lab.errors import InputError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
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
