"""Follows a guide of `docs/` literally, in a copy of the project: each code block whose first line names a file is written or added."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)


def followed(guide: str, folder: Path) -> Path:
    """A copy of the project after the guide's steps: new files, and lines added to files that exist."""
    copy = folder / "project"
    for name in ("pamer_lab", "pages"):
        shutil.copytree(PROJECT / name, copy / name)  # with what is compiled, which saves seconds
    shutil.copy(PROJECT / "app.py", copy)
    (copy / "sample_traces").symlink_to(PROJECT / "sample_traces")
    steps = BLOCK.findall((PROJECT / "docs" / guide).read_text(encoding="utf-8"))
    assert [(copy / name).exists() for name, _ in steps] == [False, True], f"{guide}: one new file, then one line in another"
    for name, code in steps:
        path = copy / name
        path.write_text(with_lines(path.read_text(encoding="utf-8"), code) if path.exists() else code, encoding="utf-8")
    return copy


def with_lines(text: str, code: str) -> str:
    """Imports go to the imports; the lines after `...` go before the line that closes what the line before it opens."""
    lines, given = text.splitlines(), [line for line in code.splitlines() if line]
    imports = [line for line in given if line.startswith("from ")]
    at = next(number for number, line in enumerate(given) if line.strip() == "...")
    opening, added, closing = given[at - 1], given[at + 1 : -1], given[-1]
    assert len(added) == 1, "one line"
    end = lines.index(closing, lines.index(opening))
    lines[end:end] = added
    first = next(number for number, line in enumerate(lines) if line.startswith("from pamer_lab"))
    lines[first:first] = imports
    return "\n".join(lines) + "\n"


def run_in(copy: Path, program: str, *words: str, workspace: Path) -> Any:
    """What a program prints as JSON, with the copied package."""
    check = f"import pamer_lab, sys; assert pamer_lab.__file__.startswith({str(copy)!r}), pamer_lab.__file__\n"
    environment = os.environ | {"PYTHONPATH": str(copy), "PAMER_LAB_HOME": str(workspace)}
    done = subprocess.run([sys.executable, "-c", check + program, *words], capture_output=True, text=True, cwd=copy, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
