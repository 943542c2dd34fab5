"""Profiles: the two that ship, and files that change them."""

from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile


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
