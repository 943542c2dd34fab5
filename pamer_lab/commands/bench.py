"""`pamer-lab bench NAME`: one benchmark, as ratios within one run.

A bench module under `pamer_lab/bench/` offers `HELP` and `run() -> (ratios, details)`. The `run` of a bench over traces takes their paths;
a bench whose parts can be run separately names them in `PARTS`, and its `run` takes `parts`.
"""

import argparse
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pamer_lab.errors import InputError, UnknownNameError

BENCHES: dict[str, str] = {
    "import": "import_",
    "blocks": "blocks",
    "fuzz": "fuzz",
    "controller": "controller",
    "crash": "crash",
    "selection": "selection",
    "hindsight": "hindsight",
    "replay": "replay",
    "traces": "traces",
    "extract": "extract",
    "probes": "probes",
    "pages": "pages",
    "patterns": "patterns",
    "compact": "compact",
    "load": "load",
    "start": "start",
    "live": "live",
    "scale": "scale",
}
"""Bench name -> module under `pamer_lab/bench/`."""
OVER_TRACES = ("traces", "hindsight")
"""Benches that take trace paths."""
COUNTED = {"crash": "kills", "load": "sessions", "replay": "blocks", "fuzz": "cases", "scale": "traces", "hindsight": "count"}
"""Bench name -> the argument of its `run` that `--count` sets."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.name == "list":
        return {"name": "list", "ratios": {}, "details": {"names": list(BENCHES)}}
    if args.name not in BENCHES:
        raise UnknownNameError("bench", args.name, sorted(BENCHES))
    bench = importlib.import_module(f"pamer_lab.bench.{BENCHES[args.name]}")
    if args.paths and args.name not in OVER_TRACES:
        raise InputError(
            f"bench {args.name} creates its own input and takes no path; benches that take trace paths: {', '.join(OVER_TRACES)}"
        )
    if args.count is not None and (args.name not in COUNTED or args.count < 1):
        raise InputError(f"--count must be at least 1, and works only with {', '.join(COUNTED)}")
    options = _parts(args.name, args.part or (), getattr(bench, "PARTS", ())) | (
        {} if args.count is None else {COUNTED[args.name]: args.count}
    )
    ratios, details = bench.run([Path(path) for path in args.paths], **options) if args.name in OVER_TRACES else bench.run(**options)
    return {"name": args.name, "ratios": ratios, "details": details}


def _parts(bench: str, asked: Sequence[str], known: Iterable[str]) -> dict[str, Any]:
    """The argument that limits a bench to some of its parts."""
    if asked and not (names := [*known]):
        raise InputError(f"bench {bench} has no parts; omit --part")
    for name in asked:
        if name not in names:
            raise UnknownNameError("part", name, names)
    return {"parts": asked} if asked else {}


def show(result: dict[str, Any]) -> None:
    if result["name"] == "list":
        print("\n".join(result["details"]["names"]))
    for key, value in result["ratios"].items():
        print(f"{key:<32} {value:.3f}" if isinstance(value, float) else f"{key:<32} {value}")
