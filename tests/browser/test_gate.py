"""The token in a real browser: who can name a path of this computer."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pamer_lab.ui.traces.adding import WAYS
from tests.browser.driver import Visitor
from tests.loopback import listening

PATH_FIELD = '[data-testid="stTextInput"] input[placeholder^="/data"]'


def choose_path(visitor: Visitor) -> int:
    """How many fields for a path the home page shows."""
    visitor.page.get_by_role("radio", name=list(WAYS.values())[2]).or_(
        visitor.page.get_by_role("button", name=list(WAYS.values())[2])
    ).first.click()
    visitor.page.locator(f'{PATH_FIELD}, [data-testid="stAlert"]').first.wait_for()
    visitor.settle()
    return visitor.page.locator(PATH_FIELD).count()


@pytest.mark.browser
@pytest.mark.server
def test_only_a_browser_that_came_by_the_link_can_name_a_path(stranger: Callable[..., Visitor], link: str) -> None:
    guest, owner = stranger(), stranger()
    guest.open("/")
    assert choose_path(guest) == 0
    owner.page.goto(link)
    owner.settle()
    assert "token" not in owner.page.url
    assert choose_path(owner) == 1
    owner.open("/")
    assert choose_path(owner) == 1, "the cookie outlives a reload"


class _Page(BaseHTTPRequestHandler):
    """A page of another origin on the same computer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>elsewhere</h1>")

    def log_message(self, *_: object) -> None:
        """Nothing."""


CONNECT = """address => new Promise(done => {
  const socket = new WebSocket(address.replace("http", "ws") + "/_stcore/stream", ["streamlit"]);
  socket.onopen = () => done("open");
  socket.onerror = () => done("refused");
})"""
FRAME = """address => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.src = address;
  frame.onload = () => done("loaded");
  document.body.append(frame);
})"""


@pytest.mark.browser
@pytest.mark.server
def test_a_page_of_another_port_reaches_nothing_even_in_the_owners_browser(
    stranger: Callable[..., Visitor], link: str, address: str
) -> None:
    owner = stranger()
    owner.page.goto(link)
    owner.settle()
    assert owner.page.evaluate(CONNECT, address) == "open"
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), _Page)) as elsewhere:
        owner.page.goto(f"{elsewhere}/")
        assert owner.page.evaluate(CONNECT, address) == "refused"
        assert (
            owner.page.evaluate("address => fetch(address + '/_stcore/health', {credentials: 'include'}).then(() => 1, () => 0)", address)
            == 0
        )
        assert owner.page.evaluate(FRAME, address) == "loaded", "Chromium shows its own error page in the frame"
        inside = [frame for frame in owner.page.frames if frame.parent_frame]
        assert inside and all(frame.locator("[data-testid=stApp]").count() == 0 for frame in inside)
