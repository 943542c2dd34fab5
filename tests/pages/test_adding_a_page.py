"""`docs/adding-a-page.md`, followed literally in a copy of the project: the page is in the menu and draws."""

from pathlib import Path

from tests.guides import followed, run_in
from tests.pages.conftest import chat

VISIT = """
import json
from streamlit.testing.v1 import AppTest
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
import_paths(sys.argv[1:], Workspace())
app = AppTest.from_file("app.py", default_timeout=300).run()
app.switch_page("pages/largest.py")
app.query_params["most"] = "2"
app.run()
table = app.dataframe[0].value
print(json.dumps({"title": app.title[0].value, "turns": [int(count) for count in table["Turns"]],
                  "faults": [str(fault.value) for fault in [*app.exception, *app.error]]}))
"""


def test_the_documented_page_opens_after_one_file_and_one_line(tmp_path: Path) -> None:
    for turns in (2, 6, 4):
        (tmp_path / f"chat{turns}.json").write_bytes(chat(turns))
    files = [str(path) for path in tmp_path.glob("chat*.json")]
    shown = run_in(followed("adding-a-page.md", tmp_path), VISIT, *files, workspace=tmp_path / "lab")
    assert shown["title"] == "Largest traces" and shown["faults"] == []
    assert shown["turns"] == [6, 4]
