"""`--history`: whether decision states use the full history or the context the agent had; shared by all commands."""

import argparse

from pamer_lab.trajectory.recorded import HISTORIES, History

DEFAULT: History = "recorded"
HELP = (
    "recorded: the context the agent had, with recorded summaries in place of what they replaced (traces without any are read in "
    "full); full: everything before the decision (default: %(default)s)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", choices=HISTORIES, default=DEFAULT, help=HELP)


def sentence(history: History, recorded: int, traces: int) -> str:
    """Which history was used, and in how many traces it differs from the full one."""
    if history == "full":
        return "full history, including what agents compressed away"
    return f"recorded history: {recorded} of {traces} traces record memory operations; the others are read in full"
