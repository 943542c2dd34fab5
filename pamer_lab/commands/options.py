"""What each command takes on the command line, and what its help says.

Apart from the commands themselves, so that `--help` imports nothing heavy: only the standard library is needed here. Values that the
library declares and `choices` or defaults repeat are compared with it by a test.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = ("claude-code", "codex", "opencode", "gemini", "copilot", "cursor", "qwen", "goose")
MOST = 50
HISTORY_HELP = (
    "recorded: the context the agent had, with recorded summaries in place of what they replaced (traces without any are read in "
    "full); full: everything before the decision (default: %(default)s)"
)
PROMPT_HELP = "system prompt prepended to each trace's own in every probe input (default: the profile's)"
HEADS_HELP = "heads to use (see pamer-lab heads list); default: the packaged heads for the profile's model, else the only registered ones"
FUTURE_HELP = (
    "none: the model sees what the agent saw; action: also the recorded next action, as the paper's annotator (default: %(default)s)"
)
STUDENTS_LAYER = (
    "layer of students and heads; preferred: by validation; teacher: where the teacher reads (default: preferred; final for paper)"
)
CONDITIONS_LAYER = "layer all conditions are read at; preferred: by validation on the Full Context (default: preferred; final for paper)"
HINT_HELP = "context hint in the students' input (default: none; faithful for paper)"
TEACHER_HELP = "full: students also learn from probes on the full context (default); none: from labels alone"
ENGINE_HELP = "local: processes of this machine; ray: a Ray cluster, here or at ADDRESS (docs/scale.md; default: %(default)s)"
HISTORIES = ("full", "recorded")
HISTORY = "recorded"
FUTURES = ("none", "action")
PRICES = "relative-0.1"
DEADLINE = 5.0
SEEDS = "0,1,2,3,4"
HORIZON = 5
SPLITS = ("question", "source")
CAPS = "8K,16K"
STATES_MEMORY_HELP = "states in memory at once; where a study has more, probes read them from the workspace in parts (default: 4000)"
WORKSPACE = "@workspace"
"""In place of traces: all labelled ones of the workspace."""


class Command(NamedTuple):
    """One command of the program."""

    module: str
    """Under `pamer_lab/commands/`; offers `run(args) -> dict`, and may offer `show(result)`."""
    help: str
    configure: Callable[[argparse.ArgumentParser], None]


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def _none(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--history", choices=HISTORIES, default=HISTORY, help=HISTORY_HELP)


def _engine(parser: argparse.ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument("--engine", default="local", metavar="local|ray[:ADDRESS]", help=ENGINE_HELP)
    parser.add_argument(
        "--workers", "--processes", dest="processes", type=int, default=-1, metavar="N", help="worker processes; 0 runs in this process"
    )
    parser.add_argument(
        "--gpus-per-worker", type=float, default=0.0, metavar="F", help="with --engine ray: GPUs reserved for each worker, such as 1 or 0.5"
    )


def _states_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--states-memory", type=_megabytes, default=4000.0, metavar="MB", help=STATES_MEMORY_HELP)


def _megabytes(text: str) -> float:
    size = float(text)
    if not 0 < size < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of megabytes above 0, not {text}")
    return size


def _scan(parser: argparse.ArgumentParser, only: str = "") -> None:
    """`--redact`, and `--scan`; `only` names the action they belong to where a command has several."""
    where = f"for {only}: " if only else ""
    parser.add_argument(
        "--redact",
        choices=["all", "keys", "none"],
        default="keys",
        help=f"{where}which findings of the secret scan to redact (default: keys)",
    )
    parser.add_argument("--scan", action="store_true", help=f"{where}only list what the secret scan finds; write nothing")


def _study(parser: argparse.ArgumentParser) -> None:
    """Options that all studies have."""
    traces = f"labelled trace files or folders, ids of imported traces, or {WORKSPACE}: all labelled ones"
    parser.add_argument("traces", nargs="+", metavar="TRACE", help=traces)
    parser.add_argument("--seeds", default=SEEDS, help="split and initialisation seeds (default: %(default)s)")
    _history(parser)
    parser.add_argument("--replicas", type=int, default=0, metavar="N", help="use the first N traces of each question (default: all)")
    _labels(parser)
    parser.add_argument(
        "--split-by",
        choices=SPLITS,
        default="question",
        help="what stays in one part of a split: a question, or a source (default: question)",
    )
    parser.add_argument("--probe-prompt", default=None, metavar="TEXT|@FILE", help=PROMPT_HELP)
    _engine(parser)
    parser.add_argument("--name", default="", help="a name for the study")
    parser.add_argument("--out", type=_path, default=None, metavar="FILE.json", help="also write the study to a file")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a file (also .gz) or a folder")
    parser.add_argument(
        "--from",
        dest="tool",
        choices=TOOLS,
        metavar="TOOL",
        help=f"list the sessions of a coding agent on this computer: {', '.join(TOOLS)}",
    )
    parser.add_argument("--choose", default="", metavar="N", help="with --from: import these of the list (1,3-5, trace ids, or all)")
    parser.add_argument(
        "--most", type=int, default=MOST, metavar="N", help="with --from: sessions listed, newest first (default: %(default)s)"
    )
    _scan(parser, "--from")
    parser.add_argument("--labels", metavar="FILE", type=_path, help="a side file of labels for these traces (docs/trace-format.md)")


def _extract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a file, a folder, or the id of an imported trace")
    parser.add_argument("--contexts", default="full,recent2", help="full, current, recentK; separated by commas")
    parser.add_argument("--hint", choices=["none", "faithful"], default="none", help="whether the context-token hint is added")
    parser.add_argument("--probe-prompt", default=None, metavar="TEXT|@FILE", help=PROMPT_HELP)
    _history(parser)
    _engine(parser)
    parser.add_argument("--layers", default="all", help="all, or names such as block_4,final")
    parser.add_argument("--poolings", default="last,mean", help="last, mean")


def _generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=48, metavar="N", help="number of questions, each with its own world (default 48)")
    parser.add_argument("--replicas", type=int, default=2, metavar="K", help="runs over each question (default 2)")
    parser.add_argument("--seed", type=int, default=7, metavar="S", help="the same seed gives the same bytes (default 7)")
    parser.add_argument("--out", type=_path, required=True, metavar="DIR", help="folder for traces.jsonl")
    parser.add_argument("--demo", action="store_true", help="write the three long demo traces instead, one file each")


AGENT_HELP = "reader (simulated), reader:notes=off, openai:MODEL at OPENAI_BASE_URL, or command:PROGRAM ARGUMENT… behind the live proxy"


def _arena(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", default="reader", help=AGENT_HELP)
    parser.add_argument("--suite", metavar="FOLDER", default="", help="own tasks for a program: a folder per task (docs/arena.md)")
    parser.add_argument("--grader", metavar="COMMAND", default="", help="grades the tasks of --suite: exit code, or JSON on stdout")
    parser.add_argument("--time-limit", type=float, default=600.0, metavar="SECONDS", help="of a program for one task (default 600)")
    parser.add_argument("--against", metavar="POLICY", default="", help="compare in pairs with this policy (default: base)")
    parser.add_argument(
        "--policy", default="", help="NAME[,NAME...], or all that can act on a running agent; base and the bounds are always included"
    )
    parser.add_argument("--tasks", type=int, default=20, metavar="N", help="tasks, the same for every policy (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed gives the same worlds (default 1)")
    parser.add_argument("--level", default="4-2-4", metavar="FACTS-DISTANCE-NOISE", help="how hard the tasks are (default 4-2-4)")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")
    parser.add_argument(
        "--processes", type=int, default=0, metavar="N", help="processes for policies without models (default: one per core)"
    )
    parser.add_argument("--fresh", action="store_true", help="discard finished episodes and play them again")
    parser.add_argument("--list", action="store_true", help="list the arenas of the workspace")
    parser.add_argument("--show", metavar="ARENA", default="", help="show the results of an arena")
    parser.add_argument("--open", metavar="ARENA/TASK/POLICY", default="", help="store one episode as a trace with its run, for Replay")


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
    _scan(parser, "export")
    parser.add_argument("--run", default="", metavar="RUN", help="for list: only this run's selections")


def _heads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "show", "remove", "test"], help="what to do")
    parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="for show and test: a name or a folder; for remove: a registered name"
    )
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="for test: labelled traces that training never had")
    _labels(parser)
    _history(parser)


def _labels(parser: argparse.ArgumentParser) -> None:
    """Which labels count, and where traces come from."""
    parser.add_argument("--labels", default="", metavar="ORIGIN", help="use only labels of this origin, such as hindsight (default: all)")
    parser.add_argument(
        "--sources",
        type=_path,
        default=None,
        metavar="FILE.csv",
        help="columns file and repository: sources of traces (default: their folder)",
    )


def _policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fit-lre", nargs="+", metavar="PATH", help="fit the weights of the policy lre on these traces instead of listing")
    parser.add_argument("--out", metavar="FILE", help="with --fit-lre: where to write the weights as JSON")


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="ids of imported traces, or trace files and folders")
    parser.add_argument(
        "--policy",
        default="",
        help="NAME[,NAME...]; all: every policy that can run here, light: those without a model, or a family; see pamer-lab policies",
    )
    parser.add_argument("--turn-limit", type=int, default=0, metavar="N", help="replay only the first N turns of each trace")
    _engine(parser)
    parser.add_argument("--fresh", action="store_true", help="discard stored runs and recompute them")
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")
    parser.add_argument("--table", metavar="FILE.md", default="", help="also write cost against evidence by policy, as Markdown")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument("--estimate", action="store_true", help="print the models, tokens and time needed, and stop")
    parser.add_argument("--list", action="store_true", help="list the policies with their parameters and stated deviations")


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "export", "import"], help="what to do")
    parser.add_argument("names", nargs="*", metavar="RUN|FILE", help="for export: run ids (none: every finished run); for import: files")
    parser.add_argument("--out", default="", metavar="FILE", help="for export: the file to write")
    _scan(parser, "export")


def _whatif(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id of a PaMER run")
    parser.add_argument("--threshold", metavar="P[,P...]", default="", help="probability for all heads, or one per head")
    parser.add_argument("--threshold-scale", metavar="F", type=float, default=1.0, help="factor on the stored thresholds")
    parser.add_argument("--vote", metavar="N", type=int, default=None, help="heads that must agree")
    parser.add_argument("--min-candidate", metavar="TOKENS", type=int, default=None, help="minimum candidate size (tokens)")
    parser.add_argument("--retained", metavar="BLOCKS", type=int, default=None, help="complete blocks kept (approximate)")
    parser.add_argument(
        "--horizon", metavar="TURNS", type=int, default=None, help="compress only where it pays back within this many turns"
    )
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help="price table of that rule (see pamer-lab prices)")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="ids of runs, or of traces (then their finished runs)")
    parser.add_argument("--out", metavar="FILE.html", default="report.html", help="output file; FILE.zip is written next to it")
    parser.add_argument("--growth", action="store_true", help="add the context growth over all these runs")
    parser.add_argument("--prices", metavar="NAME", default="", help=f"price table of costs (see pamer-lab prices; default: {PRICES})")
    parser.add_argument(
        "--study", action="append", default=[], metavar="ID", help="add a study of the workspace, or a sample result by name"
    )
    parser.add_argument("--published", action="append", default=[], metavar="TABLE", help="add a table of the paper")
    parser.add_argument(
        "--arena", action="append", default=[], metavar="ID", help="add the results of an arena (see pamer-lab arena --list)"
    )
    parser.add_argument("--against", metavar="POLICY", default="base", help="policy that an arena's pairs compare with (default: base)")
    parser.add_argument("--title", default="", help="headline of the page")
    parser.add_argument("--no-text", action="store_true", help="omit the text of traces, summaries and recalled memories")
    _scan(parser)
    parser.add_argument("--max-mb", type=float, default=10.0, metavar="MB", help="maximum size of the page (default: 10)")
    parser.add_argument("--config", metavar="FILE", default="", help="recreate the report that a zip's config.json describes")


def _train(parser: argparse.ArgumentParser) -> None:
    _study(parser)
    _states_memory(parser)
    parser.add_argument("--contexts", default="recent2", help="compact contexts of the students (default: %(default)s)")
    parser.add_argument("--layer", default="", help=STUDENTS_LAYER)
    parser.add_argument("--layers", default="all", help="layers among which preferred chooses (default: %(default)s)")
    parser.add_argument("--hint", choices=("none", "faithful"), default="", help=HINT_HELP)
    parser.add_argument("--teacher", choices=("full", "none"), default="full", help=TEACHER_HELP)
    parser.add_argument(
        "--heads", default="", metavar="NAME|FOLDER", help="register the compression heads (students of the first context) in the workspace"
    )


def _layerwise(parser: argparse.ArgumentParser) -> None:
    _study(parser)
    _states_memory(parser)
    parser.add_argument("--layers", default="all", help="all, or names such as block_4,block_8,final (default: %(default)s)")
    parser.add_argument("--context", default="full", help="full, current, recent1, recent2 or recent4 (default: %(default)s)")
    parser.add_argument("--hint", choices=["none", "faithful"], default="none")


def _controls(parser: argparse.ArgumentParser) -> None:
    _study(parser)
    _states_memory(parser)
    parser.add_argument("--layers", default="all", help="layers of the hidden state (default: %(default)s)")
    parser.add_argument("--context", default="full", help="context of the hidden state (default: %(default)s)")


def _compact(parser: argparse.ArgumentParser) -> None:
    _study(parser)
    parser.add_argument("--conditions", default="all", help="names or groups with commas, or all (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about N decision points, the same share of every question")
    parser.add_argument("--sample-seed", type=int, default=0, metavar="S", help="which sample (default: %(default)s)")
    parser.add_argument("--layer", default="", help=CONDITIONS_LAYER)
    parser.add_argument("--caps", default=CAPS, help="evidence caps for Top3 by embedding, in tokens (default: %(default)s)")
    parser.add_argument("--estimate", action="store_true", help="print the estimated tokens and time, and stop")


def _annotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="trace files or folders")
    parser.add_argument(
        "--out", type=_path, default=None, metavar="FILE.jsonl", help="write the labelled traces to this file, in our own format"
    )
    parser.add_argument("--future", choices=FUTURES, default="none", help=FUTURE_HELP)
    _history(parser)
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="ask at most N questions in this run; the next run continues")


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help=f"trace files or folders (they are imported), ids of imported traces, or {WORKSPACE}: all of the workspace",
    )
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
        help="older tokens below which compression is not asked (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=_path, default=None, metavar="FILE.jsonl", help="also write the labelled traces to this file, in our own format"
    )


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="`list` shows the names")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="`traces` and `hindsight`: files or folders of traces (default of `traces`: those that come with the package)",
    )
    counted = "kills (`crash`), sessions (`load`), cases (`fuzz`), blocks (`replay`) or traces (`scale`; `hindsight`, shortest first)"
    parser.add_argument("--count", type=int, metavar="N", help=f"how many {counted}")


def _app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument(
        "--token",
        choices=["files", "required"],
        help="what requires the token in the printed link: reading files on this computer (default), or everything (for shared machines)",
    )


def _live_options(parser: argparse.ArgumentParser) -> None:
    """What every proxy takes."""
    parser.add_argument("--policy", default="base", metavar="NAME", help="context policy (default: base, which only records)")
    parser.add_argument("--heads", metavar="NAME|FOLDER", default="", help=HEADS_HELP)
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table of the gate and of costs (default: {PRICES})")
    parser.add_argument("--window", type=int, default=0, metavar="N", help="context window of the model in tokens (default: unknown)")
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE, metavar="S", help="maximum seconds to wait for a decision (default: %(default)s)"
    )
    parser.add_argument("--gate", choices=["priced", "none"], default="priced", help="edit only where it pays, or always (default: priced)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upstream", required=True, metavar="URL", help="the model server, such as https://api.anthropic.com")
    _live_options(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--upstream", default="", metavar="URL", help="the model server (default: from the agent's environment variables)")
    _live_options(parser)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the agent and its arguments")


def _live(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["list", "show"], help="what to do")
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="for show: a session's name, trace id or run id")
    parser.add_argument("--prices", metavar="NAME|FILE.toml", default="", help=f"price table (see pamer-lab prices; default: {PRICES})")


COMMANDS: dict[str, Command] = {
    "doctor": Command("doctor", "show devices, models, heads and the store, and how to get what is missing", _none),
    "import": Command("import_", "read trace files and folders into the workspace", _import),
    "extract": Command("extract", "compute the frozen model's states at every decision point and cache them in the workspace", _extract),
    "generate": Command("generate", "write labelled synthetic traces", _generate),
    "arena": Command("arena", "let an agent act on the context each policy leaves it, and compare success, tokens and cost", _arena),
    "prepare": Command("prepare", "verify and prepare the embedded weights once, so that later starts are fast", _none),
    "memory": Command("memory", "check the stored memories: orphans, missing blocks, hash mismatches, duplicates", _memory),
    "audit": Command(
        "audit", "list, export, import or check step selections and their reviews, or measure agreement between reviewers", _audit
    ),
    "heads": Command("heads", "list the heads that can vote, show one set, or remove one trained here", _heads),
    "policies": Command("policies", "list the policies with their parameters, sources, facts, deviations and needs", _policies),
    "prices": Command(
        "prices", "list the price tables: what is read from a prompt cache, written to it, uncached and output, with source and date", _none
    ),
    "replay": Command("replay", "replay recorded traces through context policies; actions are fixed", _replay),
    "runs": Command("runs", "list stored runs, export runs to a file, or import runs from one", _runs),
    "whatif": Command("whatif", "recompute a run's decisions and tokens under other settings, from stored logits", _whatif),
    "report": Command("report", "write a standalone share page: one HTML file that works offline and verifies itself", _report),
    "train": Command("train", "train probes (capacity x hint), the teacher and Recent2 students, and write the controller's heads", _train),
    "layerwise": Command(
        "layerwise", "how well each layer predicts compression and recall needs, with last-token and mean pooling", _layerwise
    ),
    "controls": Command("controls", "compare the hidden state with controls that need no model, on the same splits", _controls),
    "compact": Command("compact", "token share, AUROC, F1 and agreement of every compact context, compared with the full one", _compact),
    "annotate": Command("annotate", "label memory needs with a language model (rubric: docs/annotation.md)", _annotate),
    "label": Command("label", "label memory needs from what later actions used (rule: docs/hindsight.md)", _label),
    "bench": Command("bench", "run one benchmark; every number is a ratio within the run", _bench),
    "serve": Command("serve", "put a context policy between any agent and a model server, and record every session", _serve),
    "run": Command("run", "run an agent behind the live proxy, and print its tokens and cost: pamer-lab run -- COMMAND…", _run),
    "live": Command("live", "list recorded live sessions, or show one with all its requests", _live),
    "app": Command("app", "start the dashboard on 127.0.0.1:8501", _app),
}
"""Command name -> where it is, its help and its options."""
