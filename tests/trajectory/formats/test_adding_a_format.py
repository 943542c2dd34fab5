"""`docs/adding-a-format.md`, followed literally: its file in a temporary folder, its line in the registry, a file imported through it."""

import re
import sys
from pathlib import Path

import pytest

from pamer_lab.trajectory import formats, read_all, read_bytes
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "adding-a-format.md").read_text()
CODE = re.search(r"```python\n(\"\"\"Diaries.*?)```", GUIDE, re.DOTALL)
SAMPLE = re.search(r"```json\n(.*?)```", GUIDE, re.DOTALL)
LINE = re.search(r"^    \"(\w+)\",  +# before", GUIDE, re.MULTILINE)


@pytest.fixture
def diaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one diary, after one file and one line were added to the package."""
    assert CODE and SAMPLE and LINE
    package = tmp_path / "formats"
    package.mkdir()
    (package / f"{LINE[1]}.py").write_text(CODE[1])
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(package)])
    monkeypatch.setattr(formats, "ORDER", (*formats.ORDER[:-2], LINE[1], *formats.ORDER[-2:]))
    monkeypatch.delitem(sys.modules, f"{formats.__name__}.{LINE[1]}", raising=False)
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "run.diary").write_text(SAMPLE[1])
    return folder


def test_the_documented_format_is_read_after_one_file_and_one_line(diaries: Path) -> None:
    reading = read_all([diaries])
    (trace,) = reading.traces
    assert trace.format == "diary" and not trace.warnings and not reading.rejected
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.messages[1].tool_calls[0].arguments == '{"path":"a.txt"}' and trace.messages[2].content == "total: 51"


def test_a_file_of_the_documented_format_is_imported_into_the_workspace(diaries: Path, workspace: Workspace) -> None:
    imported = import_paths([diaries], workspace)
    assert [row["format"] for row in imported.traces] == ["diary"] and not imported.rejected
    assert len(workspace.trace_rows()) == 1


def test_its_faults_have_a_place(diaries: Path) -> None:
    (rejection,) = read_bytes(b'{"diary": 1, "pages": [{"answer": "x"}]}', "run.diary").rejected
    assert rejection.where == "goal"
    (rejection,) = read_bytes(b'{"diary": 1, "goal": "g", "pages": [7]}', "run.diary").rejected
    assert rejection.where == "pages[0]"


def test_the_files_of_a_format_are_found_by_the_suffix_it_names(diaries: Path) -> None:
    assert ".diary" in formats.read_suffixes()
    own = {suffix for reader in formats.formats() for suffix in getattr(reader, "SUFFIXES", ())}
    assert own == {".af", ".diary", ".eval", ".har", ".traj"}
    (diaries / "notes.txt").write_text("no trace")
    assert len(read_all([diaries]).traces) == 1
