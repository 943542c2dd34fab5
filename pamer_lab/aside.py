"""Work on untrusted text in a separate process, with a time limit. `python -m pamer_lab.aside` is that process.

JSON lines in and out. A process that takes too long is killed, the next call starts another, and calls do not wait for each other: whatever
the text, no page and no other visitor waits longer than the limit. Knows the functions that it may call only by name.
"""

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import msgspec

from pamer_lab.errors import LabError
from pamer_lab.jobs import Process, stop_when_terminated

CALLS = {
    "audit export": "pamer_lab.audit.exchange:export_beside",
    "audit import": "pamer_lab.audit.exchange:import_beside",
    "clean": "pamer_lab.redaction:clean_text",
    "evidence": "pamer_lab.runs.evidence:stored_uses",
    "share": "pamer_lab.report.making:make_files",
}
"""What may be asked for -> module and function; arguments and results are JSON."""
SCAN_SECONDS = 120.0
"""Time limit for reading and scanning an import or export."""
KEPT = 2
"""Idle processes that are kept for the next call; a new one takes a moment to start."""

Value = TypeVar("Value")


class TookTooLong(LabError):
    """Raised when work over a text did not end within its limit; what was begun is dropped."""


class Call(msgspec.Struct, frozen=True):
    name: str
    arguments: list[Any]


class Answer(msgspec.Struct, frozen=True):
    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    """Why there is no value, in a sentence."""
    ended: bool = True
    """Distinguishes an answer from what a library prints."""


idle: list[Process] = []
"""Processes that wait for the next call."""
_changing = threading.Lock()


def ask(name: str, arguments: list[Any], kind: type[Value], *, seconds: float, what: str) -> Value:
    """The result of a call; `TookTooLong` after `seconds`. `what`: the work in words, for error messages."""
    with _changing:
        process = idle.pop() if idle else Process(__spec__.name)
    over = threading.Event()

    def end() -> None:
        over.set()
        process.kill()

    limit = threading.Timer(seconds, end)
    limit.daemon = True
    limit.start()
    try:
        process.send(Call(name, arguments))
        answer = next((found for found in process.answers(Answer) if found.ended), None)
    finally:
        limit.cancel()
    if over.is_set():
        raise TookTooLong(f"{what} took more than {seconds:g} s and was stopped; the command line has no such limit")
    if answer is None:
        raise LabError(f"{what} failed: its process ended. Look at the program's own output")
    with _changing:
        if process.running and len(idle) < KEPT:
            idle.append(process)
        else:
            process.no_more()
    if answer.error:
        raise LabError(answer.error)
    return msgspec.json.decode(answer.value, type=kind)


def function_of(name: str) -> Callable[..., Any]:
    """The function that a call names; nothing else can be called."""
    module, _, function = CALLS[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def main(given: TextIO, out: TextIO) -> None:
    """Answer calls until the input ends."""
    stop_when_terminated()
    for line in given:
        call = msgspec.json.decode(line, type=Call)
        try:
            answer = Answer(msgspec.Raw(msgspec.json.encode(function_of(call.name)(*call.arguments))))
        except LabError as error:
            answer = Answer(error=str(error))
        out.write(msgspec.json.encode(answer).decode() + "\n")
        out.flush()


if __name__ == "__main__":
    try:
        main(sys.stdin, sys.stdout)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
