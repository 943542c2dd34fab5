"""`pamer-lab app`: start the dashboard, the same as `streamlit run app.py`."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from pamer_lab.errors import InputError

HELP = "start the dashboard on 127.0.0.1:8501"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501)


def run(args: argparse.Namespace) -> dict[str, Any]:
    script = Path(__file__).resolve().parents[2] / "app.py"
    if not script.exists():
        raise InputError("app.py is not beside the package; run this from a checkout of the project", path=str(script))
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(args.port)]
    return {"exit_code": subprocess.call(command, cwd=script.parent)}
