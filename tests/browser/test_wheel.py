"""The built wheel, installed apart from the checkout: the dashboard with its pages, demo traces and theme, and the types."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pamer_lab.bench.server import started
from pamer_lab.workspace import Workspace
from tests.browser.driver import Visitor

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = ("pamer_lab", "pages", "sample_traces", ".streamlit", "app.py", "setup.py", "pyproject.toml", "README.md", "LICENSE")
"""What a wheel is built from; the rest of the checkout must not matter."""
DEMO = {path.name for path in (PROJECT / "sample_traces" / "demo").iterdir()}
IGNORED = shutil.ignore_patterns("__pycache__", "_app")
EVERY_PAGE = """
import json, sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
import pamer_lab
from pamer_lab.config import app_folder

app = AppTest.from_file(str(app_folder() / "app.py"), default_timeout=300).run()
names = list(app.dataframe[0].value["Name"])
faults = [str(fault.value) for fault in app.exception]
pages = sorted(path.name for path in (app_folder() / "pages").glob("*.py"))
for page in pages:
    app.switch_page(f"pages/{page}").run()
    faults += [str(fault.value) for fault in app.exception]
print(json.dumps({"package": pamer_lab.__file__, "names": names, "pages": pages, "faults": faults}))
"""


@dataclass(frozen=True)
class Installed:
    """A wheel in a folder of its own, and an empty folder to work in."""

    site: Path
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """The wheel comes before anything else that is installed; the workspace is the default one of the folder."""
        named = {key: value for key, value in os.environ.items() if key != "PAMER_LAB_HOME"}
        return named | {"PYTHONPATH": str(self.site)}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("wheel")
    source, site, folder = place / "source", place / "site", place / "empty"
    folder.mkdir()
    source.mkdir()
    for name in SOURCES:
        path = PROJECT / name
        shutil.copytree(path, source / name, ignore=IGNORED) if path.is_dir() else shutil.copy(path, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(place), str(source)], check=True, capture_output=True)
    wheel = next(place.glob("*.whl"))
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)], check=True, capture_output=True)
    return Installed(site, folder)


@pytest.fixture(scope="module")
def dashboard(installed: Installed) -> Iterator[str]:
    """`pamer-lab app` of the wheel."""
    command = [sys.executable, str(installed.site / "bin" / "pamer-lab"), "app", "--port"]
    with started(command, installed.folder, installed.environment) as (address, _):
        yield address


@pytest.mark.server
def test_the_wheel_has_every_file_of_the_package_and_the_dashboard(installed: Installed) -> None:
    def files(folder: Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}

    package, shipped = installed.site / "pamer_lab", installed.site / "pamer_lab" / "_app"
    assert files(package) - {f"_app/{name}" for name in files(shipped)} == files(PROJECT / "pamer_lab")
    assert "py.typed" in files(package)
    for name in ("pages", "sample_traces", ".streamlit"):
        assert files(shipped / name) == files(PROJECT / name)
    assert (shipped / "app.py").read_bytes() == (PROJECT / "app.py").read_bytes()


@pytest.mark.server
def test_every_page_of_the_wheel_opens_and_the_home_page_lists_the_demo_traces(installed: Installed, tmp_path: Path) -> None:
    environment = {**installed.environment, "PAMER_LAB_HOME": str(tmp_path / "workspace")}
    done = subprocess.run([sys.executable, "-c", EVERY_PAGE], cwd=installed.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["package"] == str(installed.site / "pamer_lab" / "__init__.py")
    assert set(found["names"]) == DEMO
    assert found["pages"] == sorted(path.name for path in (PROJECT / "pages").glob("*.py"))
    assert found["faults"] == []


@pytest.mark.server
@pytest.mark.parametrize("path", ["/", "/_stcore/health"])
def test_the_command_of_the_wheel_serves_the_dashboard_from_an_empty_folder(dashboard: str, path: str) -> None:
    with urllib.request.urlopen(dashboard + path, timeout=60) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(dashboard + path, headers={"Host": "some.name"}), timeout=60)
    assert refused.value.code == 403


@pytest.mark.server
@pytest.mark.browser
def test_the_home_page_of_the_wheel_has_the_demo_traces_and_the_theme(dashboard: str, browser: Browser, installed: Installed) -> None:
    visitor = Visitor(browser, dashboard)
    try:
        page = visitor.open()
        page.get_by_test_id("stDataFrame").first.wait_for()
        background = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
        assert visitor.outside == []
    finally:
        visitor.close()
    theme = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text())["theme"]["light"]["backgroundColor"]
    assert background == f"rgb({int(theme[1:3], 16)}, {int(theme[3:5], 16)}, {int(theme[5:], 16)})"
    rows = Workspace(installed.folder / ".pamer-lab").trace_rows()
    assert {row["name"] for row in rows} == DEMO, "the workspace is that of the folder it was started in"
