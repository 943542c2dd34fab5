"""The `pamer-lab` program: common options, one module per command, one place for exit codes.

A command module under `pamer_lab/commands/` offers `HELP`, `configure(parser)` and `run(args) -> dict`, and may offer
`show(result)`, which prints the result for people. With `--json` stdout holds exactly one JSON object. Exit code 0: done;
2: the input is at fault, said in one line; 1: the program failed. Progress and logs go to stderr.
"""

import argparse
import importlib
import os
import sys
from typing import Any

import orjson

from pamer_lab.access import refuse_in_reviewer_mode
from pamer_lab.errors import InputError, LabError

COMMANDS = {
    "doctor": "doctor",
    "import": "import_",
    "extract": "extract",
    "generate": "generate",
    "prepare": "prepare",
    "memory": "memory",
    "audit": "audit",
    "replay": "replay",
    "runs": "runs",
    "whatif": "whatif",
    "train": "train",
    "layerwise": "layerwise",
    "controls": "controls",
    "compact": "compact",
    "annotate": "annotate",
    "bench": "bench",
    "app": "app",
}
"""Command name -> module under `pamer_lab/commands/`."""

READING = frozenset({"doctor", "memory", "audit", "whatif", "report", "app"})
"""Commands that reviewer mode allows; what they would write into the workspace, reviews apart, the library refuses."""

INPUT_FAULT = 2


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in arguments if word in COMMANDS), "")
    try:
        args = _parser(only=name).parse_args(arguments)
        if args.workspace:
            os.environ["PAMER_LAB_HOME"] = args.workspace
        if args.command not in READING:
            refuse_in_reviewer_mode(f"`pamer-lab {args.command}`")
        command = importlib.import_module(f"pamer_lab.commands.{COMMANDS[args.command]}")
        result = command.run(args)
        if args.json:
            sys.stdout.write(orjson.dumps(result, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode() + "\n")
        elif result and hasattr(command, "show"):
            command.show(result)
        return int(result.get("exit_code", 0)) if isinstance(result, dict) else 0
    except InputError as error:
        say(one_line(error.sentence))
        return INPUT_FAULT
    except LabError as error:
        say(one_line(str(error)))
        return 1
    except KeyboardInterrupt:
        say("stopped; what was finished is kept")
        return 1
    except BrokenPipeError:
        return 1


def say(text: str) -> None:
    """A line on stderr, safe for terminals: control characters of a stranger's text are shown, not obeyed."""
    sys.stderr.write("".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text) + "\n")


def one_line(text: str) -> str:
    return " ".join(text.split())


def _parser(only: str) -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print exactly one JSON object on stdout")
    common.add_argument("--workspace", metavar="DIR", default="", help="workspace folder (default: .pamer-lab, or PAMER_LAB_HOME)")
    common.add_argument("--profile", metavar="NAME|FILE.toml", default="embedded", help="embedded, paper, or a TOML file")
    common.add_argument("--device", default="auto", help="auto, cpu, cuda[:N] or mps")
    parser = argparse.ArgumentParser(prog="pamer-lab", description="A replay lab for the memory of long-horizon LLM agents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        if only and name != only:
            continue
        command: Any = importlib.import_module(f"pamer_lab.commands.{module}")
        child = commands.add_parser(name, help=command.HELP, description=command.HELP, parents=[common])
        command.configure(child)
    return parser


if __name__ == "__main__":
    sys.exit(main())
