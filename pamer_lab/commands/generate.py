"""`pamer-lab generate`: labelled synthetic traces, the same bytes for the same seed."""

import argparse
from pathlib import Path
from typing import Any

import msgspec

from pamer_lab.cli import say
from pamer_lab.corpus import write_corpus
from pamer_lab.corpus.writer import write_demos
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.storage.files import write_whole
from pamer_lab.trajectory.formats.native import NativeTrace


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.questions < 1 or args.replicas < 1:
        raise InputError("--questions and --replicas must be at least 1")
    if args.demo:
        named = {f"{trace.task_id}.json": [trace] for trace in write_demos(args.seed)}
    else:
        named = {"traces.jsonl": list(write_corpus(args.seed, args.questions, args.replicas))}
    for name, traces in named.items():
        _write(args.out / name, traces)
        say(f"wrote {args.out / name}")
    labels = [label for traces in named.values() for trace in traces for label in trace.labels]
    return {
        "traces": sum(len(traces) for traces in named.values()),
        "decision_points": len({(id(trace), label.t) for traces in named.values() for trace in traces for label in trace.labels}),
        "labels": {target: sum(label.target == target for label in labels) for target in ("compression", "recall")},
        "positives": {target: sum(label.target == target and label.value for label in labels) for target in ("compression", "recall")},
        "paths": [str(args.out / name) for name in named],
    }


def show(result: dict[str, Any]) -> None:
    positives = result["positives"]
    print(f"{counted(result['traces'], 'trace')}, {counted(result['decision_points'], 'decision point')}")
    for target, count in result["labels"].items():
        print(f"{target}: {positives[target]} of {count} labelled points are positive")


def _write(path: Path, traces: list[NativeTrace]) -> None:
    """One trace per line, all or nothing."""
    write_whole(path, b"".join(msgspec.json.encode(trace) + b"\n" for trace in traces), parents=True)
