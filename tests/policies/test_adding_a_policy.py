"""`docs/adding-a-policy.md`, followed literally in a copy of the project: listed, replayed, drawn, and offered on a page."""

from pathlib import Path

import pytest

from tests.guides import followed, run_in
from tests.pages.conftest import chat

LIBRARY = """
import contextlib, io, json
from pamer_lab import figures
from pamer_lab.cli import main
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace

def command(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words, "--json"]) == 0
    return json.loads(out.getvalue())

listed = command("policies")["policies"]
runs = command("replay", sys.argv[1], "--policy", "base,first-and-last:2,first-and-last:2:plan=false")["runs"]
store = RunStore(Workspace())
drawn = figures.context([store.run(run["run_id"]) for run in runs])
lines = {trace.name: [trace.line.color, trace.line.dash] for trace in drawn.data if "lines" in trace.mode}
print(json.dumps({"listed": listed, "states": {run["policy"]: run["turns"][5]["block_states"] for run in runs}, "lines": lines}))
"""
PAGE = """
import json
from streamlit.testing.v1 import AppTest
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
import_paths(sys.argv[1:], Workspace())
app = AppTest.from_file("app.py", default_timeout=300).run()
app.switch_page("pages/replay.py")
app.query_params["policies"] = ["base", "first-and-last:3"]
app.run()
picker, faults = app.multiselect(key="policies"), [str(fault.value) for fault in [*app.exception, *app.error]]
print(json.dumps({"options": picker.options, "chosen": picker.value, "faults": faults}))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return followed("adding-a-policy.md", tmp_path_factory.mktemp("policy"))


def test_the_policy_is_listed_replayed_and_drawn_as_its_class_states(project: Path, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_bytes(chat(6))
    found = run_in(project, LIBRARY, str(tmp_path / "chat.json"), workspace=tmp_path / "lab")
    entry = next(entry for entry in found["listed"] if entry["name"] == "first-and-last")
    assert entry["parameters"] == {"k": 5, "plan": True} and entry["needs"] == [] and entry["sources"] and entry["deviations"]
    kept = {policy: [number for number, state in enumerate(own) if state == "active"] for policy, own in found["states"].items()}
    assert kept == {"base": [0, 1, 2, 3, 4], "first-and-last:2": [0, 3, 4], "first-and-last:2:plan=false": [3, 4]}
    assert found["lines"]["first-and-last:2"] == ["#009E73", "longdashdot"] != found["lines"]["base"]


def test_the_policy_picker_of_a_page_offers_it_and_the_page_replays_it(project: Path, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_bytes(chat(6))
    shown = run_in(project, PAGE, str(tmp_path / "chat.json"), workspace=tmp_path / "lab")
    assert "first-and-last:5" in shown["options"] and shown["chosen"] == ["base", "first-and-last:3"] and shown["faults"] == []
