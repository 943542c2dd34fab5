"""What the home page needs, made ready while the server comes up: its libraries, and in an empty workspace the demo traces.

Invariant: a fault here is nobody's: the first visit does the same and says what is wrong.
"""

import logging
import threading
from importlib import import_module

from pamer_lab.ui.shared.loaders import first_rows

MODULES = ("lancedb", "polars", "plotly.graph_objects", "tokenizers", "pamer_lab.ui.traces.home", "pamer_lab.ui.traces.library")
"""In the order in which the home page needs them."""
logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what the home page imports, and read the demo traces where there is no other."""
    try:
        for name in MODULES:
            import_module(name)
        first_rows()
    except Exception as error:  # the first visit meets the same fault, where a reader sees it
        logger.info("the home page could not be made ready: %s", error)


def warm_up() -> threading.Thread:
    """The same beside whoever calls."""
    thread = threading.Thread(target=warm, daemon=True, name="warm-up")
    thread.start()
    return thread
