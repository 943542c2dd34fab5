"""Sources of traces: by their folder, or by a table."""

from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.studies.sources import sources_of
from pamer_lab.trajectory.values import Message, Source, Trace


def trace_in(path: str) -> Trace:
    return Trace(path, "q", "native", (Message("user", "a"),), source=Source(path))


def test_a_traces_source_is_its_folder_without_a_table() -> None:
    assert sources_of([trace_in("/data/tau/a.json"), trace_in("b.json")]) == {"/data/tau/a.json": "tau", "b.json": "unknown"}


def test_a_table_names_repositories_by_the_end_of_a_path(tmp_path: Path) -> None:
    table = tmp_path / "sources.csv"
    table.write_text("file,repository,licence\ntau/a.json,one/agent,MIT\nswe/a.json,two/agent,MIT\n")
    assert list(sources_of([trace_in("/x/tau/a.json"), trace_in("/y/swe/a.json")], table).values()) == ["one/agent", "two/agent"]
    with pytest.raises(InputError, match=r"other/b\.json"):
        sources_of([trace_in("/x/other/b.json")], table)


@pytest.mark.parametrize("text", ["", "path,owner\na,b\n"])
def test_a_table_without_the_columns_is_refused(tmp_path: Path, text: str) -> None:
    table = tmp_path / "sources.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=r"file.*repository"):
        sources_of([trace_in("a")], table)
