"""PaMER Lab: what did the model still see at turn t, why was the rest dropped, and was that right?

These names are the public surface. Each is imported on first use, so that `import pamer_lab` costs nothing and reading a
trace needs neither torch nor transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pamer_lab import figures
    from pamer_lab.analysis.compare import compare
    from pamer_lab.controller import PamerController
    from pamer_lab.errors import InputError
    from pamer_lab.factory import load_controller
    from pamer_lab.runs.engine import ReplayOptions, replay
    from pamer_lab.runs.store import RunStore
    from pamer_lab.runs.values import Run
    from pamer_lab.trajectory import Trace, read_traces
    from pamer_lab.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "PamerController",
    "ReplayOptions",
    "Run",
    "RunStore",
    "Trace",
    "Workspace",
    "__version__",
    "compare",
    "figures",
    "load_controller",
    "read_traces",
    "replay",
]

_HOMES = {
    "InputError": "pamer_lab.errors",
    "PamerController": "pamer_lab.controller",
    "ReplayOptions": "pamer_lab.runs.engine",
    "Run": "pamer_lab.runs.values",
    "RunStore": "pamer_lab.runs.store",
    "Trace": "pamer_lab.trajectory",
    "Workspace": "pamer_lab.workspace",
    "compare": "pamer_lab.analysis.compare",
    "load_controller": "pamer_lab.factory",
    "read_traces": "pamer_lab.trajectory",
    "replay": "pamer_lab.runs.engine",
}
"""Public name -> the module it lives in."""


def __getattr__(name: str) -> Any:
    if name == "figures":
        return import_module("pamer_lab.figures")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'pamer_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
