"""Options of the commands that label decision points, extract hidden states there and train probes on them."""

import argparse

from pamer_lab.commands.option_groups import as_path, engine, history, labels

PROMPT_HELP = "system prompt prepended to each trace's own in every probe input (default: the profile's)"
FUTURE_HELP = (
    "none: the model sees what the agent saw; action: also the recorded next action, like the paper's annotator (default: %(default)s)"
)
STUDENTS_LAYER = (
    "layer of students and heads; preferred: by validation; teacher: the teacher's layer (default: preferred; profile paper: final)"
)
CONDITIONS_LAYER = "layer for all conditions; preferred: by validation on the Full Context (default: preferred; profile paper: final)"
HINT_HELP = "context hint in the students' input (default: none; profile paper: faithful)"
TEACHER_HELP = "full: students also learn from probes on the full context (default); none: they learn from labels alone"
FUTURES = ("none", "action")
SEEDS = "0,1,2,3,4"
HORIZON = 5
SPLITS = ("question", "source")
CAPS = "8K,16K"
STATES_MEMORY_HELP = "maximum megabytes of hidden states in memory; a larger study reads them from the workspace in parts (default: 4000)"
WORKSPACE = "@workspace"
"""Given instead of traces: all traces of the workspace; for studies, all labelled ones."""


def _states_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--states-memory", type=_megabytes, default=4000.0, metavar="MB", help=STATES_MEMORY_HELP)


def _megabytes(text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of megabytes above 0, not {text[:20]!r}")
    return size


def study(parser: argparse.ArgumentParser) -> None:
    """Options that all studies have."""
    traces = f"labelled trace files or folders, ids of imported traces, or {WORKSPACE} for all labelled traces of the workspace"
    parser.add_argument("traces", nargs="+", metavar="TRACE", help=traces)
    parser.add_argument("--seeds", default=SEEDS, help="split and initialisation seeds (default: %(default)s)")
    history(parser)
    parser.add_argument("--replicas", type=int, default=0, metavar="N", help="use the first N traces of each question (default: all)")
    labels(parser)
    parser.add_argument(
        "--split-by",
        choices=SPLITS,
        default="question",
        help="what a split keeps together: a question or a source (default: question)",
    )
    parser.add_argument("--probe-prompt", default=None, metavar="TEXT|@FILE", help=PROMPT_HELP)
    engine(parser)
    parser.add_argument("--name", default="", help="a name for the study")
    parser.add_argument("--out", type=as_path, default=None, metavar="FILE.json", help="also write the study to a file")


def extract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a file, a folder, or the id of an imported trace")
    parser.add_argument(
        "--contexts", default="full,recent2", help="comma-separated contexts: full, current, recentK (default: %(default)s)"
    )
    parser.add_argument("--hint", choices=["none", "faithful"], default="none", help="context-token hint to add (default: %(default)s)")
    parser.add_argument("--probe-prompt", default=None, metavar="TEXT|@FILE", help=PROMPT_HELP)
    history(parser)
    engine(parser)
    parser.add_argument("--layers", default="all", help="all, or names such as block_4,final (default: %(default)s)")
    parser.add_argument("--poolings", default="last,mean", help="last, mean (default: %(default)s)")


def train(parser: argparse.ArgumentParser) -> None:
    study(parser)
    _states_memory(parser)
    parser.add_argument("--contexts", default="recent2", help="compact contexts of the students (default: %(default)s)")
    parser.add_argument("--layer", default="", help=STUDENTS_LAYER)
    parser.add_argument("--layers", default="all", help="layers that preferred chooses from (default: %(default)s)")
    parser.add_argument("--hint", choices=("none", "faithful"), default="", help=HINT_HELP)
    parser.add_argument("--teacher", choices=("full", "none"), default="full", help=TEACHER_HELP)
    parser.add_argument(
        "--heads", default="", metavar="NAME|FOLDER", help="register the compression heads (students of the first context) in the workspace"
    )


def layerwise(parser: argparse.ArgumentParser) -> None:
    study(parser)
    _states_memory(parser)
    parser.add_argument("--layers", default="all", help="all, or names such as block_4,block_8,final (default: %(default)s)")
    parser.add_argument("--context", default="full", help="full, current, recent1, recent2 or recent4 (default: %(default)s)")
    parser.add_argument("--hint", choices=["none", "faithful"], default="none")


def controls(parser: argparse.ArgumentParser) -> None:
    study(parser)
    _states_memory(parser)
    parser.add_argument("--layers", default="all", help="layers of the hidden state (default: %(default)s)")
    parser.add_argument("--context", default="full", help="context of the hidden state (default: %(default)s)")


def compact(parser: argparse.ArgumentParser) -> None:
    study(parser)
    _states_memory(parser)
    parser.add_argument("--conditions", default="all", help="comma-separated names or groups, or all (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="use about N decision points, the same share of every question")
    parser.add_argument("--sample-seed", type=int, default=0, metavar="S", help="seed of the sample (default: %(default)s)")
    parser.add_argument("--layer", default="", help=CONDITIONS_LAYER)
    parser.add_argument("--caps", default=CAPS, help="evidence caps for Top3 by embedding, in tokens (default: %(default)s)")
    parser.add_argument("--estimate", action="store_true", help="print the estimated tokens and time, and stop")


def annotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="trace files or folders")
    parser.add_argument(
        "--out", type=as_path, default=None, metavar="FILE.jsonl", help="write the labelled traces to this file, in our own format"
    )
    parser.add_argument("--future", choices=FUTURES, default="none", help=FUTURE_HELP)
    history(parser)
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="ask at most N questions in this run; the next run continues")


def label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help=f"trace files or folders (which are imported), ids of imported traces, or {WORKSPACE} for all traces of the workspace",
    )
    engine(parser)
    parser.add_argument("--rule", choices=["hindsight"], default="hindsight", help="how labels are made (default: %(default)s)")
    parser.add_argument(
        "--horizon", type=int, default=HORIZON, metavar="H", help="turns without use before compression (default: %(default)s)"
    )
    parser.add_argument(
        "--retained", type=int, default=2, metavar="BLOCKS", help="complete blocks that count as recent (default: %(default)s)"
    )
    parser.add_argument(
        "--minimum",
        type=int,
        default=1024,
        metavar="TOKENS",
        help="label compression only if older blocks have at least this many tokens (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=as_path, default=None, metavar="FILE.jsonl", help="also write the labelled traces to this file, in our own format"
    )
