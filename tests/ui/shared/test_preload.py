"""The browser is told of the script for charts with the page itself."""

from pathlib import Path
from typing import Any

from pamer_lab.ui.shared.server_start import SCRIPTS, Preload, chart_link
from tests.event_loops import finished


def answered(link: bytes | None, kind: bytes) -> dict[bytes, bytes]:
    sent: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})

    async def send(message: Any) -> None:
        sent.append(message)

    finished(Preload(inner, link)({"type": "http"}, None, send))  # type: ignore[arg-type]
    return dict(sent[0]["headers"])


def test_a_page_names_a_script_that_the_installed_streamlit_has() -> None:
    address = answered(None, b"text/html; charset=utf-8")[b"link"].decode().partition(">")[0].removeprefix("<./static/js/")
    assert (SCRIPTS / address).is_file()


def test_other_answers_name_nothing() -> None:
    assert b"link" not in answered(b"<x>", b"application/javascript")


def test_a_streamlit_without_the_script_gets_no_header(tmp_path: Path) -> None:
    assert chart_link(tmp_path) == b""
    assert b"link" not in answered(b"", b"text/html")


def test_the_hash_in_the_name_is_looked_up(tmp_path: Path) -> None:
    for name in ("PlotlyChart.abc.js", "DataFrame.abc.js"):
        (tmp_path / name).touch()
    assert b"PlotlyChart.abc.js" in chart_link(tmp_path) and b"DataFrame" not in chart_link(tmp_path)
