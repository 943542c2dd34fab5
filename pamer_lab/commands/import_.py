"""`pamer-lab import PATH...`: read traces, detect their format, validate, store."""

import argparse
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.cli import INPUT_FAULT, say
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.trajectory import Rejection, Trace, iter_traces
from pamer_lab.workspace import Workspace

HELP = "read trace files and folders into the workspace"
BATCH = 200
"""Traces stored per commit."""
KEYS = [
    *("path", "index", "trace_id", "question_id", "format", "messages", "turns", "blocks"),
    *("tool_calls", "tool_results", "prefix_messages", "tokens", "tokenizer", "labels"),
]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file (also .gz) or a folder")


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    tokens = MessageTokens(embedded_counter())
    stored: list[dict[str, Any]] = []
    rejected: list[dict[str, str]] = []
    batch: list[Trace] = []

    def store() -> None:
        for trace, row in zip(batch, workspace.add_traces(batch, tokens), strict=True):
            warnings = [{"where": warning.where, "text": warning.text} for warning in trace.warnings]
            stored.append({key: row[key] for key in KEYS} | {"warnings": warnings, "tokens_kind": row["tokens_kind"]})
        batch.clear()

    for item in iter_traces(args.paths):
        if isinstance(item, Rejection):
            say(item.sentence)
            rejected.append({"path": item.path, "where": item.where, "reason": item.reason})
            continue
        batch.append(item)
        if len(batch) >= BATCH:
            store()
    store()
    return {"traces": stored, "rejected": rejected, "exit_code": INPUT_FAULT if rejected else 0}


def show(result: dict[str, Any]) -> None:
    for row in result["traces"]:
        print(f"{row['trace_id']}  {row['turns']:>5} turns  {row['tokens']:>9,} tokens  {row['format']:<28} {row['path']}")
    print(f"{len(result['traces'])} traces imported, {len(result['rejected'])} rejected")
