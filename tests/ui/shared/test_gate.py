"""Who reaches the dashboard: names that rebind, pages of other sites, other users of the machine, browsers without the token."""

import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import websockets

from pamer_lab.bench.server import STREAM, started
from pamer_lab.errors import InputError
from pamer_lab.ui.shared.gate import HEADERS, TOKEN, TOKEN_VARIABLE, Gate, cookie_name, link, token_mode
from tests.event_loops import finished

PROJECT = Path(__file__).resolve().parents[3]
HERE = "127.0.0.1:8501"
OWN = ("host", HERE)


class Inner:
    """What Streamlit would be asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOWALL")]})


def ask(
    *headers: tuple[str, str], kind: str = "http", query: str = "", path: str = "/", mode: str = "files"
) -> tuple[bool, dict[str, Any]]:
    """(whether Streamlit was asked, the first message of the answer)."""
    inner, sent = Inner(), []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": [(n.encode(), v.encode()) for n, v in headers]}
    finished(Gate(inner, mode)(scope, None, send))  # type: ignore[arg-type]
    return bool(inner.asked), sent[0]


def headers_of(message: dict[str, Any]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in message["headers"]}


@pytest.mark.parametrize(
    "host", ["some.name:8501", "some.name", "127.0.0.1.some.name", "localhost@some.name", "", "127.0.0.1:x", "some.name/127.0.0.1"]
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_name_that_is_not_this_computers_reaches_nothing(host: str, kind: str) -> None:
    asked, answer = ask(("host", host), ("origin", f"http://{host}"), kind=kind)
    assert not asked and (answer.get("status") == 403 or answer["type"] == "websocket.close")


@pytest.mark.parametrize("hosts", [[], [HERE, "some.name"]])
def test_no_host_and_two_hosts_are_refused(hosts: Sequence[str]) -> None:
    assert not ask(*(("host", host) for host in hosts))[0]


@pytest.mark.parametrize("host", ["localhost:8501", "LOCALHOST", "127.0.0.1:9000", "[::1]:8501", "localhost."])
def test_the_names_of_this_computer_are_answered_under_any_port(host: str) -> None:
    assert ask(("host", host))[0]
    assert ask(("host", host), ("origin", f"http://{host}"), kind="websocket")[0]


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:9999",
        "http://127.0.0.1:9999",
        "http://some.name",
        "null",
        "",
        "file://",
        "ftp://" + HERE,
        f"http://{HERE}/",
        f"http://a@{HERE}",
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_page_of_another_origin_reaches_nothing_not_even_from_another_port(origin: str, kind: str) -> None:
    assert not ask(OWN, ("origin", origin), kind=kind)[0]


def test_a_websocket_must_say_where_it_comes_from() -> None:
    assert not ask(OWN, kind="websocket")[0]
    assert ask(OWN, ("origin", f"http://{HERE}"), kind="websocket")[0]


@pytest.mark.parametrize(
    ("mode", "dest", "allowed"), [("navigate", "document", True), ("navigate", "iframe", False), ("no-cors", "image", False)]
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_can_link_to_a_page_but_not_frame_or_load_it(site: str, mode: str, dest: str, allowed: bool) -> None:
    assert ask(OWN, ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest))[0] is allowed
    assert ask(OWN, ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest))[0]


def test_every_answer_forbids_frames_of_other_sites() -> None:
    for message in (ask(OWN)[1], ask(("host", "some.name"))[1], ask(OWN, query=f"token={TOKEN}")[1]):
        assert headers_of(message).items() >= HEADERS.items()


def test_the_link_becomes_a_cookie_and_leaves_the_address() -> None:
    asked, answer = ask(OWN, path="/replay", query=f"trace=t-1&token={TOKEN}&turn=3")
    found = headers_of(answer)
    assert not asked and answer["status"] == 303 and found["location"] == "/replay?trace=t-1&turn=3"
    assert found["set-cookie"].startswith(f"{cookie_name()}={TOKEN};") and {"HttpOnly", "SameSite=Lax"} <= set(
        found["set-cookie"].split("; ")
    )
    assert link().endswith(f"/?token={TOKEN}")


@pytest.mark.parametrize("path", ["//some.name/", "/\\some.name", "///some.name"])
def test_the_link_leads_to_no_other_site(path: str) -> None:
    assert headers_of(ask(OWN, path=path, query=f"token={TOKEN}")[1])["location"] == "/some.name" + "/" * path.endswith("/")


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", "ü"], ids=["empty", "short", "cut", "longer", "not ascii"])
def test_another_token_gets_no_cookie(token: str) -> None:
    asked, answer = ask(OWN, query=f"token={token}")
    assert not asked and answer["status"] == 403 and "set-cookie" not in headers_of(answer)


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/host-config", "/media/x", "/static/x.js", "/_stcore/upload_file/a/b"])
def test_where_the_token_is_required_nothing_answers_without_it(path: str) -> None:
    for cookie in ("", f"{cookie_name()}=x", f"other={TOKEN}", TOKEN):
        assert ask(OWN, ("cookie", cookie), path=path, mode="required") == (False, ask(OWN, path=path, mode="required")[1])
    assert ask(OWN, path=path, mode="required")[1]["status"] == 401
    assert ask(OWN, ("cookie", f"a=b; {cookie_name()}={TOKEN}"), path=path, mode="required")[0]
    assert not ask(OWN, ("origin", f"http://{HERE}"), kind="websocket", mode="required")[0]
    assert ask(OWN, ("origin", f"http://{HERE}"), ("cookie", f"{cookie_name()}={TOKEN}"), kind="websocket", mode="required")[0]


def test_the_mode_comes_from_the_words_then_from_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert token_mode() == "files"
    monkeypatch.setenv(TOKEN_VARIABLE, "required")
    assert token_mode() == "required" and token_mode(["--token", "files"]) == "files"
    monkeypatch.setenv(TOKEN_VARIABLE, "nonsense")
    for words in ((), ("--token", "none"), ("--token",)):
        with pytest.raises(InputError):
            token_mode(words)


async def _connects(address: str, host: str, origin: str, cookie: str = "") -> bool:
    port = urlsplit(address).port
    more = {"Cookie": cookie} if cookie else {}
    try:
        async with websockets.connect(
            f"ws://{host}{STREAM}", host="127.0.0.1", port=port, origin=websockets.Origin(origin), proxy=None, additional_headers=more
        ):
            return True
    except websockets.exceptions.InvalidStatus:
        return False


@pytest.mark.server
def test_with_a_required_token_nothing_but_the_link_opens_the_dashboard(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pamer_lab.cli", "app", "--token", "required", "--port"]
    environment = os.environ | {"PAMER_LAB_HOME": str(tmp_path / "workspace"), "PYTHONPATH": str(PROJECT)}
    log = tmp_path / "log"
    with started(command, tmp_path, environment, log) as (address, _):
        for path in ("/", "/_stcore/health", "/_stcore/host-config"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(address + path, timeout=60)
            assert caught.value.code == 401
        found = re.search(r"http\S+\?token=(\S+)", log.read_text())
        assert found
        host = urlsplit(address).netloc
        cookie = f"pamer_lab_{urlsplit(address).port}={found[1]}"
        assert not finished(_connects(address, host, address))
        assert finished(_connects(address, host, address, cookie))
        assert not finished(_connects(address, "some.name", "http://some.name", cookie)), (
            "a stolen cookie does not help a page that rebinds"
        )
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(found[0], timeout=60) as answer:
            assert answer.status == 200 and "token" not in answer.url
