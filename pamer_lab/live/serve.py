"""Builds and runs a live proxy: on loopback, announced in the workspace while it runs, publishing its sessions regularly."""

import asyncio
import gc
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pamer_lab.errors import InputError, LabError
from pamer_lab.live.control import Control
from pamer_lab.live.desk import Desk
from pamer_lab.live.logs import FOLDER, Logs
from pamer_lab.live.policy import LiveOptions, Workshop
from pamer_lab.live.proxy import Proxy
from pamer_lab.live.publish import publish
from pamer_lab.live.upstream import Upstream
from pamer_lab.opening import read_file
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.storage.files import write_whole
from pamer_lab.workspace import Workspace

PUBLISH_EVERY = 15.0
"""Minimum number of seconds between two checks for sessions to publish."""
PUBLISH_SHARE = 20
"""The next check comes no sooner than this many times the duration of the last one."""
KEEP_ALIVE = 300
"""Seconds that a client's idle connection stays open: longer than clients keep theirs, so that none sends into a closing one."""
OWN_URL = re.compile(r"http://127\.0\.0\.1:[0-9]{1,5}")
MOST_ANNOUNCED = 10_000
"""Maximum size of a proxy's announcement, in bytes."""
SWITCH = 0.0002
"""Seconds after which a reading or recording thread yields to the event loop."""


class Running(msgspec.Struct, frozen=True):
    """A running proxy, as announced in the workspace to pages on this computer."""

    url: str
    token: str
    upstream: str
    policy: str
    pid: int
    started: float


@dataclass(frozen=True)
class Live:
    """A proxy's parts."""

    proxy: Proxy
    desk: Desk
    token: str


def build(
    workspace: Workspace,
    upstream: str,
    options: LiveOptions,
    *,
    anthropic: str = "",
    clock: Callable[[], float] = time.time,
    logs: Path | None = None,
) -> Live:
    """The proxy for an upstream; `InputError` if the policy cannot run or the address is invalid.

    `anthropic`: the server for Anthropic's API, if it is a different one. `logs`: the folder for session records, if it is not the
    workspace; sessions of other folders are not continued.
    """
    refuse_in_reviewer_mode("A live proxy", workspace.path)
    server, other = Upstream(upstream.rstrip("/")), Upstream(anthropic.rstrip("/")) if anthropic else None
    desk = Desk(Logs(logs or workspace.path), Workshop(workspace, options), window=options.window, clock=clock)
    token = secrets.token_urlsafe(32)
    return Live(Proxy(server, desk, Control(desk, token), deadline=options.deadline, anthropic=other), desk, token)


def listening(port: int) -> socket.socket:
    """A socket on loopback; `InputError` if the port cannot be used."""
    # With an explicit protocol, asyncio sends small pieces at once; without it, the end of an answer waits 40 ms for an acknowledgement.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        found.close()
        raise InputError(f"port {port} cannot be used ({error}); choose another with --port, or 0 for any") from error
    return found


def quick() -> None:
    """Set the interpreter up for one thread that answers while others read, decide and record."""
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what is loaded now stays alive, so the collector can skip it


def server_for(app: Any) -> Any:
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        ws="none",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=KEEP_ALIVE,
        proxy_headers=False,
    )
    return uvicorn.Server(config)


@contextmanager
def running(workspace: Workspace, live: Live, port: int = 0) -> Iterator[Running]:
    """Run a proxy in a separate thread until the block ends."""
    with listening(port) as bound:
        server = server_for(live.proxy)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        with announced(workspace, live, bound.getsockname()[1]) as found, publishing(workspace, live.desk):
            try:
                yield found
            finally:
                server.should_exit = True
                thread.join(20)


@contextmanager
def announced(workspace: Workspace, live: Live, port: int) -> Iterator[Running]:
    """Keep the proxy's address and token in a file that only this user can read, until the block ends."""
    desk = live.desk
    found = Running(f"http://127.0.0.1:{port}", live.token, live.proxy.upstream.url, desk.workshop.policy.name, os.getpid(), time.time())
    folder = workspace.path / FOLDER / "proxies"
    path = folder / f"{os.getpid()}-{port}.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(found), private=True)
    except (OSError, InputError):
        path = Path(os.devnull)
    try:
        yield found
    finally:
        if path != Path(os.devnull):
            path.unlink(missing_ok=True)


def running_proxies(workspace: Workspace) -> list[Running]:
    """The proxies that are running on a workspace; the files of dead ones are removed.

    Anyone who can write to the workspace could announce anything, so only proxies on this computer count: pages send nothing elsewhere.
    """
    found: list[Running] = []
    for path in sorted((workspace.path / FOLDER / "proxies").glob("*.json")):
        try:
            entry = msgspec.json.decode(read_file(path, MOST_ANNOUNCED), type=Running)
            os.kill(entry.pid, 0)
            if OWN_URL.fullmatch(entry.url):
                found.append(entry)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, OverflowError, InputError, msgspec.DecodeError):
            continue
    return found


@contextmanager
def publishing(workspace: Workspace, desk: Desk) -> Iterator[None]:
    """Publish sessions as they grow, in a thread, and all of them at the end."""
    stop = threading.Event()
    seen: dict[str, int] = {}

    def publish_changed() -> None:
        for name, place in desk.threads.places().items():
            if place == seen.get(name, 0):
                continue
            try:
                record = desk.logs.read(name)[0]
            except OSError:
                continue
            try:
                if record is not None:
                    publish(workspace, record, desk.workshop.tokens)
            except (LabError, OSError):  # a full disk, a table in use: the frames are stored, so the next check tries again
                continue
            seen[name] = place

    def work() -> None:
        pause = PUBLISH_EVERY
        while not stop.wait(pause):
            began = time.monotonic()
            publish_changed()
            pause = max(PUBLISH_EVERY, PUBLISH_SHARE * (time.monotonic() - began))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        publish_changed()
