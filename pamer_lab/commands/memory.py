"""`pamer-lab memory check [--repair]`: verify stored memories."""

import argparse
from typing import Any

from pamer_lab.counts import counted
from pamer_lab.memory.check import check, repair
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import require_confirmed
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace

SHOWN = 10
"""Entries of each kind that are printed."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    profile = load_profile(args.profile, workspace.path)
    require_confirmed(profile)
    uri = profile.memory_uri
    if not uri and not workspace.path.exists():
        return {"memories": 0, "blocks": 0, "orphans": [], "missing": [], "mismatched": [], "clean": True}
    database = Database(uri) if uri else workspace.database
    findings = repair(database) if args.repair else check(database)
    result = findings.as_dict()
    if args.repair:
        result["after"] = check(database).as_dict()
    sound = result["after"]["clean"] if args.repair else findings.clean
    return result | {"exit_code": 0 if sound else 1}


def show(result: dict[str, Any]) -> None:
    print(f"{counted(result['memories'], 'memory', 'memories')}, {counted(result['blocks'], 'raw block')}")
    for kind in ("missing", "mismatched", "duplicates", "damaged", "unreadable", "orphans", "repaired"):
        entries = result.get(kind, [])
        if entries:
            print(f"{kind}: {len(entries)}")
            for entry in entries[:SHOWN]:
                print(f"  {entry}")
    if result["clean"]:
        print("all memories are intact")
    elif "after" not in result:
        print("damaged records found; run again with --repair to repair them (blocks of deleted memories become active again)")
