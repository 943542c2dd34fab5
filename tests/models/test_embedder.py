"""The embedder: unit rows, long texts kept whole, and the shipped fake."""

import numpy as np
import pytest

from pamer_lab.models.embedder import Embedder, HashingEmbedder, load_embedder
from pamer_lab.models.profiles import PROFILES, EmbeddingSettings, Profile


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return load_embedder(PROFILES["embedded"], "cpu")


def test_the_hashing_embedder_is_deterministic_and_finds_a_text_by_its_words() -> None:
    rows = HashingEmbedder().embed(["the port is 5432", "a cat sat on the mat", ""])
    query = HashingEmbedder().embed(["which port is it, 5432?"])[0]
    assert rows.dtype == np.float32
    assert rows.shape == (3, 256)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert query @ rows[0] > query @ rows[1]


def test_a_profile_may_ask_for_the_hashing_embedder() -> None:
    profile = Profile(name="tiny", embedding=EmbeddingSettings(kind="hashing", dimensions=64))
    assert load_embedder(profile, "cpu").dimensions == 64


@pytest.mark.weights
def test_minilm_gives_unit_rows_in_the_order_of_the_texts(minilm: Embedder) -> None:
    rows = minilm.embed(["a database password was changed", "how to bake bread", "the credentials of postgres were rotated"])
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert rows[0] @ rows[2] > rows[0] @ rows[1]
    assert minilm.embed([]).shape == (0, 384)


@pytest.mark.weights
def test_a_text_longer_than_the_window_is_not_cut_off(minilm: Embedder) -> None:
    filler = "the weather is mild today and nothing happens. " * 100
    plain, with_end = minilm.embed([filler, filler + "The secret launch code of the rocket is 9981. " * 30])
    query = minilm.embed(["secret launch code of the rocket"])[0]
    assert query @ with_end > query @ plain + 0.05


@pytest.mark.weights
def test_a_long_text_is_the_length_weighted_mean_of_its_pieces(minilm: Embedder) -> None:
    text = "alpha beta gamma delta " * 200
    pieces = minilm.pieces(text)  # type: ignore[attr-defined]
    assert "".join(piece for piece, _ in pieces) == text.strip() + " "
    rows = minilm.embed([piece for piece, _ in pieces])
    mean = (rows * np.array([[tokens] for _, tokens in pieces])).sum(axis=0)
    assert np.allclose(minilm.embed([text])[0], mean / np.linalg.norm(mean), atol=1e-5)
