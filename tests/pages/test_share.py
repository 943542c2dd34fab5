"""Sharing from a page, and every page in reviewer mode."""

import hashlib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit
from tests.report.world import filled

PAGES = sorted(f"pages/{path.name}" for path in (Path(__file__).resolve().parents[2] / "pages").glob("*.py"))
STARTERS = ("run", "audit_run", "upload-0")
"""Keys of widgets that start something."""


def _file_panel() -> None:
    from pamer_lab.report.config import ReplaySection
    from pamer_lab.ui.shared.share import share_file

    share_file(lambda: [ReplaySection(trace_id="t-hostile")])


def test_a_file_is_made_on_request_and_made_anew_for_another_choice(workspace: Workspace) -> None:
    filled(workspace.path, policies=["base"])
    app = AppTest.from_function(_file_panel, default_timeout=60).run()
    assert not app.get("download_button")
    app.button(key="share-make").click().run()
    assert len(app.get("download_button")) == 2 and not app.exception
    app.toggle(key="share-text").set_value(False).run()
    assert not app.get("download_button") and app.button(key="share-make")


def test_the_shown_link_says_what_the_address_says() -> None:
    def panel() -> None:
        from pamer_lab.ui.shared.share import share

        share()

    app = AppTest.from_function(panel, default_timeout=60)
    given = {"policies": ["base", "pamer+"], "policy": ["pamer+"], "find": ["50 % & more = ü"]}
    app.query_params.update(given)
    app.run().button(key="share").click().run()
    assert parse_qs(urlsplit(app.code[0].value).query) == given


def test_what_cannot_be_shared_is_said_in_a_sentence(workspace: Workspace) -> None:
    def panel() -> None:
        from pamer_lab.report.config import ReplaySection
        from pamer_lab.ui.shared.share import share_file
        from pamer_lab.ui.shared.widgets import sentences

        with sentences():
            share_file(lambda: [ReplaySection(trace_id="none")])

    app = AppTest.from_function(panel, default_timeout=60).run()
    app.button(key="share-make").click().run()
    assert "none" in app.error[0].value and not app.exception


@pytest.mark.parametrize("page", PAGES)
def test_in_reviewer_mode_every_page_reads_and_leaves_the_workspace_as_it_was(
    page: str, workspace: Workspace, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(workspace.path, policies=["base", "sliding-window:3"])
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    before = _content(workspace.path)
    app = visit(page)
    assert not app.exception
    assert any(":material/lock:" in caption.value for caption in app.caption)
    assert not [button for button in app.button if button.key in STARTERS]
    assert not any(str(workspace.path) in element.value for element in [*app.markdown, *app.caption])
    assert _content(workspace.path) == before


def test_in_reviewer_mode_an_empty_workspace_stays_empty(workspace: Workspace, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    app = visit()
    assert not app.exception and len(app.info) == 1 and not app.dataframe
    assert not workspace.path.exists()


def _content(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}
