"""`pamer-lab bench live`: what the live proxy adds to a call, and whether bytes, prefixes, sessions and bills are right.

A real `pamer-lab serve` with `base` in a process of its own, in front of the fake upstream; 20 sessions with bodies of 200 KB call directly
and through the proxy in turn, each after a pause, as agents do. Overheads are differences of quantiles within this run; on a machine with
other work they are waiting for a core, so the proxy's own processor time per call is given too.
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
from pathlib import Path
from typing import Any

import httpx2
import orjson
import psutil

from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.live.logs import Logs
from pamer_lab.live.summary import billed

HELP = "overhead of the live proxy per request, and its ledger"
SESSIONS, TURNS, BODY = 20, 8, 200_000
PAUSE = 1.5
"""Most seconds between two calls of a session."""
PATH = "/v1/chat/completions"


def run() -> tuple[dict[str, Any], dict[str, Any]]:
    fake = FakeUpstream()
    with serving(fake) as direct, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pamer_lab.cli", "serve", "--upstream", direct, "--json", "--workspace", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) as proxy:
            assert proxy.stdout is not None
            url = json.loads(proxy.stdout.readline())["url"]
            try:
                before = _busy(proxy.pid)
                seconds, sent = asyncio.run(_sessions({"direct": direct, "proxied": url}))
                busy = (_busy(proxy.pid) - before) / len(sent) * 1000
            finally:
                proxy.terminate()
                proxy.wait(120)
        found, facts = _counted(fake, Path(folder), seconds, sent)
        return found | {"proxy_cpu_ms_per_call": busy}, facts


def _busy(pid: int) -> float:
    """Seconds of processor time that a process has taken, with its recording and publishing."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def _sessions(urls: dict[str, str]) -> tuple[dict[str, list[tuple[float, float]]], list[bytes]]:
    """First byte and end of every call, in seconds, by way; and the bodies that went through the proxy."""
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in urls}
    sent: list[bytes] = []
    async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=httpx2.Limits(max_connections=None)) as client:
        await asyncio.gather(*(_session(client, urls, number, seconds, sent) for number in range(SESSIONS)))
    return seconds, sent


async def _session(
    client: Any, urls: dict[str, str], number: int, seconds: dict[str, list[tuple[float, float]]], sent: list[bytes]
) -> None:
    dice = random.Random(number)  # noqa: S311 - pauses, not secrets
    history = [{"role": "user", "content": f"session {number} " * (BODY // 11)}]
    for turn in range(TURNS):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        body = orjson.dumps({"model": "fake", "messages": history, **options})
        for way, url in urls.items():
            await asyncio.sleep(dice.uniform(0, PAUSE))
            began = time.perf_counter()
            first = 0.0
            headers = {"x-session-id": f"bench-{number}", "authorization": "Bearer bench"}
            async with client.stream("POST", url + PATH, content=body, headers=headers) as answer:
                async for _ in answer.aiter_raw():
                    first = first or time.perf_counter() - began
            if turn:  # the first call opens connections
                seconds[way].append((first, time.perf_counter() - began))
        sent.append(body)
        history += [{"role": "assistant", "content": f"step {turn}"}, {"role": "user", "content": f"session {number} goes on"}]


def _counted(
    fake: FakeUpstream, folder: Path, seconds: dict[str, list[tuple[float, float]]], sent: list[bytes]
) -> tuple[dict[str, Any], dict[str, Any]]:
    ours = [entry for entry in fake.ledger if "x-session-id" not in dict(entry.headers)]
    logs = Logs(folder)
    records = [record for name in logs.names() if (record := logs.read(name)[0]) is not None]
    sums = [billed(record)[0] for record in records]
    bills = [entry.billed for entry in ours if entry.billed]
    parts = ("uncached", "read", "write", "output")
    difference = sum(abs(sum(getattr(one, part) or 0 for one in sums) - sum(getattr(bill, part) for bill in bills)) for part in parts)
    mixed = sum(
        len({word for message in record.history if message.role == "user" for word in message.content.split()[1:2]}) > 1
        for record in records
    )
    ratios = {
        "overhead_ms_p50": _difference(seconds, 1, 50),
        "overhead_ms_p99": _difference(seconds, 1, 99),
        "first_byte_ms_over_upstream": _difference(seconds, 0, 50),
        "byte_identical": sum(entry.body in set(sent) for entry in ours) / max(len(sent), 1),
        "prefix_violations": _violations([entry.body for entry in ours]),
        "ledger_difference": difference,
        "sessions": len(records),
        "mixed_sessions": mixed,
        "lost": len(sent) - sum(len(record.answers) for record in records),
    }
    return ratios, {"calls": {way: len(found) for way, found in seconds.items()}, "body_bytes": BODY, "turns": TURNS}


def _violations(bodies: list[bytes]) -> int:
    """Requests, as they arrived, whose history does not begin with the one before of the same session."""
    last: dict[str, list[Any]] = {}
    found = 0
    for body in bodies:
        history = orjson.loads(body)["messages"]
        session = history[0]["content"].split(" ", 2)[1]
        found += history[: len(last.get(session, []))] != last.get(session, [])
        last[session] = history
    return found


def _difference(seconds: dict[str, list[tuple[float, float]]], which: int, percent: int) -> float:
    """Milliseconds between the same quantile of both ways."""
    at = {way: statistics.quantiles([pair[which] for pair in found], n=100)[percent - 1] for way, found in seconds.items()}
    return (at["proxied"] - at["direct"]) * 1000
