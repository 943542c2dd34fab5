"""Requests that are made to hurt: giants, bombs, nesting, a client's own key where nobody looks for it."""

import base64
import gzip
import resource
import socket
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx2
import orjson
import pytest

from pamer_lab.live import desk, proxy
from pamer_lab.live.credentials import REDACTED, secrets_of
from pamer_lab.live.publish import publish
from pamer_lab.live.usage import MOST_BYTES, MOST_ENCODINGS, Answer, decoded
from pamer_lab.trajectory.values import Message, ToolCall
from tests.live.conftest import KEY, PARTS, PATHS, Agent, Bench, chat
from tests.loopback import LOCAL

SECRET = "sk-planted-5f2e9c7ab1"


def test_a_body_beyond_the_limit_is_refused_and_never_goes_upstream(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MOST_BODY", 1_000)
    bench = started()
    assert bench.post("chat", b" " * 2_000).status_code == 413 and bench.got == []
    assert bench.post("chat", chat({"role": "user", "content": "x"})).status_code == 200


def test_bodies_that_are_too_much_together_are_refused_until_others_are_answered(
    started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = started()
    monkeypatch.setattr(proxy, "MOST_BODIES", 100)
    assert bench.post("chat", b" " * 200).status_code == 503 and bench.got == []
    monkeypatch.setattr(proxy, "MOST_BODIES", 1_000)
    for _ in range(4):
        bench.post("chat", chat({"role": "user", "content": "x" * 200}))
    assert len(bench.got) == 4, "what is answered counts no longer"


def sent_raw(bench: Bench, request: str) -> str:
    """The first line of the answer to a request that no client library would send."""
    place = urlsplit(bench.url)
    with socket.create_connection((place.hostname or "", place.port or 0), 30) as connection:
        connection.sendall(request.replace("HOST", place.netloc).encode())
        return connection.recv(65_536).split(b"\r\n", 1)[0].decode()


@pytest.mark.parametrize("length", ["0", "5", "5000"])
def test_a_length_beside_chunks_never_goes_upstream(started: Callable[..., Bench], length: str) -> None:
    bench = started()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: HOST\r\nContent-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n"
    inner = "GET /v1/inner HTTP/1.1\r\nHost: x\r\n\r\n"
    sent_raw(bench, f"{head}{len(inner):x}\r\n{inner}\r\n0\r\n\r\n")
    (entry,) = bench.got
    assert entry.body == inner.encode() and "content-length" not in entry.headers


@pytest.mark.parametrize("target", ["GET http://other.example/v1/models", "CONNECT other.example:443", "OPTIONS *"])
def test_only_paths_are_passed_on(started: Callable[..., Bench], target: str) -> None:
    bench = started()
    assert " 400 " in sent_raw(bench, f"{target} HTTP/1.1\r\nHost: HOST\r\n\r\n") and bench.got == []


def test_each_cookie_of_a_client_is_a_credential() -> None:
    assert {"first-secret", "second-secret"} <= set(secrets_of({"cookie": "a=first-secret; b=second-secret"}))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["lists", "objects"])
def test_deep_nesting_passes_as_it_is(started: Callable[..., Bench], opening: bytes) -> None:
    bench = started("sliding-window:2")
    body = b'{"messages":' + opening * 200_000
    bench.post("chat", body)
    assert [entry.body for entry in bench.got] == [body]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_bomb_is_passed_on_and_read_no_further_than_the_limit(started: Callable[..., Bench], encoding: str) -> None:
    bench = started("sliding-window:2")
    plain = b" " * (4 * MOST_BYTES)
    body = gzip.compress(plain, 1) if encoding == "gzip" else zlib.compress(plain, 1) if encoding == "deflate" else _zstd(plain)
    assert len(decoded(body, encoding)) <= MOST_BYTES
    del plain
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bench.post("chat", body, content_encoding=encoding)
    assert [entry.body for entry in bench.got] == [body]
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 4 * MOST_BYTES


def _zstd(plain: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(plain, asbytes=True)


def test_encodings_one_in_the_other_are_not_unpacked_without_end(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2")
    body = orjson.dumps(chat({"role": "user", "content": "x"}))
    for _ in range(MOST_ENCODINGS + 1):
        body = gzip.compress(body)
    bench.post("chat", body, content_encoding=", ".join(["gzip"] * (MOST_ENCODINGS + 1)))
    assert [entry.body for entry in bench.got] == [body]


@pytest.mark.parametrize(
    "headers",
    [{"host": "127.0.0.1.evil.example"}, {"host": "evil.example:80"}, {"origin": "null"}, {"origin": "http://127.0.0.1:1"}, {"host": ""}],
    ids=repr,
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/_pamer/sessions/x/pause", "/v1/embeddings"])
def test_no_page_of_another_site_gets_anything_sent(started: Callable[..., Bench], headers: dict[str, str], path: str) -> None:
    bench = started()
    sent = KEY | {"x-pamer-token": bench.live.token, "content-type": "text/plain"} | headers
    assert httpx2.post(bench.url + path, content=b"{}", headers=sent, **LOCAL).status_code in (400, 403)
    assert bench.got == []


@pytest.mark.parametrize("api", PATHS)
def test_a_clients_key_is_not_recorded_behind_escapes_in_calls_or_in_tools(started: Callable[..., Bench], api: str) -> None:
    bench = started()
    escaped = SECRET.replace("-", "\\u002d")
    arguments = orjson.dumps({"text": orjson.dumps({"key": "KEY"}).decode()}).decode().replace("KEY", escaped)
    tool = {"name": "t", "description": f"use {SECRET}", "parameters": {"type": "object", "description": f"or {SECRET}"}}
    body = {
        "chat": {"tools": [{"type": "function", "function": tool}], "messages": [{"role": "user", "content": "KEY"}, _called(arguments)]},
        "messages": {
            "tools": [{"name": "t", "description": f"use {SECRET}", "input_schema": {"type": "object", "description": SECRET}}],
            "messages": [{"role": "user", "content": "KEY"}],
            "max_tokens": 9,
        },
        "responses": {"tools": [{"type": "function", **tool}], "input": [{"role": "user", "content": "KEY"}]},
    }[api] | {"model": "fake"}
    sent = orjson.dumps(body).replace(b'"KEY"', b'"' + escaped.encode() + b'"')
    given = {"x-litellm-api-key": SECRET, "proxy-authorization": f"Basic {SECRET}", "authorization": f"bearer {SECRET}"}
    bench.post(api, sent, **{name.replace("-", "_"): value for name, value in given.items()})
    publish(bench.workspace, bench.record, PARTS.tokens)
    assert bench.record.asked, "it was recorded"
    for path in (path for path in Path(bench.workspace.path).rglob("*") if path.is_file()):
        written = path.read_bytes()
        assert SECRET.encode() not in written and SECRET.rpartition("-")[2].encode() not in written, path


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("name", ["key", "api_key", "api-key", "access_token", "subscription-key", "sig"])
def test_a_clients_key_in_its_address_is_not_recorded_and_tells_sessions_apart(started: Callable[..., Bench], api: str, name: str) -> None:
    bench, keys = started(), ("planted+one/0123456789", "planted+two/0123456789")
    for key in keys:
        said = [{"role": "user", "content": f"call it with {key}, that is {quote(key, safe='')}"}]
        body = {"model": "fake", "max_tokens": 9, "input" if api == "responses" else "messages": said}
        answer = httpx2.post(bench.url + PATHS[api], params={name: key}, json=body, timeout=60, **LOCAL)
        assert answer.status_code == 200 and key.encode() in bench.got[-1].body
    bench.settle()
    assert len(bench.records()) == len(keys)
    for record in bench.records():
        publish(bench.workspace, record, PARTS.tokens)
    written = b"".join(path.read_bytes() for path in Path(bench.workspace.path).rglob("*") if path.is_file())
    assert REDACTED.encode() in written and not any(word in written for word in (b"planted+", b"planted%2B"))


def test_a_clients_key_is_not_recorded_wherever_a_request_has_it(started: Callable[..., Bench]) -> None:
    bench = started()
    given = {"authorization": f"Bearer {SECRET}"}
    said = {"role": "user", "content": "x"}
    call = {"id": SECRET, "type": "function", "function": {"name": SECRET, "arguments": "{}"}}
    bodies = [
        {"model": SECRET, "user": SECRET, "prompt_cache_key": SECRET, "metadata": {"k": SECRET}, "messages": [said | {"name": SECRET}]},
        {"messages": [said, {"role": "assistant", "content": "", "tool_calls": [call]}]},
        {"messages": [said | {"role": SECRET}]},
    ]
    for body in bodies:
        bench.post("chat", body, **given)
        bench.post("messages", body, **given)
    for more in ({"content_encoding": SECRET}, {"x_session_id": SECRET}, {"user_agent": SECRET}):
        bench.post("chat", chat(said), **given, **more)
    httpx2.get(f"{bench.url}/v1/files/{SECRET}", headers=given, **LOCAL)
    bench.settle()
    for record in bench.records():
        publish(bench.workspace, record, PARTS.tokens)
    files = list(Path(bench.workspace.path).rglob("*"))
    assert not any(SECRET in path.name or (path.is_file() and SECRET.encode() in path.read_bytes()) for path in files)


@pytest.mark.parametrize(
    "encode", [lambda key: base64.b64encode(f"me:{key}".encode()).decode(), lambda key: key.encode().hex()], ids=["base64", "hex"]
)
def test_a_clients_key_is_not_recorded_in_another_spelling(started: Callable[..., Bench], encode: Callable[[str], str]) -> None:
    bench, spelled = started(), encode(SECRET)
    bench.post(
        "chat", chat({"role": "user", "content": f"I sent {spelled}"}), authorization=f"Bearer {SECRET}", x_session_id=spelled.rstrip("=")
    )
    publish(bench.workspace, bench.record, PARTS.tokens)
    assert spelled.encode() in bench.got[-1].body
    files = [path for path in Path(bench.workspace.path).rglob("*") if path.is_file()]
    assert REDACTED.encode() in b"".join(path.read_bytes() for path in files)
    assert not any(spelled[6:20] in path.name or spelled[6:20].encode() in path.read_bytes() for path in files)


def test_a_clients_key_that_the_server_sends_back_is_not_recorded(started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    call = ToolCall(SECRET, SECRET, f'{{"k": "{SECRET}"}}')
    answer = Answer(Message("assistant", SECRET, (call,)), response_id=f"resp-{SECRET}")
    monkeypatch.setattr(desk, "read_answer", lambda *_: answer)
    bench = started()
    bench.post("chat", chat({"role": "user", "content": "hello"}), authorization=f"Bearer {SECRET}")
    bench.settle()
    publish(bench.workspace, bench.record, PARTS.tokens)
    files = [path for path in Path(bench.workspace.path).rglob("*") if path.is_file()]
    assert bench.record.answers and not any(SECRET.encode() in path.read_bytes() for path in files)


def test_half_characters_do_not_part_a_session(started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False)
    agent = Agent(bench)
    sent = []
    for _ in range(5):
        sent.append(agent.body.replace(b"exhibit 0 ", rb"exhibit \ud83d \\ud83d \ud83d\ude00 ", 1))
        bench.post("chat", sent[-1])
        agent.grow()
    assert "\ufffd \\ud83d \U0001f600 " in bench.record.history[3].content
    assert [entry.body for entry in bench.got[:2]] == sent[:2]


def _called(arguments: str) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": arguments}}],
    }
