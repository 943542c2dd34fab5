"""`pamer-lab doctor`: what is here, what is missing, and the command that gets it."""

import argparse
from typing import Any

HELP = "show devices, models, heads and the store, and what to do about what is missing"


def configure(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    raise NotImplementedError
