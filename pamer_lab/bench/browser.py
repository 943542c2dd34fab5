"""A dashboard on a free loopback port and a headless Chromium, for the page benchmark.

What always holds: the server ends with the block that started it, and the browser reaches nothing but loopback.
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
from typing import Any

from pamer_lab.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--enable-precise-memory-info", "--js-flags=--expose-gc"),
]
PATIENCE = 600.0
"""Seconds a server or an element may take on a busy machine."""


@contextmanager
def serve(script: Path, workspace: Path) -> Iterator[str]:
    """The address of a running Streamlit script."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port), "--server.headless", "true"]
    environment = os.environ | {"PAMER_LAB_HOME": str(workspace)}
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):  # noqa: S310 - an address on loopback
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the dashboard did not start")


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium page with an empty profile, at 1440 x 900."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise InputError("this bench needs playwright; install it: pip install playwright") from None
    if program is None:
        raise InputError("this bench needs Chromium; install it, for example: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        context.set_default_timeout(1000 * PATIENCE)
        yield context.new_page()
        browser.close()
