"""Studies are kept by what they are, and come back the same."""

from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.studies.study import Study, list_studies, load_study, read_study, save_study, write_study
from pamer_lab.workspace import Workspace


def study(seeds: str = "0,1", mean: float = 0.5) -> Study:
    return Study(
        "layerwise", "Layers", "pamer-lab layerwise x", "m", {"corpus": "abc"}, {"seeds": seeds}, [{"name": "final", "mean": mean}]
    )


def test_a_study_comes_back_and_the_same_study_replaces_itself(workspace: Workspace) -> None:
    assert list_studies(workspace) == []
    first = save_study(workspace, study(mean=0.5))
    assert save_study(workspace, study(mean=0.6)) == first
    assert save_study(workspace, study("0,1,2")) != first
    assert {row["study_id"] for row in list_studies(workspace)} == {first, study("0,1,2").study_id}
    found = load_study(workspace, first)
    assert found.rows == [{"name": "final", "mean": 0.6}]
    assert found.created


def test_an_unknown_study_is_answered_with_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="layerwise-000"):
        load_study(workspace, "layerwise-000")


def test_a_study_file_is_small_numbers_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "study.json"
    write_study(study(mean=1 / 3), path)
    assert read_study(path).rows[0]["mean"] == 0.333333
    path.write_text("{}")
    with pytest.raises(InputError, match=r"study\.json"):
        read_study(path)
