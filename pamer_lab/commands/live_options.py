"""Options of the commands in which an agent acts: behind the live proxy, or in the arena."""

import argparse

from pamer_lab.commands.option_groups import HEADS_HELP, PRICES, engine

AGENT_HELP = "reader (simulated), reader:notes=off, openai:MODEL at OPENAI_BASE_URL, or command:PROGRAM ARGUMENT… behind the live proxy"
DEADLINE = 5.0


def arena(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", default="reader", help=AGENT_HELP)
    parser.add_argument("--suite", metavar="FOLDER", default="", help="your own tasks for a program: one folder per task (docs/arena.md)")
    parser.add_argument("--grader", metavar="COMMAND", default="", help="grades the tasks of --suite: exit code, or JSON on stdout")
    limit = "time limit of a program for one task (default 600), or of a served model for one request (at most 120)"
    parser.add_argument("--time-limit", type=float, default=600.0, metavar="SECONDS", help=limit)
    parser.add_argument("--against", metavar="POLICY", default="", help="policy to compare with, task by task (default: base)")
    parser.add_argument(
        "--policy",
        default="",
        help="NAME[,NAME...], or all (every policy that can act on a running agent); base and the bounds are always included",
    )
    parser.add_argument("--tasks", type=int, default=20, metavar="N", help="number of tasks, the same for every policy (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed gives the same worlds (default 1)")
    parser.add_argument("--level", default="4-2-4", metavar="FACTS-DISTANCE-NOISE", help="how hard the tasks are (default 4-2-4)")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")
    engine(parser)
    parser.add_argument("--fresh", action="store_true", help="discard finished episodes and play them again")
    parser.add_argument("--list", action="store_true", help="list the arenas of the workspace")
    parser.add_argument("--show", metavar="ARENA", default="", help="show the results of an arena")
    parser.add_argument("--open", metavar="ARENA/TASK/POLICY", default="", help="store one episode as a trace with its run, for Replay")


def live_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that starts a proxy."""
    parser.add_argument("--policy", default="base", metavar="NAME", help="context policy (default: base, which only records)")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument(
        "--prices", metavar="NAME|FILE.toml", default="", help=f"price table for the gate and for costs (default: {PRICES})"
    )
    parser.add_argument("--window", type=int, default=0, metavar="N", help="context window of the model in tokens (default: unknown)")
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE, metavar="S", help="maximum seconds to wait for a decision (default: %(default)s)"
    )
    parser.add_argument(
        "--gate", choices=["priced", "none"], default="priced", help="edit only if it pays off, or always (default: priced)"
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")


def serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upstream", required=True, metavar="URL", help="the model server, such as https://api.anthropic.com")
    live_options(parser)


def run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upstream", default="", metavar="URL", help="the model server (default: from the agent's environment variables)")
    live_options(parser)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the agent and its arguments")


def live(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "show"], help="what to do")
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="for show: a session's name, trace id or run id")
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")
