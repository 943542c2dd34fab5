"""Heads are found by name or folder, chosen by the model they read, and refused with what would fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.probes.artefact import FACTS
from pamer_lab.probes.registry import find_heads, heads_for, list_heads, register, remove
from tests.probes.test_artefact import heads

PACKAGED = "smollm2-generated"
REAL = "smollm2-real"
SMOLLM2 = "SmolLM2-135M-Instruct"


def test_registered_heads_are_listed_after_the_packaged_ones_with_everything_a_reader_needs(tmp_path: Path) -> None:
    kept = register(heads(), "mine", tmp_path)
    found, faults = list_heads(tmp_path)
    assert [(entry.name, entry.source) for entry in found] == [(PACKAGED, "package"), (REAL, "package"), ("mine", "workspace")]
    assert not faults
    row = found[0].row()
    assert {"name", "model", "layer", "pooling", "hint", "context", "target", "sha256", "auroc", "corpus", "source"} <= set(row)
    assert row["model"] == SMOLLM2 and row["corpus"]["decision_points"] > 0 and 0.5 < row["auroc"]["mean"] < 1
    assert found[2].heads.sha256 == kept.heads.sha256 == heads().sha256


def test_heads_that_cannot_be_read_are_named_and_do_not_hide_the_others(tmp_path: Path) -> None:
    register(heads(), "mine", tmp_path)
    (tmp_path / "heads" / "mine" / FACTS).write_text("{")
    found, faults = list_heads(tmp_path)
    assert [entry.name for entry in found] == [PACKAGED, REAL]
    assert len(faults) == 1 and "mine" in faults[0]


def test_a_folder_is_taken_where_no_heads_have_that_name(tmp_path: Path) -> None:
    folder = heads().save(tmp_path / "elsewhere" / "best")
    assert find_heads(str(folder), tmp_path).identity()["name"] == "best"
    assert find_heads(str(folder), tmp_path).source == "folder"
    with pytest.raises(InputError, match=PACKAGED):
        find_heads("nothing-of-that-name", tmp_path)


def test_without_a_name_the_packaged_heads_vote_else_the_only_registered_ones(tmp_path: Path) -> None:
    register(replace(heads(), model_name=SMOLLM2), "other", tmp_path)
    assert heads_for(SMOLLM2, "", tmp_path).name == PACKAGED
    assert heads_for(SMOLLM2, "other", tmp_path).name == "other"
    with pytest.raises(InputError, match="pamer-lab train"):
        heads_for("Some-Model", "", tmp_path)
    register(heads(), "one", tmp_path)
    assert heads_for("Some-Model", "", tmp_path).name == "one"
    register(heads(), "two", tmp_path)
    with pytest.raises(InputError, match="one, two"):
        heads_for("Some-Model", "", tmp_path)


def test_heads_of_another_model_are_refused_with_those_that_would_fit(tmp_path: Path) -> None:
    register(heads(), "fitting", tmp_path)
    with pytest.raises(InputError, match=r"SmolLM2.*Some-Model.*fitting"):
        heads_for("Some-Model", PACKAGED, tmp_path)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 65, "nul\0", "default", PACKAGED])
def test_a_name_that_is_no_folder_of_its_own_or_is_taken_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        register(heads(), name, tmp_path)
    assert not list(tmp_path.rglob(FACTS))


def test_registering_again_replaces_and_removing_forgets(tmp_path: Path) -> None:
    register(heads(), "mine", tmp_path)
    again = register(replace(heads(), layer="block_9"), "mine", tmp_path)
    assert find_heads("mine", tmp_path).heads.layer == "block_9" == again.heads.layer
    remove("mine", tmp_path)
    assert [entry.name for entry in list_heads(tmp_path)[0]] == [PACKAGED, REAL]
    for name in ("mine", PACKAGED, "../x"):
        with pytest.raises(InputError):
            remove(name, tmp_path)


def test_one_packaged_set_is_the_default_and_says_why_and_the_other_says_how_it_did_on_unseen_sources(tmp_path: Path) -> None:
    rows = {entry.name: entry.row() for entry in list_heads(tmp_path)[0]}
    assert [name for name, row in rows.items() if row["default"]] == [PACKAGED] and rows[PACKAGED]["why_default"]
    unseen = rows[REAL]["unseen"]
    assert unseen["labels"] == "hindsight" and unseen["n"] > 0 and 0 <= unseen["auroc"]["interval"][0] <= unseen["auroc"]["mean"]
    assert rows[REAL]["sources"] and set(rows[REAL]["sources"].values()) <= {"MIT", "Apache-2.0"}
    assert not set(rows[REAL]["sources"]) & set(unseen["sources"])
