"""`pamer-lab heads list | show NAME | remove NAME | test NAME TRACE...`: the available heads, and how well they do on labelled traces."""

import argparse
from typing import Any

from pamer_lab.cli import say
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.probes.registry import NamedHeads, find_heads, list_heads, remove
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
    if args.what == "test":
        return _test(args, entry)
    made = {key: entry.heads.facts.get(key) for key in ("metrics", "teacher", "splits")}
    return {"heads": [entry.row() | {"thresholds": list(entry.heads.thresholds), "seeds": list(entry.heads.seeds)} | made]}


def _test(args: argparse.Namespace, entry: NamedHeads) -> dict[str, Any]:
    """Evaluate the heads on labelled traces, which should not have been used in training; nothing is fitted."""
    from pamer_lab.commands.studying import find_traces
    from pamer_lab.factory import Factory
    from pamer_lab.models.profiles import load_profile
    from pamer_lab.studies.bank import BankMaker
    from pamer_lab.studies.decisions import TARGETS, decisions_of, with_origin
    from pamer_lab.studies.distill import by_group, test_of
    from pamer_lab.studies.sources import sources_of

    workspace, heads = Workspace(), entry.heads
    if not args.traces:
        raise InputError("heads test needs labelled traces: files, folders, ids, or @workspace")
    traces = find_traces(args.traces, workspace)
    traces = with_origin(traces, args.labels) if args.labels else traces
    decisions = decisions_of(traces, args.history, sources_of(traces, args.sources), by_source=True)
    frozen = Factory(load_profile(args.profile, workspace.path), workspace, args.device).model
    heads.require(frozen.name, frozen.width, frozen.fingerprint)
    maker = BankMaker({trace.trace_id: trace for trace in traces}, decisions, frozen, workspace, say, heads.probe_system_prompt)
    layer = heads.layer.replace(":", "_")
    bank = maker.get(heads.context, "faithful" if heads.hint == "faithful" else "none", [layer])
    origins = sorted({label.origin for trace in traces for label in trace.labels})
    found = test_of(heads, decisions, bank.of(layer, heads.pooling))
    sources = by_group(decisions, TARGETS.index(heads.target))
    return {"heads": [entry.row()], "test": found | {"labels": origins, "traces": decisions.facts()["traces"], "sources": sources}}


def show(result: dict[str, Any]) -> None:
    if test := result.get("test"):
        found = test["metrics"]["auroc"]
        low, high = found["interval"] or (float("nan"), float("nan"))
        print(
            f"{result['heads'][0]['name']}: AUROC {found['mean']:.3f} [{low:.3f}, {high:.3f}] at {test['n']} decisions of {test['traces']} "
            f"traces and {len(test['sources'])} sources ({', '.join(test['labels'])} labels, base rate {test['base_rate']:.3f})"
        )
        return
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
        print(f"{row['name']:<24}{row['model']:<26}{facts}{' (default)' if row['default'] else ''}")
    for row in result["heads"]:
        if row["default"]:
            print(f"{row['name']} is the default: {row['why_default']}")
        if found := row.get("unseen"):
            low, high = found["auroc"]["interval"]
            print(
                f"{row['name']} on unseen sources: AUROC {found['auroc']['mean']:.3f} [{low:.3f}, {high:.3f}], "
                f"{found['labels']} labels, n = {found['n']} decisions of {counted(found['traces'], 'trace')}"
            )
    for row in result["heads"]:
        if "thresholds" in row:
            print(
                f"\ntarget {row['target']}, context {row['context']}, pooling {row['pooling']}, width {row['width']}, "
                f"{counted(row['count'], 'head')}"
            )
            print(f"thresholds: {', '.join(f'{value:.3f}' for value in row['thresholds'])}")
            print(f"probe system prompt: {row['probe_system_prompt'] or '(none)'}")
            print(f"created by: {row['command'] or '(unknown)'}\nfolder: {row['folder']}")
