"""Runs a Streamlit script on a free loopback port, for benchmarks, browser tests and screenshots; it ends with its `with` block."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from pamer_lab.config import app_folder
from pamer_lab.errors import LabError

APP = app_folder() / "app.py"
READY_SECONDS = 600.0
"""How long a server may take to start on a busy machine."""
STOP_SECONDS = 30.0
"""How long it may take to end before it is killed."""


@contextmanager
def serving(workspace: Path, script: Path = APP) -> Iterator[tuple[str, psutil.Process]]:
    """A running script, by default the dashboard: its address and its process."""
    words = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless", "true", "--server.port"]
    with started(words, APP.parent, os.environ | {"PAMER_LAB_HOME": str(workspace)}) as found:
        yield found


@contextmanager
def started(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """A command that serves Streamlit on the port that is its last word, run in a folder: its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen([*words, str(port)], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
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
