"""Sessions as a page follows them: files read as they grow, states, and the controls of a running proxy."""

import os
from collections.abc import Callable

import msgspec
import pytest

from pamer_lab.errors import InputError
from pamer_lab.live.serve import announced, running_proxies
from pamer_lab.live.watching import BUSY, Watched, control, state_of
from pamer_lab.prices import find_prices
from tests.live.conftest import Agent, Bench

PRICES = find_prices("")


def test_a_session_that_grows_is_read_on(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2")
    watched, agent = Watched(bench.workspace), Agent(bench, x_session_id="rooms")
    agent.step()
    (line,), older = watched.sessions(PRICES)
    assert (line["turns"], older) == (1, 0)
    for _ in range(4):
        agent.step()
    session = watched.session(line["session"], PRICES)
    assert session is not None
    assert [row["t"] for row in session["requests"]] == [0, 1, 2, 3, 4]
    assert session["requests"][-1]["model_tokens"] < session["requests"][-1]["client_tokens"]
    assert watched.session("absent", PRICES) is None


def test_a_session_older_than_those_listed_is_listed_where_it_is_asked_for(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = started("base")
    for name in ("first", "second", "third"):
        Agent(bench, task=name, x_session_id=name).step()
    monkeypatch.setattr("pamer_lab.live.watching.SHOWN", 1)
    watched = Watched(bench.workspace)
    (newest,), older = watched.sessions(PRICES)
    assert older == 2
    asked = next(name for name in ("first", "second") if name != newest["session"])
    lines, older = watched.sessions(PRICES, asked)
    assert [line["session"] for line in lines] == [newest["session"], asked] and older == 1
    assert watched.sessions(PRICES, "absent") == ([newest], 2)


def test_a_session_is_active_idle_or_ended(started: Callable[..., Bench]) -> None:
    bench = started("base")
    Agent(bench).step()
    watched = Watched(bench.workspace)
    (line,), _ = watched.sessions(PRICES)
    assert state_of(line, watched.proxies(), line["last"]) == "ended"
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        proxies = running_proxies(bench.workspace)
        assert state_of(line, proxies, line["last"] + 1) == "active"
        assert state_of(line, proxies, line["last"] + BUSY + 1) == "idle"


@pytest.mark.parametrize("url", ["http://outside.example:80", "http://127.0.0.1.outside.example:80", "http://127.0.0.1:1@outside.example"])
def test_a_planted_announcement_makes_no_page_send_anything(url: str, started: Callable[..., Bench]) -> None:
    bench = started("base")
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])) as own:
        folder = bench.workspace.path / "live" / "proxies"
        (folder / "other.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(own, url=url)))
        (folder / "number.json").write_bytes(msgspec.json.encode(own).replace(str(own.pid).encode(), b"9" * 30, 1))
        (folder / "long.json").write_bytes(b" " * 20_000)
        os.mkfifo(folder / "pipe.json")
        assert running_proxies(bench.workspace) == [own]


def test_an_announcement_is_private_and_replaces_an_older_one_at_once(started: Callable[..., Bench]) -> None:
    bench = started("base")
    folder = bench.workspace.path / "live" / "proxies"
    folder.mkdir(mode=0o700)
    path = folder / f"{os.getpid()}-9.json"
    path.write_bytes(b"older")
    with path.open("rb") as reader, announced(bench.workspace, bench.live, 9) as own:
        assert reader.read() == b"older" and running_proxies(bench.workspace) == [own]
        assert [oct(place.stat().st_mode & 0o777) for place in (folder, *folder.iterdir())] == ["0o700", "0o600"]
    assert not path.exists()


def test_an_announcement_that_cannot_be_read_stays(started: Callable[..., Bench]) -> None:
    bench = started("base")
    with announced(bench.workspace, bench.live, 9) as own:
        (path,) = (bench.workspace.path / "live" / "proxies").iterdir()
        body = path.read_bytes()
        path.write_bytes(body[:20])
        assert running_proxies(bench.workspace) == [] and path.exists()
        path.write_bytes(body)
        assert running_proxies(bench.workspace) == [own]


def test_files_that_are_no_sessions_are_not_listed(started: Callable[..., Bench]) -> None:
    bench = started("base")
    Agent(bench, x_session_id="mine").step()
    folder = bench.workspace.path / "live"
    (folder / "not a session.log").write_bytes(b"x")
    (folder / "nowhere.log").symlink_to(folder / "gone")
    os.mkfifo(folder / "pipe.log")
    assert [line["session"] for line in Watched(bench.workspace).sessions(PRICES)[0]] == ["mine"]


def test_a_page_pauses_a_session_and_gives_it_another_policy(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    watched, agent = Watched(bench.workspace), Agent(bench)
    for _ in range(4):
        agent.step()
    (line,), _ = watched.sessions(PRICES)
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        proxies = watched.proxies()
        control(proxies, line, "pause")
        agent.step()
        assert watched.sessions(PRICES)[0][0]["paused"] and bench.got[-1].body == _last_body(bench)
        control(proxies, line, "resume")
        control(proxies, line, "policy", "base")
        assert watched.sessions(PRICES)[0][0]["policy"] == "base"
        with pytest.raises(InputError):
            control(proxies, line, "policy", "no-such-policy")
    with pytest.raises(InputError):
        control([], line, "pause")


def _last_body(bench: Bench) -> bytes:
    """What the client sent last; the proxy kept only its length, which a paused session sends unchanged."""
    body = bench.got[-1].body
    assert len(body) == bench.rows[-1]["client_bytes"] == bench.rows[-1]["sent_bytes"]
    return body
