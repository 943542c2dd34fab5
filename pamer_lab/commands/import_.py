"""`pamer-lab import PATH...`: read traces, detect their format, validate, store."""

import argparse
from typing import Any

from pamer_lab.cli import INPUT_FAULT, say
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths

KEYS = [
    *("path", "index", "trace_id", "question_id", "format", "messages", "turns", "blocks"),
    *("tool_calls", "tool_results", "prefix_messages", "tokens", "tokenizer", "labels", "warnings", "tokens_kind"),
]


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    tokens = profile_tokens(load_profile(args.profile, workspace.path))
    result = import_paths(args.paths, workspace, labels=args.labels, on_reject=lambda item: say(item.sentence), tokens=tokens)
    rejected = [{"path": item.path, "where": item.where, "reason": item.reason} for item in result.rejected]
    traces = [{key: row[key] for key in KEYS} for row in result.traces]
    return {"traces": traces, "rejected": rejected, "exit_code": INPUT_FAULT if rejected else 0}


def show(result: dict[str, Any]) -> None:
    for row in result["traces"]:
        print(f"{row['trace_id']}  {row['turns']:>5} turns  {row['tokens']:>9,} tokens  {row['format']:<28} {row['path']}")
    print(f"{len(result['traces'])} traces imported, {len(result['rejected'])} rejected")
