"""Each distinct text is embedded once per workspace and embedder, short texts with short ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pamer_lab.errors import StorageError
from pamer_lab.models import kept_embeddings
from pamer_lab.models.embedder import HashingEmbedder, Matrix
from pamer_lab.models.kept_embeddings import EMBEDDINGS, KeptEmbeddings
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace


class Counted(HashingEmbedder):
    """Remembers what it was asked."""

    def __init__(self, dimensions: int = 16) -> None:
        super().__init__(dimensions)
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        return super().embed(texts)


@pytest.fixture
def database(workspace: Workspace) -> Database:
    workspace.path.mkdir()
    return workspace.database


def test_vectors_are_those_of_the_inner_embedder_each_text_once(database: Database) -> None:
    inner = Counted()
    kept = KeptEmbeddings(inner, database)
    assert np.array_equal(kept.embed(["a", "b", "a"]), HashingEmbedder(16).embed(["a", "b", "a"]))
    kept.embed(["b"])
    assert inner.asked == [["a", "b"]] and kept.embed([]).shape == (0, 16)
    assert KeptEmbeddings.over(kept) is kept


def test_another_process_finds_them_and_another_embedder_does_not(database: Database) -> None:
    first = KeptEmbeddings(Counted(), database)
    first.embed(["a", "b"])
    first.flush()
    again, other = Counted(), Counted(8)
    assert np.array_equal(KeptEmbeddings(again, database).embed(["b", "a"]), first.embed(["b", "a"])) and again.asked == []
    KeptEmbeddings(other, database).embed(["a"])
    assert other.asked == [["a"]]


def test_texts_of_similar_length_are_embedded_together_and_stored_batch_by_batch(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_embeddings, "BATCH", 2)
    inner, seen = Counted(), list[tuple[int, int]]()
    kept = KeptEmbeddings(inner, database)
    assert kept.warm(["long text", "a", "longer text", "bb"], lambda done, of: seen.append((done, of))) == 4
    assert inner.asked == [["a", "bb"], ["long text", "longer text"]] and seen == [(2, 4), (4, 4)]
    assert database.count(EMBEDDINGS) == 4
    assert list(kept.missing(["a", "new"]).values()) == ["new"]


def test_a_store_that_fails_or_is_gone_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = KeptEmbeddings(Counted(), Database(tmp_path / "gone" / "lance"))
    assert gone.embed(["a"]).shape == (1, 16)
    gone.flush()
    assert not (tmp_path / "gone").exists()

    def fail(*given: object) -> None:
        raise StorageError("full")

    broken = KeptEmbeddings(Counted(), Database(tmp_path / "lance"))
    monkeypatch.setattr(Database, "upsert", fail)
    assert broken.embed(["a"]).shape == (1, 16)
    broken.flush()


def test_the_oldest_leave_memory_and_come_back_from_the_workspace(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_embeddings, "KEPT", 2)
    monkeypatch.setattr(kept_embeddings, "BATCH", 1)
    inner = Counted()
    kept = KeptEmbeddings(inner, database)
    for text in ("a", "b", "c", "a"):
        kept.embed([text])
    assert inner.asked == [["a"], ["b"], ["c"]]
