"""`docs/adding-a-condition.md`, followed literally in a copy of the project: read, estimated, drawn, and offered on the page."""

from pathlib import Path

import pytest

from tests.commands.test_studies import write_corpus
from tests.guides import followed, run_in
from tests.pages.conftest import chat

LIBRARY = """
import json
from pamer_lab import figures, read_traces
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.studies.compact.estimate import times_read
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import choose, groups
from pamer_lab.studies.compact.values import Resources
from pamer_lab.studies.compact.view import context_at
(trace,) = read_traces(sys.argv[1])
view = context_at(trace, 4, "ends", Resources(Counts(MessageTokens(EstimatedCounter()))))
point = {"label": "Ends", "group": groups()["ends"].heading, "target": "recall", "tokens_pct": 20.0, "auroc": 0.7, "sd": 0.0, "n": 9}
figure = figures.tradeoff([point | {"published_tokens_pct": None, "published_auroc": None}])
marks = [[mark.marker.color, mark.marker.symbol] for mark in figure.data if mark.marker.symbol]
chosen = choose("ends")
print(json.dumps({"blocks": [piece.block for piece in view.pieces], "marks": marks, "chosen": [one.name for one in chosen],
                  "times_read": times_read(chosen[-1:])}))
"""
PAGE = """
import json
from streamlit.testing.v1 import AppTest
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
import_paths(sys.argv[1:], Workspace())
app = AppTest.from_file("app.py", default_timeout=300).run()
app.switch_page("pages/contexts.py")
app.session_state["make-study"] = True
app.run()
print(json.dumps({"options": app.multiselect(key="study-conditions").options, "faults": [str(fault.value) for fault in app.exception]}))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return followed("adding-a-condition.md", tmp_path_factory.mktemp("condition"))


def test_the_condition_reads_its_blocks_has_a_cost_and_is_drawn_with_its_own_mark(project: Path, tmp_path: Path) -> None:
    trace = tmp_path / "chat.json"
    trace.write_bytes(chat(6))
    found = run_in(project, LIBRARY, str(trace), workspace=tmp_path / "lab")
    assert [block for block in found["blocks"] if block is not None] == [0, 3]
    assert found["marks"] == [["#009E73", "pentagon"]] and found["chosen"] == ["full", "ends"]
    assert found["times_read"] == 1 + 2  # the prefix once, two blocks at every point


def test_the_form_of_the_page_offers_its_group(project: Path, tmp_path: Path) -> None:
    shown = run_in(project, PAGE, str(write_corpus(tmp_path / "corpus.jsonl", 8)), workspace=tmp_path / "lab")
    assert "First and last" in shown["options"] and shown["faults"] == []
