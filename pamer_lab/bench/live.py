"""`pamer-lab bench live`: the overhead of the live proxy per call, and whether bytes, prefixes, sessions and bills are right.

Two real `pamer-lab serve` processes, one after the other, in front of the fake upstream: one with `base` and bodies of 200 KB, one with a
policy that edits. In another process, 20 sessions alternate between direct and proxied calls, with pauses, as agents do. Overheads are
differences of quantiles within this run; on a busy machine they are mostly waiting for a core, so the proxy's own processor time per call
is reported too.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx2
import orjson
import psutil

from pamer_lab.live.fake_upstream import FakeUpstream, Received, serving
from pamer_lab.live.json_spans import members
from pamer_lab.live.logs import Logs
from pamer_lab.live.record import Record
from pamer_lab.live.summary import BILLED, billed

HELP = "overhead of the live proxy per request, and its ledger"
SESSIONS, TURNS, BODY = 20, 8, 200_000
EDITING, EDITED_TURNS, RESULT = "sliding-window:3", 12, 8_000
"""The policy that edits, its sessions' turns, and the size of a tool's result in bytes."""
PAUSE = 1.5
"""Maximum seconds between two calls of a session."""
PATH = "/v1/chat/completions"
Seconds = dict[str, list[tuple[float, float]]]
"""Seconds to the first byte and to the end of every call, by route."""


def run() -> tuple[dict[str, Any], dict[str, Any]]:
    base, busy = _measured("base", TURNS, BODY, 0)
    edited, _ = _measured(EDITING, EDITED_TURNS, 100, RESULT)
    counts = ("prefix_violations", "ledger_difference", "sessions", "mixed_sessions", "lost", "edits")
    figures = base | {"proxy_cpu_ms_per_call": busy} | {f"edited_{name}": edited[name] for name in counts}
    calls = {"base": SESSIONS * TURNS, EDITING: SESSIONS * EDITED_TURNS}
    return figures, {"calls": calls, "body_bytes": BODY, "result_bytes": RESULT}


def _measured(policy: str, turns: int, first: int, result: int) -> tuple[dict[str, Any], float]:
    """Figures of one policy, and the proxy's milliseconds of processor time per call."""
    fake = FakeUpstream()
    with serving(fake) as direct, tempfile.TemporaryDirectory() as folder:
        with _proxy(direct, folder, policy) as (pid, url), ProcessPoolExecutor(1, get_context("spawn")) as clients:
            clients.submit(time.time).result()  # wait until the process runs
            before = _busy(pid)
            seconds, sent = clients.submit(called, {"direct": direct, "proxied": url}, turns, first, result).result()
            busy = (_busy(pid) - before) / len(sent) * 1000
        logs = Logs(Path(folder))
        records = [record for name in logs.names() if (record := logs.read(name)[0]) is not None]
        ours = [entry for entry in fake.ledger if "x-session-id" not in dict(entry.headers)]
        return _timed(seconds) | _counted(ours, records, sent), busy


@contextmanager
def _proxy(upstream: str, folder: str, policy: str) -> Iterator[tuple[int, str]]:
    words = ["serve", "--upstream", upstream, "--policy", policy, "--json", "--workspace", folder]
    with subprocess.Popen([sys.executable, "-m", "pamer_lab.cli", *words], stdout=subprocess.PIPE, env=dict(os.environ)) as proxy:
        assert proxy.stdout is not None
        url = json.loads(proxy.stdout.readline())["url"]
        try:
            yield proxy.pid, url
        finally:
            proxy.terminate()
            proxy.wait(120)


def _busy(pid: int) -> float:
    """Processor seconds of a process so far, including recording and publishing."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def called(urls: dict[str, str], turns: int, first: int, result: int) -> tuple[Seconds, list[str]]:
    """The times of all calls of all sessions, and hashes of the bodies that went through the proxy."""
    seconds: Seconds = {way: [] for way in urls}
    sent: list[str] = []

    async def work() -> None:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits) as client:
            await asyncio.gather(*(_session(client, urls, number, turns, first, result, seconds, sent) for number in range(SESSIONS)))

    asyncio.run(work())
    return seconds, sent


async def _session(
    client: Any, urls: dict[str, str], number: int, turns: int, first: int, result: int, seconds: Seconds, sent: list[str]
) -> None:
    dice = random.Random(number)  # noqa: S311 - pauses, not secrets
    named = f"session {number} "
    history: list[dict[str, Any]] = [{"role": "user", "content": named * max(first // len(named), 1)}]
    for turn in range(turns):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        body = orjson.dumps({"model": "fake", "messages": history, **options})
        for way, url in urls.items():
            await asyncio.sleep(dice.uniform(0, PAUSE))
            began = time.perf_counter()
            start = 0.0
            headers = {"x-session-id": f"bench-{number}", "authorization": "Bearer bench"}
            async with client.stream("POST", url + PATH, content=body, headers=headers) as answer:
                async for _ in answer.aiter_raw():
                    start = start or time.perf_counter() - began
            if turn:  # the first call opens connections
                seconds[way].append((start, time.perf_counter() - began))
        sent.append(sha256(body).hexdigest())
        shown = f"{named}goes on with {turn}. " + f"exhibit {turn} of {number}; " * (result // 20)
        history += [{"role": "assistant", "content": f"step {turn}"}, {"role": "user", "content": shown}]


def _timed(seconds: Seconds) -> dict[str, float]:
    def over(which: int, percent: int) -> float:
        at = {way: statistics.quantiles([pair[which] for pair in found], n=100)[percent - 1] for way, found in seconds.items()}
        return (at["proxied"] - at["direct"]) * 1000

    return {"overhead_ms_p50": over(1, 50), "overhead_ms_p99": over(1, 99), "first_byte_ms_over_upstream": over(0, 50)}


def _counted(ours: list[Received], records: list[Record], sent: list[str]) -> dict[str, Any]:
    sums = [billed(record)[0] for record in records]
    bills = [entry.billed for entry in ours if entry.billed]
    difference = sum(abs(sum(getattr(one, part) or 0 for one in sums) - sum(getattr(bill, part) for bill in bills)) for part in BILLED)
    mixed = sum(
        len({word for message in record.history if message.role == "user" for word in message.content.split()[1:2]}) > 1
        for record in records
    )
    return {
        "byte_identical": sum(sha256(entry.body).hexdigest() in set(sent) for entry in ours) / max(len(sent), 1),
        "prefix_violations": _violations(ours, records),
        "ledger_difference": difference,
        "sessions": len(records),
        "mixed_sessions": mixed,
        "lost": len(sent) - sum(len(record.answers) for record in records),
        "edits": sum(asked.edit for record in records for asked in record.asked),
    }


def _violations(ours: list[Received], records: list[Record]) -> int:
    """Requests that do not begin with the bytes of their session's previous request, as they arrived, and are not recorded as edits."""
    edits = {record.session: [asked.edit for asked in record.asked] for record in records}
    last: dict[str, bytes] = {}
    seen: dict[str, int] = {}
    found = 0
    for entry in ours:
        session = "bench-" + orjson.loads(entry.body)["messages"][0]["content"].split(" ", 2)[1]
        number = seen.get(session, 0)
        marked = edits.get(session, [])[number : number + 1] == [True]
        found += not entry.body.startswith(last.get(session, b"")) and not marked
        last[session], seen[session] = entry.body[: members(entry.body)["messages"][1] - 1], number + 1
    return found
