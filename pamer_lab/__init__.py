"""PaMER Lab: what did the model still see at turn t, why was the rest dropped, and was that right?

The names below are the whole public surface; everything is imported on first use, so that
`import pamer_lab` costs nothing and reading a trace needs neither torch nor transformers.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "read_traces": "pamer_lab.trajectory",
    "Trace": "pamer_lab.trajectory",
    "Workspace": "pamer_lab.workspace",
    "PamerController": "pamer_lab.controller",
    "load_controller": "pamer_lab.audit.live",
}

__all__ = ["PamerController", "Trace", "Workspace", "__version__", "load_controller", "read_traces", "replay"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'pamer_lab' has no attribute {name!r}")


class _Surface(ModuleType):
    """`pamer_lab.replay` is the function, although a room has the same name: importing the room would otherwise bind it here."""

    @property
    def replay(self) -> Any:
        return import_module("pamer_lab.replay.engine").replay

    @replay.setter
    def replay(self, room: ModuleType) -> None:
        """The import system offers the room; it stays reachable by its full path."""


sys.modules[__name__].__class__ = _Surface
