"""Options that several commands share. Only the standard library is needed here, so that `--help` stays fast."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HISTORY_HELP = (
    "recorded: the context the agent had, with recorded summaries in place of what they replaced (traces without summaries are read in "
    "full); full: everything before the decision (default: %(default)s)"
)
HEADS_HELP = (
    "heads to use (see pamer-lab heads list); default: the packaged heads for the profile's model, otherwise the only registered set"
)
ENGINE_HELP = "local: processes on this machine; ray: a Ray cluster, here or at ADDRESS (docs/scale.md; default: %(default)s)"
HISTORIES = ("full", "recorded")
HISTORY = "recorded"
PRICES = "relative-0.1"
MAX_MB = 10.0
"""Largest share page, in megabytes, by default."""


def as_path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def without_folder(name: str) -> str:
    """The name of a file or folder without its place on this machine; any other name unchanged."""
    path = as_path(name)
    return path.name if path.exists() else name


def history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", choices=HISTORIES, default=HISTORY, help=HISTORY_HELP)


def workers(text: str) -> int:
    """Parse a number of workers; the default, -1, cannot be typed."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"not a number of workers (0 or more): {text[:20]!r}")
    return int(text)


def engine(parser: argparse.ArgumentParser) -> None:
    """Options that choose where the work runs."""
    parser.add_argument("--engine", default="local", metavar="local|ray[:ADDRESS]", help=ENGINE_HELP)
    parser.add_argument(
        "--workers", "--processes", dest="processes", type=workers, default=-1, metavar="N", help="worker processes; 0 runs in this process"
    )
    parser.add_argument(
        "--gpus-per-worker", type=float, default=0.0, metavar="F", help="with --engine ray: GPUs reserved for each worker, such as 1 or 0.5"
    )


def scan(parser: argparse.ArgumentParser, only: str = "") -> None:
    """`--redact` and `--scan`; `only` names the action they apply to if a command has several."""
    where = f"for {only}: " if only else ""
    parser.add_argument(
        "--redact",
        choices=["all", "keys", "none"],
        default="keys",
        help=f"{where}which findings of the secret scan to redact (default: keys)",
    )
    parser.add_argument("--scan", action="store_true", help=f"{where}only list what the secret scan finds; write nothing")


def labels(parser: argparse.ArgumentParser) -> None:
    """Which labels to use, and the source of each trace."""
    parser.add_argument("--labels", default="", metavar="ORIGIN", help="use only labels of this origin, such as hindsight (default: all)")
    parser.add_argument(
        "--sources",
        type=as_path,
        default=None,
        metavar="FILE.csv",
        help="CSV with the columns file and repository, which names the source of each trace (default: its folder)",
    )
