"""`pamer-lab heads list | show NAME | remove NAME`: the heads that can vote, packaged and trained in this workspace."""

import argparse
from typing import Any

from pamer_lab.cli import say
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.probes.registry import find_heads, list_heads, remove
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    folder = Workspace().path
    if args.what == "list":
        found, faults = list_heads(folder)
        for fault in faults:
            say(fault)
        return {"heads": [entry.row() for entry in found], "faults": faults}
    if not args.name:
        raise InputError(f"heads {args.what} needs a name; `pamer-lab heads list` shows them")
    if args.what == "remove":
        entry = find_heads(args.name, folder)
        remove(args.name, folder)
        return {"removed": entry.row()}
    entry = find_heads(args.name, folder)
    made = {key: entry.heads.facts.get(key) for key in ("metrics", "teacher", "splits")}
    return {"heads": [entry.row() | {"thresholds": list(entry.heads.thresholds), "seeds": list(entry.heads.seeds)} | made]}


def show(result: dict[str, Any]) -> None:
    if "removed" in result:
        print(f"removed {result['removed']['name']} ({result['removed']['sha256'][:12]})")
        return
    print(f"{'name':<24}{'model':<26}{'layer':<10}{'hint':<10}{'AUROC':>15}  {'corpus':<32}{'sha256':<14}source")
    for row in result["heads"]:
        auroc = f"{row['auroc']['mean']:.3f} ± {row['auroc']['sd']:.3f}" if row["auroc"] else "unknown"
        corpus = (
            f"{counted(row['corpus']['decision_points'], 'decision')}, {counted(row['corpus']['traces'], 'trace')}"
            if row["corpus"]
            else "unknown"
        )
        facts = f"{row['layer']:<10}{row['hint']:<10}{auroc:>15}  {corpus:<32}{row['sha256'][:12]:<14}{row['source']}"
        print(f"{row['name']:<24}{row['model']:<26}{facts}")
    for row in result["heads"]:
        if "thresholds" in row:
            print(
                f"\ntarget {row['target']}, context {row['context']}, pooling {row['pooling']}, width {row['width']}, "
                f"{counted(row['count'], 'head')}"
            )
            print(f"thresholds: {', '.join(f'{value:.3f}' for value in row['thresholds'])}")
            print(f"probe system prompt: {row['probe_system_prompt'] or '(none)'}")
            print(f"made by: {row['command'] or '(unknown)'}\nfolder: {row['folder']}")
