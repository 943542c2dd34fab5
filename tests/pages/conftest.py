"""A page under AppTest, with the complete app around it and a workspace of its own."""

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from pamer_lab.config import ROOTS_VARIABLE
from pamer_lab.errors import StorageError
from pamer_lab.redaction import Scan
from pamer_lab.runs.bundle import pack_runs
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.samples import import_sample_runs
from pamer_lab.runs.values import Run
from pamer_lab.ui.shared.gate import TOKEN, cookie_name
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import Imported, import_demo, import_uploads
from tests.runs.making import PARTS

APP = Path(__file__).resolve().parents[2] / "app.py"

Visit = Callable[..., AppTest]
Files = dict[str, Callable[[], bytes]]
DISK_FULL = "the disk is full"


@pytest.fixture
def visit(workspace: Workspace) -> Visit:
    """Opens a page as a fresh browser would, with the URL's parameters given by name."""

    def open_page(page: str = "pages/traces.py", **parameters: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=300)
        if page != "pages/traces.py":
            app.run()
            app.switch_page(page)
        app.query_params.update(parameters)
        return app.run()

    return open_page


@pytest.fixture
def came_by_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that has the token of this start, and may read below the test's folder."""
    monkeypatch.setattr(ContextProxy, "cookies", {cookie_name(): TOKEN})
    monkeypatch.setenv(ROOTS_VARIABLE, str(tmp_path))


@pytest.fixture
def no_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout without sample traces."""
    for module in ("shared.loaders", "traces.adding"):
        monkeypatch.setattr(f"pamer_lab.ui.{module}.DEMO_FOLDER", tmp_path / "absent")


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run can be stored."""

    def full(*_: object) -> None:
        raise StorageError(DISK_FULL)

    monkeypatch.setattr("pamer_lab.ui.shared.run_form.replay", full)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A checkout whose recorded runs are one PaMER+ run of a demo, made here with heads that need no weights."""
    elsewhere = Workspace(tmp_path / "elsewhere")
    import_demo(elsewhere)
    trace_id = next(row["trace_id"] for row in elsewhere.trace_rows() if row["name"].startswith("museum-case"))
    options = ReplayOptions(device="cpu", parts=PARTS, turn_limit=24)
    run = replay(trace_id, "pamer+", elsewhere, options)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "demo.runs").write_bytes(pack_runs(elsewhere, [run.run_id], Scan("keys")))
    monkeypatch.setattr(sys.modules[import_sample_runs.__module__], "SAMPLE_RUNS", folder)
    return run


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """What each download button of the last page would save, by the name of the file."""
    found: Files = {}
    drawn = st.download_button

    def noted(label: str, data: Callable[[], bytes], name: str, *args: object, **more: object) -> bool:
        found[name] = data
        return partial(drawn, label, data, name)(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(st, "download_button", noted)
    return found


def opened(files: Files, name: str) -> Any:
    """A saved table as a frame."""
    return pd.read_csv(StringIO(files[name]().decode()), keep_default_na=False)


def chat(turns: int, **more: Any) -> bytes:
    """A plain chat of some turns; turn n says `answer n`."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "question"}]
    for number in range(turns):
        messages += [{"role": "assistant", "content": f"answer {number}"}, {"role": "user", "content": f"go on {number}"}]
    return json.dumps({"messages": messages, **more}).encode()


def put(workspace: Workspace, **files: bytes) -> Imported:
    """Import uploads by name."""
    return import_uploads([(f"{name}.json", data) for name, data in files.items()], workspace)


def sentences(app: AppTest) -> list[str]:
    """Each text of the page."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.success, app.warning, app.error, app.text)
    return [str(element.value) for kind in kinds for element in kind]


def texts(app: AppTest) -> str:
    """Everything the page says in words."""
    return "\n".join(sentences(app))


def says(app: AppTest, *facts: object) -> bool:
    """Whether one text of the page holds all of these numbers and names, each as a word of its own, in this order."""
    return any(holds(text, *facts) for text in sentences(app))


def holds(text: str, *facts: object) -> bool:
    """Whether a text holds these numbers and names, each as a word of its own, in this order."""
    each = (rf"(?<![\w.,-]){re.escape(str(fact))}(?!\w|[.,]\d)" for fact in facts)
    return re.search(".*?".join(each), text, re.DOTALL) is not None


def key_of(element: Any) -> str:
    """The key a chart or table was given; empty without one."""
    return "-".join(str(element.proto.id).split("-")[2:]) if element.proto.id else ""


def charts(app: AppTest) -> list[str]:
    """Keys of the charts on the page."""
    return [key_of(chart) for chart in app.get("plotly_chart")]


def table_of(app: AppTest, key: str) -> Any:
    """The table whose key begins so."""
    return next(frame.value for frame in app.dataframe if key_of(frame).startswith(key))


def submit(app: AppTest, form: str) -> AppTest:
    """Press the button of a form."""
    return next(button for button in app.button if str(button.key).startswith(f"FormSubmitter:{form}-")).click().run()


def linked(app: AppTest) -> set[str]:
    """Pages that the page links to."""
    return {str(link.proto.page) for link in app.get("page_link")}
