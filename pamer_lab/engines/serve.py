"""A process that does one module's jobs: `python -m pamer_lab.engines.serve MODULE`, with JSON lines as input and output.

A plain program rather than a forked or pickled function, so that it can be started from anywhere (even a page), keeps its
models loaded between jobs, and can be killed at any moment. It ends when its input ends, when its parent is gone (writing fails), or on
SIGTERM, which `work` sees as a KeyboardInterrupt.
"""

import sys
from importlib import import_module
from typing import Any, TextIO

import msgspec

from pamer_lab.jobs import stop_when_terminated


def serve(module: Any, given: TextIO, out: TextIO) -> int:
    """Serve jobs until the input ends."""
    stop_when_terminated()

    def tell(note: Any) -> None:
        try:
            out.write(msgspec.json.encode(note).decode() + "\n")
            out.flush()
        except BrokenPipeError:
            raise KeyboardInterrupt from None

    try:
        for line in given:
            module.work(msgspec.json.decode(line, type=module.Job), tell)
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(serve(import_module(sys.argv[1]), sys.stdin, sys.stdout))
