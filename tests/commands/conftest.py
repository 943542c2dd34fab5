"""What the tests of commands share: a profile with a tiny model of random weights."""

from pathlib import Path

import pytest

from pamer_lab.bench.measure import save_tiny


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    model = save_tiny(folder / "model", "llama")
    file = folder / "tiny.toml"
    file.write_text(f'[frozen_model]\nmodel = "{model}"\n[embedding]\nkind = "hashing"\n')
    return file
