"""`pamer-lab import PATH...`: read traces, detect their format, validate, store; `--from TOOL`: sessions of a coding agent."""

import argparse
from typing import Any

from pamer_lab.cli import INPUT_FAULT, say
from pamer_lab.commands.scanning import scan_facts, show_findings
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import Imported, import_paths
from pamer_lab.workspace.sessions import TOOLS, choose, find_sessions, import_sessions

KEYS = [
    *"path index trace_id question_id format messages turns blocks".split(),
    *"tool_calls tool_results prefix_messages tokens tokenizer labels warnings tokens_kind".split(),
    *"confidence not_read reward".split(),
]


def run(args: argparse.Namespace) -> dict[str, Any]:
    if bool(args.paths) == bool(args.tool):
        raise InputError("name files or folders, or a coding agent with --from, but not both")
    workspace = Workspace()
    if args.tool:
        return _from_tool(args, workspace)
    if args.choose or args.scan:
        raise InputError("--choose and --scan work only with --from")
    tokens = profile_tokens(load_profile(args.profile, workspace.path))
    return _facts(import_paths(args.paths, workspace, labels=args.labels, on_reject=lambda item: say(item.sentence), tokens=tokens))


def _facts(result: Imported) -> dict[str, Any]:
    rejected = [
        {
            "path": item.path,
            "where": item.where,
            "reason": item.reason,
            "tried": [{"format": name, "reason": why} for name, why in item.tried],
        }
        for item in result.rejected
    ]
    traces = [{key: row[key] for key in KEYS} for row in result.traces]
    return {"traces": traces, "rejected": rejected, "exit_code": INPUT_FAULT if rejected else 0}


def _from_tool(args: argparse.Namespace, workspace: Workspace) -> dict[str, Any]:
    """List the sessions; with `--choose`, import the chosen ones after the secret scan."""
    if args.most < 1:
        raise InputError("--most must be 1 or more")
    if args.labels:
        raise InputError("--labels works only with files; import the sessions first")
    found = find_sessions(args.tool, most=args.most)
    listed = [{"number": number, **vars(session)} for number, session in enumerate(found.sessions, start=1)]
    facts = {"tool": args.tool, "folders": list(found.folders), "sessions": listed, "left": found.left}
    if not args.choose:
        if args.scan:
            raise InputError("--scan needs --choose to select the sessions to scan")
        return facts | {"traces": [], "rejected": [], "chosen": 0}
    chosen = choose(found.sessions, args.choose)
    tokens = profile_tokens(load_profile(args.profile, workspace.path))
    result, scan = import_sessions(chosen, workspace, redact=args.redact, tokens=tokens, store=not args.scan)
    for item in result.rejected:
        say(item.sentence)
    return facts | _facts(result) | scan_facts(scan) | {"chosen": len(chosen)}


def show(result: dict[str, Any]) -> None:
    if "sessions" in result and not result["chosen"]:
        _show_sessions(result)
        return
    if "found" in result:
        show_findings(result)
    for row in result["traces"]:
        sure = "" if row["confidence"] == "recognised" else f" ({row['confidence']})"
        print(
            f"{row['trace_id']}  {row['turns']:>5} turns  {row['tool_calls']:>5} calls  {row['tool_results']:>5} results  "
            f"{row['tokens']:>9,} tokens  {row['format'] + sure:<28} {row['path']}"
        )
        for text in row["not_read"]:
            print(f"    {_plain(text)}")
    print(f"{counted(len(result['traces']), 'trace')} imported, {len(result['rejected']):,} rejected")


def _show_sessions(result: dict[str, Any]) -> None:
    if not result["folders"]:
        print(f"no sessions of {result['tool']}: none of its folders exists ({', '.join(TOOLS[result['tool']].folders)})")
        return
    for row in result["sessions"]:
        words = _plain((row["fault"] and f"cannot be read: {row['fault']}") or row["first"])
        print(f"{row['number']:>4}  {row['modified'][:16]}  {row['bytes'] / 1000:>9,.0f} kB  {row['turns']:>5} turns  {words}")
    more = f", {result['left']} older ones not listed (--most)" if result["left"] else ""
    print(
        f"{counted(len(result['sessions']), 'session')} of {result['tool']} in {', '.join(result['folders'])}{more}; "
        "import with --choose 1,3-5 or all"
    )


def _plain(text: str) -> str:
    """Untrusted text, made safe for a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
