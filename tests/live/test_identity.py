"""Requirements 1 and 10: with `base` the upstream gets the client's bytes, and the client gets the upstream's."""

import gzip
from collections.abc import Callable

import httpx2
import pyarrow as pa
import pytest
import uvicorn

from pamer_lab.live.fake_upstream import FakeUpstream
from pamer_lab.live.upstream import KEPT_OPEN
from tests.live.conftest import KEY, PATHS, Agent, Bench
from tests.loopback import LOCAL

ODD = {
    "chat": b'{ "model":"fake" ,\n\t"temperature": 1.0, "seed": 12345678901234567890123, "top_p":1e-0,'
    b'"messages" : [ {"role": "system","content":"a\\u00e9"} ,{"content":"\xc3\xa9\xe2\x9c\x93 \\ud83d\\ude00", "role":"user"}  ]}',
    "messages": b'{"max_tokens":10.0,"model": "fake","system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],\r\n'
    b'"messages":[{"role":"user","content":[ {"type":"text","text":"\xf0\x9f\xa6\x89"} ] }], "metadata":{"n":9007199254740993}}',
    "responses": b'{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"\xe2\x80\xa8"}]}],'
    b'"model":"fake","x":1.50}',
}


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_every_byte_of_request_and_answer_passes(started: Callable[..., Bench], api: str, stream: bool) -> None:
    bench = started(fake=FakeUpstream(lifetime=-1.0))  # with nothing cached, both answers have the same usage
    body = ODD[api] if not stream else ODD[api][:-1] + b', "stream": true}'
    through, straight = bench.post(api, body, x_fake="split"), bench.post(api, body, x_fake="split", straight=True)
    assert [entry.body for entry in bench.got] == [body, body]
    assert through.content == straight.content
    assert through.status_code == straight.status_code == 200
    assert through.headers["content-type"] == straight.headers["content-type"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_an_encoded_body_passes_as_it_is_and_is_recorded(started: Callable[..., Bench], encoding: str) -> None:
    bench = started()
    plain = ODD["responses"]
    body = gzip.compress(plain) if encoding == "gzip" else pa.Codec("zstd").compress(plain, asbytes=True)
    bench.post("responses", body, content_encoding=encoding)
    assert bench.got[0].body == body
    assert bench.record.history[-1].role == "user"


@pytest.mark.parametrize("path", ["/v1/models?limit=1000", "/v1/models/a%2Fb%20c?x=%7B", "/v1/files/1"])
def test_everything_else_passes_untouched(started: Callable[..., Bench], path: str) -> None:
    bench = started()
    answer = httpx2.get(bench.url + path, headers={**KEY, "anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}, **LOCAL)
    assert answer.status_code == 200
    (got,) = bench.got
    assert (got.method, got.target) == ("GET", path)
    assert dict(got.headers)["anthropic-beta"] == "a,b" and dict(got.headers)["authorization"] == KEY["authorization"]


def test_counting_tokens_is_passed_through_and_noted(started: Callable[..., Bench]) -> None:
    bench = started()
    answer = httpx2.post(f"{bench.url}/v1/messages/count_tokens", content=ODD["messages"], headers=KEY, **LOCAL)
    bench.settle()
    assert answer.json()["input_tokens"] > 0 and bench.got[0].body == ODD["messages"]
    assert [side.path for thread in bench.live.desk.threads.all() for side in thread.record.sides] == ["/v1/messages/count_tokens"]


@pytest.mark.parametrize(("api", "path"), [("messages", "/v1/messages/count_tokens"), ("responses", "/v1/responses/compact")])
def test_calls_beside_an_edited_session_pass_as_they_are(started: Callable[..., Bench], api: str, path: str) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench, api)
    for _ in range(4):
        agent.step()
    body = agent.body
    through, straight = (httpx2.post(url + path, content=body, headers=KEY, **LOCAL) for url in (bench.url, bench.direct))
    assert through.status_code == straight.status_code and [entry.body for entry in bench.got[-2:]] == [body, body]
    assert path.endswith("compact") or through.json() == straight.json()
    agent.step()
    assert len(bench.got[-1].body) < len(body) and len(bench.record.asked) == 5 and bench.summary["fallbacks"] == 0


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_an_edited_body_goes_on_without_its_encoding(started: Callable[..., Bench], encoding: str) -> None:
    bench = started("sliding-window:1", gate=False)
    agent = Agent(bench, "responses")
    for _ in range(4):
        agent.grow()
    plain = agent.body
    body = gzip.compress(plain) if encoding == "gzip" else pa.Codec("zstd").compress(plain, asbytes=True)
    assert bench.post("responses", body, content_encoding=encoding).status_code == 200
    (got,) = bench.got
    assert "content-encoding" not in dict(got.headers) and got.body.startswith(b'{"model":"fake"') and len(got.body) < len(plain)


def test_a_websocket_is_refused_cleanly(started: Callable[..., Bench]) -> None:
    bench = started()
    wanted = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    assert httpx2.get(f"{bench.url}/v1/responses", headers=wanted, **LOCAL).status_code == 426
    assert bench.got == []


def test_an_upstream_with_a_path_gets_it_once(started: Callable[..., Bench]) -> None:
    bench = started()
    bench.live.proxy.upstream.__dict__["_base"] = b"/v1"
    bench.post("chat", ODD["chat"])
    assert bench.got[0].target == "/v1/chat/completions"


def test_an_idle_connection_is_given_up_before_common_servers_close_it() -> None:
    assert uvicorn.Config("").timeout_keep_alive > KEPT_OPEN
