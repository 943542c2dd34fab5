"""Mutated trace files against the readers: whatever a file says, the answer is traces or a sentence, never a traceback.

Files are mutated as bytes (flips, cuts, copies) and as JSON (values of other types, missing keys, repeated items), the
latter because it gets past the parser and into the readers.
"""

import copy
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from pamer_lab.errors import InputError
from pamer_lab.trajectory import read_bytes
from pamer_lab.trajectory.parsing import parse_text

HELP = "thousands of mutated trace files: how many ended in a traceback (none may)"
CASES = 4_000
MAX_SEED_BYTES = 150_000
"""Larger seed files are cut to complete records, so that a case stays fast."""
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x",
    "\ud83d".encode("utf-16", "surrogatepass").hex(),
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"type": 7},
)


def run() -> tuple[dict[str, float], dict[str, Any]]:
    seeds = list(seed_files(Path("sample_traces"))) + list(seed_files(Path("../shared/traces/open")))
    outcome = fuzz(seeds, CASES)
    failures = sum(count for kind, count in outcome.items() if kind.startswith("traceback"))
    return {"cases": float(CASES), "tracebacks": float(failures)}, {"seeds": len(seeds), "outcomes": dict(outcome)}


def seed_files(folder: Path) -> Iterator[bytes]:
    """Trace files below a folder, as bytes, each small enough to be mutated often."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_file() and path.suffix in (".json", ".jsonl", ".traj", ".af", ".har"):
            data = path.read_bytes()
            if len(data) <= MAX_SEED_BYTES:
                yield data
            elif (cut := data.rfind(b"\n", 0, MAX_SEED_BYTES)) > 0 and _is_whole(data[:cut]):
                yield data[:cut]


def _is_whole(data: bytes) -> bool:
    """Whether a cut fell between records, and not inside one value that is written over many lines."""
    try:
        return bool(parse_text(data, 100_000).records)
    except InputError:
        return False


def fuzz(seeds: list[bytes], cases: int, *, seed: int = 0) -> Counter[str]:
    """Read `cases` mutants and count how each ended."""
    rng = random.Random(seed)  # noqa: S311 - mutations, not secrets
    outcome: Counter[str] = Counter()
    for number in range(cases):
        data = mutate(seeds[number % len(seeds)], rng)
        try:
            reading = read_bytes(data, f"mutant-{number}")
        except Exception as error:  # the very thing the bench looks for
            outcome[f"traceback: {type(error).__name__}: {str(error)[:80]}"] += 1
            continue
        unexpected = any("unexpected shape" in rejection.reason for rejection in reading.rejected)
        outcome["unexpected shape" if unexpected else "rejected" if reading.rejected else "read"] += 1
    return outcome


def mutate(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return _mutate_bytes(data, rng)
    try:
        return _mutate_json(data, rng)
    except TypeError:  # a value that was copied into itself cannot be written
        return _mutate_bytes(data, rng)


def _mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(mutant) or 1)
        match rng.randrange(4):
            case 0:
                mutant[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del mutant[at:]
            case 2:
                del mutant[at : at + rng.randrange(1, 50)]
            case _:
                mutant[at:at] = mutant[max(0, at - rng.randrange(1, 200)) : at]
    return bytes(mutant)


def _mutate_json(data: bytes, rng: random.Random) -> bytes:
    parsed = parse_text(data, 100_000)
    values = [record.value for record in parsed.records]
    holder: list[Any] = [rng.choice(values)] if parsed.in_lines else values
    for _ in range(rng.randrange(1, 4)):
        _mutate_value(holder, rng)
    if parsed.in_lines:
        values[rng.randrange(len(values))] = holder[0]
        return b"\n".join(orjson.dumps(value) for value in values)
    return orjson.dumps(holder[0])


def _mutate_value(root: list[Any], rng: random.Random) -> None:
    """Change one random place below `root`, preferring shallow ones."""
    holder: Any = root
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = rng.choice(keys)
        child = holder[key]
        if isinstance(child, dict | list) and child and (holder is root or rng.random() < 0.75):
            holder = child
            continue
        match rng.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder) + 1), child)
            case 2 if isinstance(holder, dict):
                holder[rng.choice(["role", "content", "type", "id", "messages", "tool_calls", "x"])] = child
            case _:
                holder[key] = copy.deepcopy(rng.choice(ODD))  # a later step may change it
        return
