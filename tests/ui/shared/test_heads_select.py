"""A stranger's profile on a page: shown, and confirmed once by a browser that came by the printed link."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import unconfirmed
from pamer_lab.ui.shared import heads_select
from tests.models.test_trust import HOST, SERVER, written


def page(path: str) -> None:
    from pamer_lab.models.profiles import load_profile
    from pamer_lab.ui.shared.heads_select import ask_to_confirm

    ask_to_confirm(load_profile(path))


def test_the_button_confirms_a_profile_once_and_the_page_shows_where_it_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, SERVER)
    monkeypatch.setattr(heads_select, "may_read_this_computer", lambda: True)
    app = AppTest.from_function(page, args=(str(path),)).run()
    assert HOST in app.warning[0].value and unconfirmed(load_profile(path))
    app.button(key="trust-profile").click().run()
    assert not app.exception and not app.warning and not app.button and unconfirmed(load_profile(path)) == []


def test_another_browser_gets_no_button(tmp_path: Path) -> None:
    path = written(tmp_path, SERVER)
    app = AppTest.from_function(page, args=(str(path),)).run()
    assert len(app.warning) == 1 and not app.button and unconfirmed(load_profile(path))
