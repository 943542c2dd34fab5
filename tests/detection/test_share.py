"""Planted secrets in calls, results and answers of a trace: none may be in a share file, its zip or a run file."""

import json
import zipfile
from pathlib import Path
from typing import Any

from pamer_lab.cli import main
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.trajectory import read_bytes
from pamer_lab.workspace import Workspace
from tests.detection.made_up import CONTEXTS, SHAPES
from tests.runs.making import PARTS, SMALL, estimated

LONGEST = 1_000
"""Characters; longer texts are shortened in a share file."""


def test_no_planted_secret_leaves_with_a_share_or_run_file(tmp_path: Path, workspace: Workspace) -> None:
    texts = {name: f"set to\n{secret}\nnow" for name, (_, secret) in SHAPES.items() if len(secret) < LONGEST}
    texts |= {name: around.format(secret) for name, (around, secret) in CONTEXTS.items()}
    secrets = [secret for name, (_, secret) in (SHAPES | CONTEXTS).items() if name in texts]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "look"}]
    for number, text in enumerate(texts.values()):
        call = {"name": "write", "arguments": json.dumps({"path": "x", "text": json.dumps({"body": text})})}
        messages.append({"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"wrote \x1b[32m{text}\x1b[0m"})
    messages.append({"role": "assistant", "content": "done"})
    (trace,) = read_bytes(json.dumps({"messages": messages}).encode(), "x").traces
    workspace.add_traces([trace], estimated())
    run = replay(trace.trace_id, f"pamer{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))
    page, runs = tmp_path / "share.html", tmp_path / "one.runs"
    assert main(["report", run.run_id, "--out", str(page), "--json"]) == 0
    assert main(["runs", "export", run.run_id, "--out", str(runs)]) == 0
    shared = page.read_bytes()
    for archive in (page.with_suffix(".zip"), runs):
        with zipfile.ZipFile(archive) as opened:
            shared += b"".join(opened.read(name) for name in opened.namelist())
    assert b"[redacted: " in shared
    pieces = {piece: secret[:40] for secret in secrets for part in secret.split("\n") if len(part) > 12 for piece in (part, part[-30:])}
    assert not [secret for piece, secret in pieces.items() if piece.encode() in shared]
