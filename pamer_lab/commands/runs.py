"""`pamer-lab runs list | export RUN… --out FILE | import FILE`: stored runs, and runs as a file for another workspace."""

import argparse
from typing import Any

from pamer_lab.commands.scanning import scan_facts, show_findings
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.redaction import own_scan
from pamer_lab.runs.bundle import pack_runs, read_bundle, unpack_runs
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import STATUS_WORDS
from pamer_lab.storage.files import write_whole
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    match args.what:
        case "export":
            if not args.out and not args.scan:
                raise InputError("runs export needs a file: runs export RUN… --out FILE")
            names = args.names or [head.run_id for head in RunStore(workspace).heads() if head.status == "done"]
            scan = own_scan(args.redact)
            body = pack_runs(workspace, names, scan)
            if not args.scan:
                write_whole(args.out, body)
            return {"path": "" if args.scan else args.out, "runs": names, "bytes": len(body)} | scan_facts(scan)
        case "import":
            if not args.names:
                raise InputError("runs import needs a file that `runs export` wrote")
            return {"runs": [name for path in args.names for name in unpack_runs(workspace, read_bundle(path), path)]}
        case _:
            heads = RunStore(workspace).heads()
            kept = ("run_id", "trace_id", "policy", "profile", "status", "turns", "started", "demo")
            return {"runs": [{name: getattr(head, name) for name in kept} for head in heads]}


def show(result: dict[str, Any]) -> None:
    for entry in result["runs"]:
        if isinstance(entry, str):
            print(entry)
        else:
            names = f"{entry['run_id']}  {entry['trace_id']}  {entry['policy']:<24}"
            status, turns = STATUS_WORDS.get(entry["status"], entry["status"]), counted(entry["turns"], "turn")
            print(f"{names} {status:<10} {turns:>12}  {entry['started'][:16]}")
    if "found" in result:
        show_findings(result)
    if result.get("path"):
        print(f"{counted(len(result['runs']), 'run')}, {result['bytes']:,} bytes written to {result['path']}")
