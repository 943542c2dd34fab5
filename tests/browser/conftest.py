"""One dashboard and one Chromium for all browser tests; each test checks that nothing left loopback."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.driver import CHROMIUM, Visitor, dashboard, launch

MISSING = "Chromium was not found; install it (apt-get install chromium) to run the browser tests"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the dashboard keeps its workspace."""
    return tmp_path_factory.mktemp("browser") / "workspace"


@pytest.fixture(scope="session")
def address(browser: Browser, folder: Path) -> Iterator[str]:
    """A dashboard with its own, at first empty workspace."""
    with dashboard(folder, folder.with_name("server.log")) as started:
        yield started


@pytest.fixture(scope="session")
def link(address: str, folder: Path) -> str:
    """What the dashboard printed at its start: its address with the token."""
    found = re.search(rf"{re.escape(address)}/\?token=\S+", folder.with_name("server.log").read_text())
    assert found
    return found[0]


@pytest.fixture(scope="session")
def reader(browser: Browser, address: str) -> Iterator[Visitor]:
    """The visitor most tests share, because a fresh one loads all scripts anew."""
    visitor = Visitor(browser, address)
    yield visitor
    visitor.close()


@pytest.fixture
def visitor(reader: Visitor) -> Iterator[Visitor]:
    """The shared visitor; whatever the test did, nothing may have left loopback."""
    reader.outside.clear()
    yield reader
    assert reader.outside == []


@pytest.fixture
def stranger(browser: Browser, address: str) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors that share nothing with the others."""
    made: list[Visitor] = []

    def arrive(*, dark: bool = False) -> Visitor:
        made.append(Visitor(browser, address, dark=dark))
        return made[-1]

    yield arrive
    for visitor in made:
        visitor.close()
        assert visitor.outside == []
