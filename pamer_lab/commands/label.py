"""`pamer-lab label TRACE...`: labels by a rule, stored with the traces in the workspace."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import say
from pamer_lab.commands.engine import engine_facts, engine_of, workers_of
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.hindsight import Rule
from pamer_lab.runs.labelling import label_traces
from pamer_lab.storage.files import write_whole
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import ALL
from pamer_lab.trajectory import read_all
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.trajectory.labels import by_hindsight
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    rule = Rule(args.horizon, args.retained, args.minimum)
    workspace = Workspace()
    tokens = profile_tokens(load_profile(args.profile, workspace.path))
    ids = _in_workspace(args.traces, workspace, tokens)
    with engine_of(args, None) as engine:
        workers = workers_of(args, engine)
        label_traces(ids, rule, workspace, args.profile, say, engine, workers)
    points, labels, positives, unlabelled = 0, Counter[str](), Counter[str](), 0
    lines: list[bytes] = []
    for trace in (workspace.trace(trace_id).trace for trace_id in ids):
        own = [label for label in trace.labels if by_hindsight(label)]
        points += len({label.t for label in own})
        labels.update(label.target for label in own)
        positives.update(label.target for label in own if label.value)
        unlabelled += not own
        lines += [to_native(trace) + b"\n"] if args.out is not None else []
    if args.out is not None:
        write_whole(args.out, b"".join(lines))
    return {
        "traces": len(ids),
        "decision_points": points,
        "labels": {target: labels[target] for target in TARGETS},
        "positives": {target: positives[target] for target in TARGETS},
        "rule": rule.facts() | {"tokenizer": tokens.counter.name},
        "origin": rule.origin,
        "unlabelled": unlabelled,
        "out": str(args.out) if args.out else None,
    } | engine_facts(engine, workers)


def _in_workspace(names: list[str], workspace: Workspace, tokens: MessageTokens) -> list[str]:
    """Ids of all named traces, each once; files and folders are imported first."""
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
    found = list(dict.fromkeys(ids))
    if missing := set(found) - set(workspace.trace_sizes(found)):
        workspace.trace(min(missing))  # raises an error that says what to do
    if not found:
        raise InputError(f"the workspace {workspace.path} has no traces; import some: pamer-lab import TRACE...")
    return found


def show(result: dict[str, Any]) -> None:
    rule = result["rule"]
    print(
        f"{counted(result['traces'], 'trace')}, {counted(result['decision_points'], 'decision point')} with hindsight labels "
        f"(origin {result['origin']}: H = {counted(rule['horizon'], 'turn')}, "
        f"{counted(rule['retained'], 'recent block')}, at least {rule['minimum_tokens']:,} older tokens by {rule['tokenizer']})"
    )
    for target, count in result["labels"].items():
        print(f"{target}: {result['positives'][target]} of {count} labelled points are positive")
    if result["unlabelled"]:
        print(f"{counted(result['unlabelled'], 'trace')} too short for any label")
