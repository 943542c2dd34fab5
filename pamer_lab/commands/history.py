"""`--history`: whether decision states are taken of the full history or of what the agent really had; the same for all commands."""

import argparse

from pamer_lab.trajectory.recorded import HISTORIES, History

DEFAULT: History = "recorded"
HELP = (
    "recorded: what the agent really had, with recorded summaries in place of what they replaced (a trace that records none is read "
    "in full); full: everything before the decision (default: %(default)s)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", choices=HISTORIES, default=DEFAULT, help=HELP)


def sentence(history: History, recorded: int, traces: int) -> str:
    """Which history was used, and in how many traces it differs from the full one."""
    if history == "full":
        return "full history, whatever the agents compressed away"
    return f"recorded history: {recorded} of {traces} traces record memory operations; the others are read in full"
