"""The `pamer-lab` program: common options, one module per command, one place for exit codes.

What each command takes is in `commands/options.py`, so that `--help` imports nothing heavy; a command's module under
`pamer_lab/commands/` offers `run(args) -> dict`, and may offer `show(result)`, which prints the result for people. With `--json`
stdout holds exactly one JSON object. Exit code 0: done; 1: the program failed; 2: the input is at fault, and one line says why.
Progress and logs go to stderr.
"""

import argparse
import errno
import importlib
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from pamer_lab.commands.options import COMMANDS
from pamer_lab.errors import InputError, LabError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pamer_lab.jobs import Progress

READING = frozenset({"doctor", "memory", "audit", "heads", "policies", "prices", "whatif", "report", "live", "app"})
"""Commands allowed in reviewer mode; the library refuses their writes to the workspace, except reviews."""

STUDIES = frozenset({"extract", "train", "layerwise", "controls", "compact"})
"""Long commands that use all cores; in a workspace, they and replays with models run one at a time."""
PROFILE_HELP = "embedded, paper, a TOML file, or hf:ID for any causal language model that transformers loads"
INPUT_FAULT = 2
BAD_NAMES = frozenset({errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP})
"""Error numbers for names that cannot be files."""
SHOWN_NAME = 200
LONGEST_LINE = 1_000
"""Maximum characters of an error message."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    started = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in arguments if word in COMMANDS), "")
    try:
        if any("\0" in word for word in arguments):
            raise InputError("an argument contains a NUL character")
        args = _parser(only=name).parse_args(arguments)
        if started:
            from pamer_lab.jobs import stop_when_terminated

            stop_when_terminated(by_hand=not _in_lines())
        if args.workspace:
            os.environ["PAMER_LAB_HOME"] = args.workspace
        if args.command not in READING:
            from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

            refuse_in_reviewer_mode(f"`pamer-lab {args.command}`")
        if args.trust_profile:
            _trust(args.profile)
        command = importlib.import_module(f"pamer_lab.commands.{COMMANDS[args.command].module}")
        with _turn(args.command):
            result = command.run(args)
        if _in_lines():
            _line(result=result)
        elif args.json:
            sys.stdout.write(_json(result) if result is not None else "")
        elif result and hasattr(command, "show"):
            _show(command, result)
        sys.stdout.flush()
        return int(result.get("exit_code", 0)) if isinstance(result, dict) else 0
    except InputError as error:
        _fail(error.sentence)
        return INPUT_FAULT
    except LabError as error:
        _fail(str(error))
        return 1
    except KeyboardInterrupt:
        _fail("stopped; finished work is kept")
        return 1
    except BrokenPipeError:
        _drop_stdout()
        return 1
    except OSError as error:
        from pamer_lab.storage.faults import advice  # here: the store's engine takes a second to import

        place = f"{str(error.filename)[:SHOWN_NAME]}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}{advice(error)}")
        return INPUT_FAULT if error.errno in BAD_NAMES else 1
    except MemoryError:
        _fail("out of memory; process less at once, or close other programs")
        return 1
    except Exception as error:
        if _in_lines():  # the waiting process gets the error; the traceback is for the log
            _line(error=one_line(f"the program failed ({type(error).__name__}: {error})"))
        raise


def _trust(name: str) -> None:
    from pamer_lab.config import default_workspace
    from pamer_lab.models.profiles import load_profile
    from pamer_lab.models.trust import trust

    profile = load_profile(name, default_workspace())
    for place in trust(profile):
        say(f"confirmed: {profile.name} may send {place}")


def _turn(command: str) -> "AbstractContextManager[None]":
    """A study's place in the workspace's queue; other commands do not wait here."""
    from contextlib import nullcontext

    if command not in STUDIES:
        return nullcontext()
    from pamer_lab.config import default_workspace
    from pamer_lab.workspace.queue import in_line

    reported: list[int] = []

    def waiting(ahead: int) -> None:
        if ahead not in reported:
            reported.append(ahead)
            say(f"waiting for {ahead} other {'job' if ahead == 1 else 'jobs'} in this workspace")

    return in_line(default_workspace(), waiting=waiting)


def _in_lines() -> bool:
    """Whether another process runs this command and reads JSON lines."""
    from pamer_lab.jobs import LINES_VARIABLE

    return bool(os.environ.get(LINES_VARIABLE))


def _drop_stdout() -> None:
    """The reader of the pipe is gone: write nothing more to it, not even when the interpreter exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def say(what: "str | Progress") -> None:
    """Print a line on stderr, safe for terminals: control characters of untrusted text are escaped.

    If another process runs this command (`jobs.LINES_VARIABLE`), write a JSON line to stdout instead.
    """
    from pamer_lab.redaction import without_keys

    if _in_lines():
        _line(**({"said": without_keys(what)} if isinstance(what, str) else {"progress": what}))
        return
    text = without_keys(what if isinstance(what, str) else what.line)
    sys.stderr.write(_printable(text) + "\n")


def _printable(text: str) -> str:
    """The text with control characters and direction overrides escaped, so that a terminal does not act on them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def _show(command: Any, result: Any) -> None:
    """Print the command's result, as safe for terminals as `say`."""
    stdout = sys.stdout
    sys.stdout = _Printable(stdout)
    try:
        command.show(result)
    finally:
        sys.stdout = stdout


class _Printable(io.TextIOBase):
    """Stdout for results, with control characters escaped: names and ids come from untrusted files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_printable(text))

    def flush(self) -> None:
        self._stream.flush()


def _fail(text: str) -> None:
    """Report why the command ended early."""
    if _in_lines():
        from pamer_lab.redaction import without_keys

        _line(error=without_keys(one_line(text)))
    else:
        say(one_line(text))


def _line(**fields: Any) -> None:
    """One `jobs.Line`."""
    sys.stdout.write(_json(fields))
    sys.stdout.flush()


_OBEYED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that JSON may contain unescaped, but that control a terminal or mislead a reader; `_json` escapes them."""


def _json(value: Any) -> str:
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def one_line(text: str) -> str:
    """The text on one line; a very long one is shortened in the middle."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 :]}"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors do not repeat a secret typed on the command line."""

    def error(self, message: str) -> NoReturn:
        from pamer_lab.redaction import without_secrets

        super().error(_printable(without_secrets(message)))


def _parser(only: str) -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print exactly one JSON object on stdout")
    common.add_argument("--workspace", metavar="DIR", default="", help="workspace folder (default: .pamer-lab, or PAMER_LAB_HOME)")
    common.add_argument("--profile", metavar="NAME|FILE.toml|hf:ID", default="embedded", help=PROFILE_HELP)
    common.add_argument(
        "--trust-profile", action="store_true", help="confirm, once, that a profile file may send text and keys to the servers it names"
    )
    common.add_argument("--device", default="auto", help="auto, cpu, cuda[:N] or mps")
    parser = _Parser(prog="pamer-lab", description="A replay lab for the memory of long-horizon LLM agents.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        if not only or name == only:
            command.configure(commands.add_parser(name, help=command.help, description=command.help, parents=[common]))
    return parser


if __name__ == "__main__":
    sys.exit(main())
