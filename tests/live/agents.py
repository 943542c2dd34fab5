"""Agents that tests run as child processes, each installed once beside our environment.

mini-swe-agent's LiteLLM needs an older `openai` than ours, so `agents.txt` goes into an environment above ours: what it does not have, ours
has. opencode comes from npm. Where one cannot be installed, its tests are skipped and say why.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pamer_lab.workspace import Workspace

AGENTS = Path(sys.prefix) / "agents"
NEEDED = Path(__file__).with_name("agents.txt")
OPENCODE = "opencode-ai@1.18.33"
PATIENCE = 600
QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
}


def mini() -> str:
    """The program of mini-swe-agent."""
    folder = AGENTS / "mini"
    python = folder / "bin" / "python"
    above = (
        f"import pathlib, sysconfig; pathlib.Path(sysconfig.get_path('purelib'), 'ours.pth').write_text({sysconfig.get_path('purelib')!r})"
    )
    _installed(
        folder,
        NEEDED.read_text(),
        [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)],
        [str(python), "-c", above],
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile", "--no-deps", "-r", str(NEEDED)],
    )
    return str(folder / "bin" / "mini")


def counting(*more: str) -> list[str]:
    """mini-swe-agent with a task, to its end without questions."""
    return [mini(), "-t", "Count.", "-y", "--exit-immediately", "-l", "0", "--model-class", "litellm_textbased", *more]


def opencode() -> str:
    """The program of opencode."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("Node is not installed, so no agent of npm can be run")
    folder = AGENTS / "opencode"
    _installed(folder, OPENCODE, [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel", "error", OPENCODE])
    return str(folder / "node_modules" / ".bin" / "opencode")


def _installed(folder: Path, wanted: str, *commands: Sequence[str]) -> None:
    """Run the commands, unless the folder holds what is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed.txt"
    with FileLock(f"{folder}.lock"):
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        for command in commands:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
            if done.returncode:
                pytest.skip(f"{folder.name} could not be installed: {done.stdout.decode(errors='replace').strip()[-300:]}")
        stamp.write_text(wanted)


def run_behind(workspace: Workspace, upstream: str, agent: Sequence[str], folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """An agent at work in a folder, through `pamer-lab run` with a policy that edits; what the command says of it."""
    environment = os.environ | {"HOME": str(folder), "OPENAI_API_KEY": "sk-client-0123456789"} | variables
    options = ["--upstream", upstream, "--policy", "sliding-window:2", "--gate", "none", "--workspace", str(workspace.path), "--json"]
    command = [sys.executable, "-m", "pamer_lab.cli", "run", *options, "--", *agent]
    done = subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
