"""`pamer-lab run -- COMMAND…`: run an agent behind its own proxy, with a summary at the end.

Base-URL variables are set only for the child process; the user's configuration does not change.
"""

import argparse
import subprocess
import sys
from typing import Any
from urllib.parse import quote

from pamer_lab.cli import say
from pamer_lab.commands.serve import options_of, warmed
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.live.child import child_environment, upstreams
from pamer_lab.live.desk import OUTSIDE
from pamer_lab.live.serve import build, running
from pamer_lab.live.summary import summary
from pamer_lab.prices import find_prices
from pamer_lab.workspace import Workspace

NOT_FOUND = 127
DASHBOARD = "http://127.0.0.1:8501/live"
"""The Live page of `pamer-lab app` on its default port."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise InputError("run needs the agent's command: pamer-lab run -- COMMAND…")
    workspace = Workspace()
    openai, anthropic = upstreams(args.upstream)
    live = build(workspace, openai, options_of(args), anthropic=anthropic)
    warmed(live)
    before = {thread.record.session: len(thread.record.asked) for thread in live.desk.threads.all()}
    with running(workspace, live, args.port) as found:
        say(f"{words[0]} runs behind {found.url} with policy {found.policy}")
        code = _child(words, child_environment(found.url), quiet=args.json)
    prices = find_prices(args.prices, workspace.path)
    threads = [live.desk.threads.get(name) for name in live.desk.threads.places() if name != OUTSIDE]
    records = [thread.record for thread in threads if thread is not None]
    rows = [summary(record, prices) for record in records if len(record.asked) > before.get(record.session, 0)]
    return {"exit_code": code, "command": words[0], "policy": found.policy, "sessions": rows, "totals": _totals(rows), "page": _page(rows)}


def _page(rows: list[dict[str, Any]]) -> str:
    """Where a running dashboard shows the session, or the one with the most turns if there are several."""
    longest = max(rows, key=lambda row: row["turns"], default=None)
    return DASHBOARD + (f"?session={quote(longest['session'])}" if longest else "")


def _child(words: list[str], environment: dict[str, str], *, quiet: bool) -> int:
    """The agent's exit code; with --json its output goes to stderr."""
    try:
        with subprocess.Popen(words, env=environment, stdout=sys.stderr if quiet else None) as child:
            while True:
                try:
                    return child.wait()
                except KeyboardInterrupt:  # the agent received it too; wait until it ends
                    continue
    except FileNotFoundError:
        say(f"{words[0]}: command not found")
        return NOT_FOUND


def _totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    spent, base = [[row["cost"].get(key) for row in rows if row["cost"].get(key) is not None] for key in ("simulated", "passed_through")]
    sums = {key: sum(row[key] for row in rows) for key in ("turns", "edits", "fallbacks")}
    tokens = {key: sum(row["tokens"][key] for row in rows) for key in ("client", "model")}
    known = [row["cost"]["total"] for row in rows]
    cost = {
        "recorded": sum(known) if known and None not in known else None,
        "simulated": sum(spent),
        "passed_through": sum(base),
        "vs_base": sum(spent) / sum(base) if sum(base) else None,
    }
    return sums | {"tokens": tokens, "cost": cost}


def show(result: dict[str, Any]) -> None:
    totals = result["totals"]
    cost, tokens = totals["cost"], totals["tokens"]
    relative = f"{cost['vs_base']:.2f} x pass-through (simulated)" if cost["vs_base"] is not None else "unknown"
    print(f"\n{counted(len(result['sessions']), 'session')}, {counted(totals['turns'], 'turn')} with policy {result['policy']}")
    print(f"  tokens: the client sent {tokens['client']:,}, the model saw {tokens['model']:,}")
    print(f"  cost: {relative}; edits: {totals['edits']}; fallbacks: {totals['fallbacks']}")
    print(f"  page: {result['page']} while `pamer-lab app` runs; or: pamer-lab live list")
