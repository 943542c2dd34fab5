"""`pamer-lab app`: start the dashboard, the same as `streamlit run app.py`.

Streamlit takes the theme and its limits from `.streamlit/` next to the script, so the dashboard looks the same from any folder; the
workspace is that of the folder it is started in, as for every other command.
"""

import argparse
import os
import signal
import subprocess
import sys
from typing import Any

from pamer_lab.cli import say
from pamer_lab.config import TOKEN_VARIABLE, address_of, app_folder, default_workspace
from pamer_lab.errors import InputError
from pamer_lab.reviewer_mode import READONLY_VARIABLE, reviewer_mode


def run(args: argparse.Namespace) -> dict[str, Any]:
    script = app_folder() / "app.py"
    if not script.exists():
        raise InputError("the dashboard is not installed; reinstall the wheel, or run `pip install -e .` in a checkout", path=str(script))
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(args.port)]
    environment = dict(os.environ) | ({TOKEN_VARIABLE: args.token} if args.token else {}) | _reviewer()
    with subprocess.Popen(command, env=environment) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        return {"exit_code": server.wait()}


def _reviewer() -> dict[str, str]:
    """The variable that turns on reviewer mode, if the credentials for the object store are read-only; else nothing."""
    folder = default_workspace()
    if not address_of(folder) or reviewer_mode(folder):
        return {}
    from pamer_lab.workspace import Workspace
    from pamer_lab.workspace.store import may_write

    if may_write(Workspace(folder)):
        return {}
    say("the credentials are read-only for this workspace, so the dashboard starts in reviewer mode")
    return {READONLY_VARIABLE: "1"}
