"""`pamer-lab live list | show SESSION`: recorded live sessions; each is also a trace and a run of the workspace."""

import argparse
from datetime import datetime
from typing import Any

from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.logs import Logs
from pamer_lab.live.publish import publish
from pamer_lab.live.record import Record
from pamer_lab.live.summary import described, summary
from pamer_lab.prices import find_prices
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    prices = find_prices(args.prices, workspace.path)
    logs = Logs(workspace.path)
    if args.what == "show":
        asked_for = _find(logs, args.session)
        _publish(workspace, asked_for)
        return {"sessions": [described(asked_for, prices)]}
    records = [record for name in logs.names() if (record := logs.read(name)[0]) is not None]
    for record in records:
        _publish(workspace, record)
    outside = next((record for record in records if record.session == OUTSIDE), None)
    return {
        "sessions": [summary(record, prices) for record in records if record.session != OUTSIDE],
        "outside": {
            "unread": len(outside.asked) if outside else 0,
            "side_calls": len(outside.sides) if outside else 0,
        },
    }


def _publish(workspace: Workspace, record: Record) -> None:
    if not reviewer_mode(workspace.path):
        publish(workspace, record)


def _find(logs: Logs, name: str) -> Record:
    if not name:
        raise InputError("live show needs a session; `pamer-lab live list` shows them")
    for session in logs.names():
        record = logs.read(session)[0]
        if record is not None and name in (record.session, record.trace_id, record.run_id):
            return record
    raise InputError(f"session {name!r} is not in this workspace; `pamer-lab live list` shows them")


def show(result: dict[str, Any]) -> None:
    if not result["sessions"]:
        print("No live sessions yet. Start a proxy: pamer-lab serve --upstream URL")
    for entry in result["sessions"]:
        _show_session(entry)
        for row in entry["requests"] if isinstance(entry["requests"], list) else []:
            happened = "FELL BACK" if row["fallback"] else "edit" if row["edit"] else row["sent"]
            tokens = f"{row['client_tokens']:,} -> {row['model_tokens']:,} tokens" if row["client_tokens"] is not None else ""
            print(f"  turn {row['t']:>4}  {happened:<9} {tokens:<26} {row['fallback'] or row['reason']}")


def _show_session(entry: dict[str, Any]) -> None:
    when = datetime.fromtimestamp(entry["last"]).strftime("%Y-%m-%d %H:%M")
    tokens, cost = entry["tokens"], entry["cost"]
    relative = f", {cost['vs_base']:.2f} x pass-through (simulated)" if cost.get("vs_base") is not None else ""
    print(f"{entry['session']:<28} {entry['client']:<14} {entry['api']:<10} {entry['policy']:<32} {when}")
    happened = ", ".join(counted(entry[f"{thing}s"], thing) for thing in ("turn", "edit", "fallback"))
    print(
        f"    {happened}; client {tokens['client']:,}, model "
        f"{tokens['model']:,} tokens ({tokens['kind']}, {tokens['tokenizer']}){relative}; trace {entry['trace_id']}, run {entry['run_id']}"
    )
