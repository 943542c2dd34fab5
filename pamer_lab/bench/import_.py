"""Reading and normalising, without token counting, against `json.loads` on the same bytes."""

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from pamer_lab.bench.measure import best_seconds, chat_file, peak_memory
from pamer_lab.trajectory import read_bytes

HELP = "reading against json.loads, peak memory against the file, time from 1 to 50 MB"
MEGABYTE = 1_000_000


def read_file(path: str) -> int:
    """Read a file as `import` does; the memory gauge runs this in a separate process."""
    from pamer_lab.trajectory import iter_traces

    kept = list(iter_traces([path]))
    return len(kept)


def run() -> tuple[dict[str, float], dict[str, Any]]:
    ratios: dict[str, float] = {}
    details: dict[str, Any] = {}
    for kind in ("json", "jsonl"):
        small, large = (chat_file(size * MEGABYTE, lines=kind == "jsonl") for size in (1, 50))
        own_small, own_large = (best_seconds(partial(read_bytes, data, "bench")) for data in (small, large))
        plain = best_seconds(partial(_json_loads, large, kind))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"bench.{kind}"
            path.write_bytes(large)
            peak = peak_memory("pamer_lab.bench.import_", "read_file", str(path))
        found = {
            "vs_json_loads": own_large / plain,
            "peak_memory_vs_file": peak / len(large),
            "time_50mb_vs_linear": (own_large / len(large)) / (own_small / len(small)),
        }
        details[kind] = found | {"seconds_50mb": own_large, "seconds_json_loads": plain, "bytes": len(large)}
        ratios = {key: max(value, ratios.get(key, 0.0)) for key, value in found.items()}
    return ratios, details


def _json_loads(data: bytes, kind: str) -> Any:
    return [json.loads(line) for line in data.splitlines()] if kind == "jsonl" else json.loads(data)
