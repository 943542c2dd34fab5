"""The table of commands: what each takes on the command line, and what its help says.

Kept apart from the commands, so that `--help` imports only the standard library. Choices and defaults that repeat values of the library
are compared with it by a test.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from pamer_lab.commands import live_options, study_options
from pamer_lab.commands.option_groups import HEADS_HELP, MAX_MB, PRICES, as_path, engine, history, labels, scan

TOOLS = ("claude-code", "codex", "opencode", "gemini", "copilot", "cursor", "qwen", "goose")
MOST = 50


class Command(NamedTuple):
    """One command of the program."""

    module: str
    """Under `pamer_lab/commands/`; offers `run(args) -> dict`, and may offer `show(result)`."""
    help: str
    configure: Callable[[argparse.ArgumentParser], None]


def _none(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a file (also .gz) or a folder")
    parser.add_argument(
        "--from",
        dest="tool",
        choices=TOOLS,
        metavar="TOOL",
        help=f"list the sessions of a coding agent on this computer: {', '.join(TOOLS)}",
    )
    parser.add_argument("--choose", default="", metavar="N", help="with --from: import these from the list (1,3-5, trace ids, or all)")
    parser.add_argument(
        "--most", type=int, default=MOST, metavar="N", help="with --from: list at most N sessions, newest first (default: %(default)s)"
    )
    scan(parser, "--from")
    parser.add_argument("--labels", metavar="FILE", type=as_path, help="file of labels for these traces (docs/trace-format.md)")


def _generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=48, metavar="N", help="number of questions, each with its own world (default 48)")
    parser.add_argument("--replicas", type=int, default=2, metavar="K", help="runs per question (default 2)")
    parser.add_argument("--seed", type=int, default=7, metavar="S", help="the same seed gives the same bytes (default 7)")
    parser.add_argument("--out", type=as_path, required=True, metavar="DIR", help="folder for traces.jsonl")
    parser.add_argument("--demo", action="store_true", help="write the three long demo traces instead, one file each")


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["check"], help="what to do")
    parser.add_argument("--repair", action="store_true", help="delete damaged records; their blocks become active again")


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "export", "import", "agreement", "check", "labels"], help="what to do")
    parser.add_argument(
        "file",
        nargs="?",
        default="",
        metavar="FILE",
        help="for export and import: .csv, .jsonl or .parquet; for import also a share page's .json",
    )
    scan(parser, "export")
    parser.add_argument("--run", default="", metavar="RUN", help="for list: only this run's selections")


def _heads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "show", "remove", "test"], help="what to do")
    parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="for show and test: a name or a folder; for remove: a registered name"
    )
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="for test: labelled traces that were not used in training")
    labels(parser)
    history(parser)


def _policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fit-lre", nargs="+", metavar="PATH", help="instead of listing, fit the weights of the lre policy on these traces"
    )
    parser.add_argument(
        "--fit-probing-rag",
        nargs="+",
        metavar="PATH",
        help="instead of listing, fit the probe of pamer:recall=probing-rag for the profile's model on these labelled traces",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="where to write the weights as JSON; with --fit-probing-rag the default is the workspace"
    )


def _replay(parser: argparse.ArgumentParser) -> None:
    named = f"ids of imported traces, trace files or folders, or {study_options.WORKSPACE} for all traces of the workspace"
    parser.add_argument("traces", nargs="*", metavar="TRACE", help=named)
    parser.add_argument(
        "--policy",
        default="",
        help="NAME[,NAME...]; or all (every policy that can run here), light (those without a model), programs (agent programs with their "
        "default settings), or a family; see pamer-lab policies",
    )
    parser.add_argument("--turn-limit", type=int, default=0, metavar="N", help="replay only the first N turns of each trace")
    engine(parser)
    parser.add_argument("--fresh", action="store_true", help="discard stored runs and recompute them")
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")
    parser.add_argument("--table", metavar="FILE.md", default="", help="also write a Markdown table of cost and evidence by policy")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument("--estimate", action="store_true", help="print the models, tokens and time needed, and stop")
    parser.add_argument("--list", action="store_true", help="list the policies with their parameters and known deviations")


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "export", "import"], help="what to do")
    parser.add_argument("names", nargs="*", metavar="RUN|FILE", help="for export: run ids (default: every finished run); for import: files")
    parser.add_argument("--out", default="", metavar="FILE", help="for export: the file to write")
    scan(parser, "export")


def _whatif(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id of a PaMER run")
    parser.add_argument("--threshold", metavar="P[,P...]", default="", help="probability for all heads, or one per head")
    parser.add_argument("--threshold-scale", metavar="F", type=float, default=1.0, help="factor on the stored thresholds")
    parser.add_argument("--vote", metavar="N", type=int, default=None, help="heads that must agree")
    parser.add_argument("--min-candidate", metavar="TOKENS", type=int, default=None, help="minimum candidate size (tokens)")
    parser.add_argument("--retained", metavar="BLOCKS", type=int, default=None, help="complete blocks kept (approximate)")
    parser.add_argument("--horizon", metavar="TURNS", type=int, default=None, help="compress only if it pays back within this many turns")
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help="price table for --horizon (see pamer-lab prices)")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run ids, or trace ids (for the newest finished run of each policy)")
    parser.add_argument("--out", metavar="FILE.html", default="report.html", help="output file; FILE.zip is written next to it")
    parser.add_argument("--growth", action="store_true", help="add a section on context growth over all these runs")
    parser.add_argument("--prices", metavar="NAME", default="", help=f"price table for costs (see pamer-lab prices; default: {PRICES})")
    parser.add_argument(
        "--study", action="append", default=[], metavar="ID", help="add a study from the workspace, or a sample result by name"
    )
    parser.add_argument("--published", action="append", default=[], metavar="TABLE", help="add a table from the paper")
    parser.add_argument(
        "--arena", action="append", default=[], metavar="ID", help="add the results of an arena (see pamer-lab arena --list)"
    )
    parser.add_argument("--against", metavar="POLICY", default="base", help="policy that arena results are compared with (default: base)")
    parser.add_argument("--title", default="", help="title of the page")
    parser.add_argument("--no-text", action="store_true", help="omit the text of traces, summaries and recalled memories")
    scan(parser)
    parser.add_argument("--max-mb", type=float, default=MAX_MB, metavar="MB", help=f"maximum size of the page (default: {MAX_MB:g})")
    parser.add_argument("--config", metavar="FILE", default="", help="recreate a report from the config.json in its zip")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the benchmark; `list` shows all names")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="for `traces` and `hindsight`: trace files or folders (default for `traces`: the packaged demo traces)",
    )
    counted = "kills (`crash`), sessions (`load`), cases (`fuzz`), blocks (`replay`) or traces (`scale`; `hindsight`, shortest first)"
    parser.add_argument("--count", type=int, metavar="N", help=f"number of {counted}")
    parser.add_argument(
        "--part", action="append", metavar="NAME", help="run only this part of `replay`, `scale` or `start`; may be repeated"
    )


def _app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument(
        "--token",
        choices=["files", "required"],
        help="what the token in the printed link protects: reading files on this computer (default), or everything (for shared machines)",
    )


COMMANDS: dict[str, Command] = {
    "doctor": Command("doctor", "show devices, models, heads and storage, and how to install what is missing", _none),
    "import": Command("import_", "read trace files and folders into the workspace", _import),
    "extract": Command(
        "extract", "compute the frozen model's hidden states at every decision point and cache them in the workspace", study_options.extract
    ),
    "generate": Command("generate", "write labelled synthetic traces", _generate),
    "arena": Command("arena", "run an agent under each context policy, and compare success, tokens and cost", live_options.arena),
    "prepare": Command("prepare", "verify and prepare the embedded weights once, so that later starts are fast", _none),
    "memory": Command("memory", "check the stored memories: orphans, missing blocks, hash mismatches, duplicates", _memory),
    "audit": Command(
        "audit", "list, export, import or check step selections and their reviews, or measure agreement between reviewers", _audit
    ),
    "heads": Command("heads", "list the available heads, show one set, test it on labelled traces, or remove one trained here", _heads),
    "policies": Command("policies", "list the policies with their parameters, sources, facts, deviations and requirements", _policies),
    "prices": Command("prices", "list the price tables: cache reads, cache writes, uncached input and output, with source and date", _none),
    "replay": Command("replay", "replay recorded traces through context policies; actions are fixed", _replay),
    "runs": Command("runs", "list stored runs, export runs to a file, or import runs from one", _runs),
    "whatif": Command("whatif", "recompute a run's decisions and tokens under other settings, from stored logits", _whatif),
    "report": Command("report", "write a standalone share page: one HTML file that works offline and verifies itself", _report),
    "train": Command(
        "train", "train probes (capacity x hint), the teacher and Recent2 students, and write the controller's heads", study_options.train
    ),
    "layerwise": Command(
        "layerwise",
        "measure how well each layer predicts compression and recall needs, with last-token and mean pooling",
        study_options.layerwise,
    ),
    "controls": Command(
        "controls", "compare the hidden state with controls that need no model, on the same splits", study_options.controls
    ),
    "compact": Command(
        "compact", "compare every compact context with the full one: token share, AUROC, F1 and agreement", study_options.compact
    ),
    "annotate": Command("annotate", "label memory needs with a language model (rubric: docs/annotation.md)", study_options.annotate),
    "label": Command("label", "label memory needs from what later actions used (rule: docs/hindsight.md)", study_options.label),
    "bench": Command("bench", "run one benchmark; results are ratios within the run", _bench),
    "serve": Command("serve", "put a context policy between any agent and a model server, and record every session", live_options.serve),
    "run": Command("run", "run an agent behind the live proxy, and print its tokens and cost: pamer-lab run -- COMMAND…", live_options.run),
    "live": Command("live", "list recorded live sessions, or show one with all its requests", live_options.live),
    "app": Command("app", "start the dashboard on 127.0.0.1:8501", _app),
}
"""Command name -> its module, help and options."""
