"""Profiles: the two that ship, and files that change them."""

import re
from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.models.frozen import chosen_model, load_frozen
from pamer_lab.models.profiles import known_profiles, load_profile, remember_profile
from pamer_lab.models.tokenizer import profile_counter


def test_the_paper_profile_has_the_papers_limits() -> None:
    profile = load_profile("paper")
    assert (profile.probe_limit, profile.prefix_kept, profile.output_reserve) == (35_000, 2_048, 16_384)
    assert profile.embedding.dimensions == 1_024
    assert (profile.chat.timeout_seconds, profile.chat.attempts, profile.chat.temperature) == (100, 8, 0)
    assert (profile.embedding.timeout_seconds, profile.embedding.attempts) == (30, 8)


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "paper"\nprobe_limit = 20000\n[chat]\nbase_url = "http://127.0.0.1:9/v1"\n')
    profile = load_profile(file)
    assert profile.name == "mine"
    assert profile.probe_limit == 20_000
    assert profile.chat.base_url == "http://127.0.0.1:9/v1"
    assert profile.chat.model == load_profile("paper").chat.model


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prob_limit = 3", "prob_limit"),
        ('base = "papre"', "papre"),
        ("[chat]\nattempts = 0", "chat.attempts"),
        ("not toml", "cannot be read"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=expected):
        load_profile(file)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="embedded, paper"):
        load_profile("papr")


def test_a_file_based_on_paper_inherits_its_training_defaults(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "paper"\n[frozen_model]\nmodel = "some/folder"\n')
    profile = load_profile(file)
    assert (profile.training.layer, profile.training.hint) == ("final", "faithful")
    assert profile.frozen_model.fallback == ""  # a model of one's own is never replaced by the paper's


def test_the_paper_profile_takes_the_papers_checkpoint_where_it_is_and_the_base_model_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_profile("paper").frozen_model
    assert chosen_model(settings) == "Qwen/Qwen3.5-9B"
    (tmp_path / settings.model).mkdir()
    (tmp_path / settings.model / "config.json").write_text("{}")
    assert chosen_model(settings) == settings.model


def test_any_hub_id_or_model_folder_is_a_profile(tmp_path: Path) -> None:
    assert load_profile("hf:Qwen/Qwen3-0.6B").frozen_model.model == "Qwen/Qwen3-0.6B"
    assert load_profile(f"hf:{tmp_path}").name == f"hf:{tmp_path}"
    for text in ("hf:", "hf:one", "hf:a/b/c", "hf:../x y"):
        with pytest.raises(InputError, match=re.escape(text)):
            load_profile(text)


def test_a_model_that_is_not_on_this_machine_is_answered_with_the_command_that_gets_it() -> None:
    profile = load_profile("hf:some-one/no-such-model")
    with pytest.raises(InputError, match="hf download some-one/no-such-model"):
        load_frozen(profile)
    with pytest.raises(InputError, match="hf download some-one/no-such-model"):
        profile_counter(profile)


def test_a_folder_without_a_tokenizer_is_refused_with_the_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match=str(tmp_path)):
        profile_counter(load_profile(f"hf:{tmp_path}"))


def test_a_workspace_knows_the_profiles_its_runs_were_made_with(tmp_path: Path) -> None:
    file = tmp_path / "my own.toml"
    file.write_text("probe_limit = 77\n")
    remember_profile(load_profile(file), tmp_path / "workspace")
    file.unlink()
    assert load_profile("my own", tmp_path / "workspace").probe_limit == 77
    assert known_profiles(tmp_path / "workspace") == ["embedded", "paper", "my own"]
    with pytest.raises(InputError, match="my own"):
        load_profile("mine", tmp_path / "workspace")


def test_a_file_cannot_take_the_name_of_a_built_in_profile(tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text("probe_limit = 3\n")
    with pytest.raises(InputError, match="name"):
        load_profile(tmp_path / "paper.toml")


@pytest.mark.parametrize(
    "line", ["base = []", "base = {}", "name = []", "name = {a = 1}", "base = 1979-05-27", "a = " + "[" * 900 + "]" * 900]
)
def test_a_profile_with_values_of_another_kind_is_refused_in_a_sentence(tmp_path: Path, line: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(line + "\n")
    with pytest.raises(InputError):
        load_profile(path)
