"""The house plan, kept true: who may import whom, and where the heavy packages are allowed."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "pamer_lab"
PLAN = re.search(r"```\n(errors .*?)```", (PACKAGE.parent / "CONTRIBUTING.md").read_text(), re.DOTALL)
ROOMS = [line.split()[0] for line in PLAN.group(1).splitlines()] if PLAN else []
"""The list in CONTRIBUTING.md: a room may import the rooms before it."""
OUTERMOST = {"bench", "commands", "cli"}
"""These may import each other."""


def _modules(room: str) -> list[Path]:
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{room}.py"]


def _imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imports; `from pamer_lab import figures` is `pamer_lab.figures`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" if node.module == "pamer_lab" else node.module for alias in node.names)


def test_every_module_is_in_a_room_of_the_plan() -> None:
    found = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert found - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_before_it(room: str) -> None:
    before = set(ROOMS if room in OUTERMOST else ROOMS[: ROOMS.index(room) + 1]) | {"__version__"}
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {name}"
        for module in _modules(room)
        for name in _imports(ast.parse(module.read_text()))
        if name.startswith("pamer_lab.") and name.split(".")[1] not in before
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_special_packages_stay_in_their_rooms(room: str) -> None:
    names = {name.split(".")[0] for module in _modules(room) for name in _imports(ast.parse(module.read_text()))}
    assert "streamlit" not in names or room in ("ui", "bench")
    assert "lancedb" not in names or room in ("storage", "bench")
    assert "pickle" not in names


UI = sorted(path for path in (PACKAGE / "ui").iterdir() if (path / "__init__.py").is_file())
QUERIES = {"arrow", "upsert", "delete"}
"""Methods of a database."""


@pytest.mark.parametrize("folder", UI, ids=lambda folder: folder.name)
def test_a_pages_folder_imports_itself_and_what_pages_share(folder: Path) -> None:
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {name}"
        for module in folder.rglob("*.py")
        for name in _imports(ast.parse(module.read_text()))
        if name.startswith("pamer_lab.ui.") and name.split(".")[2] not in (folder.name, "shared")
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", [*UI, PACKAGE.parent / "pages"], ids=lambda folder: folder.name)
def test_pages_query_no_table(folder: Path) -> None:
    """A query is a named function of a store; pages name tables at most, to see that they changed."""
    wrong = [f"{module.name}: {found}" for module in folder.rglob("*.py") for found in _queries(ast.parse(module.read_text()))]
    assert wrong == []


def _queries(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ("where=" for keyword in node.keywords if keyword.arg == "where")
        elif isinstance(node, ast.Attribute) and (node.attr in QUERIES or ast.unparse(node.value).endswith("database")):
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pamer_lab.storage"):
            yield from (alias.name for alias in node.names if alias.name != "TableSpec")


def test_reading_a_trace_imports_neither_torch_nor_streamlit(tmp_path: Path) -> None:
    program = (
        "import sys; import pamer_lab; pamer_lab.read_traces(sys.argv[1]); import pamer_lab.workspace;"
        "heavy = {'torch', 'transformers', 'streamlit', 'sentence_transformers', 'sklearn'} & set(sys.modules);"
        "sys.exit(' '.join(heavy) or 0)"
    )
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]')
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr


def test_no_workspace_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=PACKAGE.parent, check=False).stdout.split()
    assert [name for name in listed if ".lance/" in name or name.endswith(".lock")] == []


OWN_FILES = {
    "corpus/tables.py": "tables of the package",
    "ui/shared/theme.py": "an asset of the package",
    "ui/shared/marks.py": "an asset of the package",
    "ui/shared/keys.py": "an asset of the package",
    "ui/shared/page.py": "an asset of the package",
    "ui/audit/reviewer.py": "an asset of the package",
    "workspace/apart.py": "the system's own account of a process",
    "ui/shared/charts.py": "an asset of the package",
    "report/page.py": "assets of the package",
    "studies/questions.py": "texts of the package",
    "analysis/published.py": "tables of the package",
    "models/frozen.py": "a model's folder, which the user named as a model",
    "models/vram.py": "a model's folder",
    "models/speed.py": "a model's folder",
    "models/embedded.py": "the prepared model",
    "models/devices.py": "the system's own files",
    "live/logs.py": "the session files of the workspace",
    "live/serve.py": "the files of running proxies, which they remove",
    "models/seal.py": "the prepared model, compared with its hash",
}
"""Modules that open files themselves, and whose files these are; untrusted files are opened through `opening`."""


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("opening", "bench")])
def test_an_untrusted_file_is_opened_in_one_place(room: str) -> None:
    opened = {"read_bytes", "read_text"}
    for module in _modules(room):
        if str(module.relative_to(PACKAGE)) in OWN_FILES:
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                on_path = attribute in opened and not node.args
                assert name != "open" and not on_path, (
                    f"{module.relative_to(PACKAGE)}:{node.lineno} opens a file itself; use pamer_lab.opening"
                )
