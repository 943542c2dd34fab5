"""`pamer-lab prepare`: check the embedded weights and keep them ready in the cache (done by `make run`)."""

import argparse
from typing import Any

from pamer_lab.cli import say
from pamer_lab.models import embedded


def run(args: argparse.Namespace) -> dict[str, Any]:
    embedded.verify(embedded.MINILM)
    return {"folder": str(embedded.prepare(say))}
