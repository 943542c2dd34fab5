"""`pamer-lab label TRACE...`: labels by a rule, kept with the traces in the workspace."""

import argparse
from pathlib import Path
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import say
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.hindsight import Rule, hindsight_labels, labelled
from pamer_lab.runs.timeline import lay_out
from pamer_lab.storage.files import write_whole
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import ALL
from pamer_lab.trajectory import Trace, read_all
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.trajectory.labels import HINDSIGHT
from pamer_lab.workspace import Workspace

BATCH = 50
"""Traces stored per commit."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    rule = Rule(args.horizon, args.retained, args.minimum)
    workspace = Workspace()
    tokens = profile_tokens(load_profile(args.profile, workspace.path))
    traces = _in_workspace(args.traces, workspace, tokens)
    done: list[Trace] = []
    for trace in traces:
        done.append(labelled(trace, hindsight_labels(lay_out(trace, tokens), rule)))
        if len(done) % BATCH == 0:
            workspace.relabel(done[-BATCH:])
            say(f"labelled {len(done)} of {len(traces)} traces")
    workspace.relabel(done[len(done) - len(done) % BATCH :])
    if args.out is not None:
        write_whole(args.out, b"".join(to_native(trace) + b"\n" for trace in done))
    own = [(trace.trace_id, label) for trace in done for label in trace.labels if label.origin == HINDSIGHT]
    return {
        "traces": len(done),
        "decision_points": len({(trace_id, label.t) for trace_id, label in own}),
        "labels": {target: sum(label.target == target for _, label in own) for target in TARGETS},
        "positives": {target: sum(label.target == target and label.value for _, label in own) for target in TARGETS},
        "rule": rule.facts() | {"tokenizer": tokens.counter.name},
        "origin": HINDSIGHT,
        "unlabelled": sum(not any(label.origin == HINDSIGHT for label in trace.labels) for trace in done),
        "out": str(args.out) if args.out else None,
    }


def _in_workspace(names: list[str], workspace: Workspace, tokens: MessageTokens) -> list[Trace]:
    """The traces of files, folders and ids, each once; those of files are imported first."""
    files = [name for name in names if name != ALL and (Path(name).exists() or not name.startswith("t-"))]
    ids = [name for name in names if name != ALL and name not in files]
    reading = read_all(files)
    if files and not reading.traces:
        first = reading.rejected[0]
        raise InputError(first.reason, path=first.path, where=first.where)
    for fault in reading.rejected:
        say(f"{fault.path}: {fault.reason}")
    workspace.add_traces(reading.traces, tokens)
    ids += [trace.trace_id for trace in reading.traces]
    if ALL in names:
        ids += [row["trace_id"] for row in workspace.trace_rows()]
    found = [workspace.trace(trace_id).trace for trace_id in dict.fromkeys(ids)]
    if not found:
        raise InputError(f"the workspace {workspace.path} has no traces; import some: pamer-lab import TRACE...")
    return found


def show(result: dict[str, Any]) -> None:
    rule = result["rule"]
    print(
        f"{result['traces']} traces, {result['decision_points']} decision points with hindsight labels (H = {rule['horizon']} turns, "
        f"{rule['retained']} recent blocks, at least {rule['minimum_tokens']:,} older tokens by {rule['tokenizer']})"
    )
    for target, count in result["labels"].items():
        print(f"{target}: {result['positives'][target]} of {count} labelled points are positive")
    if result["unlabelled"]:
        print(f"{result['unlabelled']} traces are too short for any label")
