"""`pamer-lab serve --upstream URL`: the live proxy on loopback, until it is stopped.

With `--json`, one line with `url` and `token` is printed on stdout when the proxy is ready, and nothing after it.
"""

import argparse
import asyncio
import signal
import sys

import orjson

from pamer_lab.cli import say
from pamer_lab.errors import InputError
from pamer_lab.live.policy import LiveOptions
from pamer_lab.live.serve import Live, announced, build, listening, publishing, quick, server_for
from pamer_lab.workspace import Workspace


def options_of(args: argparse.Namespace) -> LiveOptions:
    """The proxy's options from the command line."""
    for name, value in (("--window", args.window), ("--deadline", args.deadline)):
        if not value >= 0:  # NaN is refused too
            raise InputError(f"{name} must be 0 or more, not {value}")
    return LiveOptions(args.policy, args.profile, args.device, args.heads, args.prices, args.window, args.deadline, args.gate == "priced")


def warmed(live: Live) -> None:
    """Load what the policy needs before the first request, and prepare the process for fast answers."""
    if live.desk.workshop.policy.needs_models:
        say("loading the model and the heads …")
    live.desk.workshop.warm()
    quick()


def run(args: argparse.Namespace) -> None:
    workspace = Workspace()
    live = build(workspace, args.upstream, options_of(args))
    with listening(args.port) as bound:
        warmed(live)
        # Open sessions are stored when the block ends, so SIGTERM must arrive as a KeyboardInterrupt.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = server_for(live.proxy)
        with announced(workspace, live, bound.getsockname()[1]) as found, publishing(workspace, live.desk):
            bound.listen(128)  # connections queue from here on, until the server accepts them
            if args.json:
                ready = {"url": found.url, "token": found.token, "upstream": found.upstream, "policy": found.policy, "pid": found.pid}
                sys.stdout.write(orjson.dumps(ready).decode() + "\n")
                sys.stdout.flush()
            else:
                say(f"PaMER Lab listens on {found.url} and forwards to {found.upstream} with policy {found.policy}")
                say(f"  ANTHROPIC_BASE_URL={found.url}   OPENAI_BASE_URL={found.url}/v1   (docs/live.md)   stop: Ctrl-C")
            try:
                asyncio.run(server.serve([bound]))
            except KeyboardInterrupt:
                say("stopped; all sessions are saved: pamer-lab live list")
