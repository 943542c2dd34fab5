"""What a study takes by its conditions: a text that two of them share counts once, whatever they do with it."""

import json
from pathlib import Path

import pytest

from pamer_lab.features import pace
from pamer_lab.features.pace import FILE, depth_of
from pamer_lab.features.store import every_fourth
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.speed import LOADING
from pamer_lab.studies.compact.estimate import estimate, layerwise_conditions, times_read
from pamer_lab.studies.compact.registry import all_conditions, choose, condition
from pamer_lab.workspace import Workspace

EMBEDDED = load_profile("embedded")
FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "compact-study.json"


def test_the_full_context_is_read_once_and_recent_blocks_at_every_point() -> None:
    assert times_read([condition("full")]) == times_read([condition("full"), condition("full-no-hint")]) == 1
    assert times_read([condition("current")]) == 1
    assert [times_read([condition(f"recent{count}")]) for count in (1, 2, 4)] == [2, 3, 5]


def test_conditions_that_read_the_same_text_share_it_and_stored_states_take_a_pass() -> None:
    assert times_read(choose("recent2,recent2-scalar,recent2-kd")) == times_read(choose("recent2"))
    assert times_read(choose("bank-recent5")) == times_read(choose("recent1")) + 1
    assert times_read(choose("raw-top3")) == times_read(choose("full")) + 1 + 2 + 3


def test_every_condition_is_counted_and_a_sample_reads_less() -> None:
    everything = times_read(all_conditions())
    assert everything > times_read(choose("raw")) > times_read(choose("raw"), 0.5) > times_read(choose("full"))


def test_seconds_follow_the_pace_that_was_measured_where_there_is_one(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("busy", "stretch"):
        monkeypatch.setattr(pace, name, lambda: 1.0)
    guess = estimate([condition("full")], 10_000, EMBEDDED, workspace)
    assert guess.tokens == 10_000 and guess.basis == "guessed" and guess.seconds > LOADING
    workspace.path.mkdir()
    (workspace.path / FILE).write_text(json.dumps({"SmolLM2-135M-Instruct cpu": {"blocks": 50.0 * depth_of(EMBEDDED), "loading": 4.0}}))
    known = estimate([condition("full")], 10_000, EMBEDDED, workspace)
    assert (known.basis, known.speed) == ("measured", 50.0) and known.seconds == pytest.approx(4 + 200)


def test_controls_read_the_full_context_too() -> None:
    assert [one.name for one in layerwise_conditions("full", controls=True)] == ["full"]
    assert [one.name for one in layerwise_conditions("recent2", controls=True)] == ["recent2", "full"]


def test_every_fourth_layer_is_of_the_model_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 10, "hidden_size": 8}))
    assert every_fourth(str(tmp_path)) == ("block_4", "block_8", "final")
    assert every_fourth(str(tmp_path / "absent")) == ()
