"""`pamer-lab serve --upstream URL`: the live proxy on loopback, until it is stopped.

With `--json` one line with `url` and `token` is printed when it is ready; nothing follows it on stdout.
"""

import argparse
import asyncio
import signal
import sys

import orjson

from pamer_lab.cli import say
from pamer_lab.live.policy import LiveOptions
from pamer_lab.live.serve import Live, announced, build, listening, publishing, quick, server_for
from pamer_lab.workspace import Workspace


def options_of(args: argparse.Namespace) -> LiveOptions:
    """What the command line asks for."""
    return LiveOptions(
        args.policy, args.profile, args.device, args.heads, args.prices, max(args.window, 0), max(args.deadline, 0.0), args.gate == "priced"
    )


def warmed(live: Live) -> None:
    """Load what the policy needs before the first request comes, and set the process up for answering."""
    if live.desk.workshop.policy.needs_models:
        say("loading the model and the heads …")
    live.desk.workshop.warm()
    quick()


def run(args: argparse.Namespace) -> None:
    workspace = Workspace()
    live = build(workspace, args.upstream, options_of(args))
    with listening(args.port) as bound:
        warmed(live)
        # The end of the block stores what is open, so a polite kill must come through as an interruption.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = server_for(live.proxy)
        with announced(workspace, live, bound.getsockname()[1]) as found, publishing(workspace, live.desk):
            bound.listen(128)  # from here on connections are taken, if a moment later
            if args.json:
                ready = {"url": found.url, "token": found.token, "upstream": found.upstream, "policy": found.policy, "pid": found.pid}
                sys.stdout.write(orjson.dumps(ready).decode() + "\n")
                sys.stdout.flush()
            else:
                say(f"PaMER Lab listens on {found.url} and passes on to {found.upstream} with the policy {found.policy}")
                say(f"  ANTHROPIC_BASE_URL={found.url}   OPENAI_BASE_URL={found.url}/v1   (docs/live.md)   stop: Ctrl-C")
            try:
                asyncio.run(server.serve([bound]))
            except KeyboardInterrupt:
                say("stopped; every session is kept: pamer-lab live list")
