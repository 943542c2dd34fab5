"""Where weights and code come from: pinned hashes, sealed caches, safetensors only, nobody else's code."""

import ast
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pamer_lab.errors import ModelError
from pamer_lab.models import embedded

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(PROJECT / "pamer_lab").rglob("*.py"), *(PROJECT / "pages").glob("*.py"), PROJECT / "app.py"])
SERIALISERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def calls() -> Iterator[tuple[Path, str, dict[str, ast.expr]]]:
    """(file, name of the function, keywords) of every call in the code."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                yield path, name, {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}


def is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def test_no_code_of_a_models_repository_is_ever_run() -> None:
    for path, name, keywords in calls():
        if "trust_remote_code" in keywords:
            assert isinstance(keywords["trust_remote_code"], ast.Constant) and keywords["trust_remote_code"].value is False, path
        if name == "SentenceTransformer":
            assert "trust_remote_code" in keywords, path


def test_weights_are_safetensors_and_nothing_is_unpickled() -> None:
    for path, name, keywords in calls():
        assert name != "torch_load" and not is_true(keywords.get("allow_pickle")), path
        if name == "from_pretrained" and "dtype" in keywords:
            assert is_true(keywords.get("use_safetensors")) or "gguf_file" in keywords, path
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        names = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert not names & SERIALISERS, path
        loads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.load"]
        assert loads == [], path


def test_a_gguf_is_read_from_the_pinned_wheel_alone() -> None:
    readers = {path.name for path, _, keywords in calls() if "gguf_file" in keywords}
    assert readers == {"embedded.py"}
    mentions = [path for path in SOURCES if ".gguf" in path.read_text() and path.name != "embedded.py"]
    assert mentions == []


@pytest.mark.parametrize("file", [embedded.SMOLLM2, embedded.MINILM], ids=lambda file: file.name)
def test_an_altered_weight_file_in_a_wheel_is_refused(file: embedded.EmbeddedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"x{file.suffix}").write_bytes(b"GGUF altered")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[str(tmp_path)]))
    with pytest.raises(ModelError, match="SHA-256"):
        embedded.verify(file)


@pytest.mark.weights
def test_the_installed_weights_have_the_pinned_hashes() -> None:
    assert embedded.verify(embedded.SMOLLM2).suffix == ".gguf"
    assert embedded.verify(embedded.MINILM).suffix == ".safetensors"


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder in the place of the prepared model."""
    monkeypatch.setenv("PAMER_LAB_CACHE", str(tmp_path))
    folder = embedded.prepared_folder()
    folder.mkdir()
    for name, text in {"config.json": "{}", "model.safetensors": "weights", "tokenizer.json": "{}"}.items():
        (folder / name).write_text(text)
    embedded.seal(folder)
    return folder


@pytest.mark.parametrize("how", ["altered", "cut", "gone", "seal broken"])
def test_a_prepared_file_that_changed_is_refused_with_the_command_that_makes_it_anew(prepared: Path, how: str) -> None:
    assert embedded.prepare() == prepared
    weights = prepared / "model.safetensors"
    match how:
        case "altered":
            weights.write_text("wEights")
        case "cut":
            weights.write_text("wei")
        case "gone":
            weights.unlink()
        case "seal broken":
            (prepared / embedded.SEAL).write_text('{"model.safetensors": 3}')
    with pytest.raises(ModelError, match="pamer-lab prepare"):
        embedded.prepare()


def test_a_copied_cache_is_hashed_and_accepted(prepared: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(prepared, tmp_path / "copy", copy_function=shutil.copy)
    embedded.check(copy)


def test_a_sound_file_is_not_hashed_at_every_load(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "sha256_of", lambda path: pytest.fail("hashed again"))
    embedded.prepare()


def test_a_folder_from_before_there_were_seals_is_sealed_as_it_is(prepared: Path) -> None:
    (prepared / embedded.SEAL).unlink()
    embedded.prepare()
    (prepared / "model.safetensors").write_text("other")
    with pytest.raises(ModelError):
        embedded.prepare()


def test_versions_that_ran_foreign_code_from_local_folders_are_excluded() -> None:
    """Before 6.0 sentence-transformers imported whatever class a local model folder named."""
    needed = (PROJECT / "pyproject.toml").read_text()
    assert '"sentence-transformers>=6.0"' in needed
    from sentence_transformers import __version__

    assert int(__version__.split(".")[0]) >= 6


def test_an_embedder_folder_that_names_its_own_code_is_refused(tmp_path: Path) -> None:
    from pamer_lab.models.embedder import SentenceEmbedder
    from pamer_lab.models.profiles import EmbeddingSettings

    (tmp_path / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]')
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: ...\n")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError):
        SentenceEmbedder(EmbeddingSettings(model=str(tmp_path)), device="cpu")
    assert not (tmp_path / "ran").exists()
