"""Clocks and memory gauges that the benchmarks share; best of several runs, so that a busy machine matters less."""

import contextlib
import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def best_seconds(work: Callable[[], Any], *, repeats: int = 3) -> float:
    """The shortest of several runs, in seconds of process time, which other processes do not inflate."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak_memory(module: str, function: str, *arguments: str) -> int:
    """Bytes by which a call raises the peak memory of a fresh process, measured after its imports."""
    program = (
        f"import sys; from {module} import {function} as work; from pamer_lab.bench.measure import fresh_peak, own_peak;"
        "before = fresh_peak(); work(*sys.argv[1:]); print(own_peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True)
    return int(done.stdout)


def fresh_peak() -> int:
    """Forget this process's peak memory where the system lets us, and return the peak as it is now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return own_peak()


def own_peak() -> int:
    """Peak memory of this process in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
