"""The Python in the README and in `docs/` runs and type-checks as it is."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from plotly.graph_objects import Figure

import pamer_lab
from pamer_lab import figures
from pamer_lab.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[1]
EXAMPLE = PROJECT / "docs" / "example.py"
GUIDE = (PROJECT / "docs" / "python.md").read_text(encoding="utf-8")


def program(page: Path) -> str:
    """The first Python block of a page."""
    code = re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    return code[1]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: like a checkout, with the sample traces and nothing else."""
    (tmp_path / "sample_traces").symlink_to(PROJECT / "sample_traces")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.weights
def test_the_python_of_the_readme_runs_as_it_is(checkout: Path) -> None:
    names: dict[str, object] = {}
    exec(compile(program(PROJECT / "README.md"), "README.md", "exec"), names)  # our own README
    assert names["messages"] == [{"role": "user", "content": "hello"}]
    assert Workspace(checkout / ".pamer-lab").runs()["policy"].to_list() == ["base", "pamer"]
    assert (checkout / "context.html").stat().st_size > 0


@pytest.mark.weights
def test_the_example_runs_leaves_nothing_behind_and_draws_every_chart(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Torch makes a folder for its compiler when it is first imported, whether anything is compiled or not.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("torch")))
    temporary = checkout / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    names = runpy.run_path(str(EXAMPLE))
    assert list(temporary.iterdir()) == [] and {path.name for path in checkout.iterdir()} == {"sample_traces", "temporary"}
    assert names["table"]["policy"].to_list() == ["base", "sliding-window:3", "periodic-summary:10"]
    assert names["turns"]["t"].to_list() == list(range(8)) and "compress" in names["turns"]["action"].to_list()
    assert names["refusal"].startswith("sample_traces/broken.json")
    drawn = [value for value in names.values() if isinstance(value, Figure)]
    charts = [name for name in figures.__all__ if callable(getattr(figures, name)) and name != "Shown"]
    assert len(drawn) == len(charts) and all(figure.data for figure in drawn)
    assert all(f"figures.{name}(" in EXAMPLE.read_text() and f"`{name}(" in GUIDE for name in charts)


def test_the_guide_runs_as_it_is(checkout: Path) -> None:
    names: dict[str, object] = {}
    exec(compile(program(PROJECT / "docs" / "python.md"), "python.md", "exec"), names)
    assert isinstance(names["table"], pl.DataFrame) and isinstance(names["chart"], Figure)


def test_the_python_of_the_documentation_passes_strict_type_checking(tmp_path: Path) -> None:
    files = {"readme": program(PROJECT / "README.md"), "guide": program(PROJECT / "docs" / "python.md"), "example": EXAMPLE.read_text()}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    paths = [str(tmp_path / f"{name}.py") for name in files]
    # The project's own settings are strict; with the same ones `make types` has checked the package already.
    done = subprocess.run([sys.executable, "-m", "mypy", *paths], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_public_name_is_listed_found_and_explained() -> None:
    for name in pamer_lab.__all__:
        assert name in dir(pamer_lab)
        value = getattr(pamer_lab, name)
        assert name == "__version__" or (value.__doc__ and name in GUIDE), name


def test_every_column_of_a_frame_is_in_the_guide(checkout: Path) -> None:
    lab = Workspace(checkout / "lab")
    [trace] = pamer_lab.read_traces("sample_traces/try-upload.chat.json")
    run = pamer_lab.replay(trace, "base", lab)
    parts = dict(re.findall(r"^\*\*`([\w.]+)\(.*?\)`\*\*(.*?)(?=^\*\*|^Replay keeps)", GUIDE, re.DOTALL | re.MULTILINE))
    frames = {
        "Trace.frame": trace.frame(),
        "Workspace.traces": lab.traces(),
        "Workspace.runs": lab.runs(),
        "Run.turns_frame": run.turns_frame(),
        "compare": pamer_lab.compare([run], [trace]),
    }
    assert parts.keys() == frames.keys()
    for name, frame in frames.items():
        assert frame.height > 0
        head = ["run_id", "trace_id", "policy"] if name == "Run.turns_frame" else []
        rows = [line.split("|")[1] for line in parts[name].splitlines() if line.startswith("| `")]
        assert head + [column for row in rows for column in re.findall(r"`(\w+)`", row)] == frame.columns
