"""Spec 6's failure table, embeddings: a real server with real faults, and vectors of the wrong kind."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamer_lab.models.embedder import EmbeddingClient, HashingEmbedder
from pamer_lab.models.profiles import EmbeddingSettings
from tests.controller.failing import falls_back, with_memory
from tests.controller.world import controller, history
from tests.loopback import listening


@contextmanager
def server(behaviour: str) -> Iterator[str]:
    """An embedding server on loopback that misbehaves in one way."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            row = ", ".join(["0.5"] * 64)
            good = '{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[' + row + "]}]}"
            bodies = {
                "wrong shape": good.replace("0.5, ", "", 1),
                "not a number": good.replace("0.5", "NaN", 1),
                "no data": '{"object":"list","model":"m","data":[]}',
                "not json": "<html>gateway</html>",
            }
            if behaviour == "timeout":
                time.sleep(3)
            self.send_response(500 if behaviour == "error 500" else 200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(bodies.get(behaviour, good).encode())

        def log_message(self, *args: Any) -> None:
            pass

    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield f"{address}/v1"


def client(address: str) -> EmbeddingClient:
    return EmbeddingClient(EmbeddingSettings(kind="openai", model="m", dimensions=64, base_url=address, timeout_seconds=0.5, attempts=1))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


FAULTS = ["wrong shape", "not a number", "no data", "not json", "timeout", "error 500"]


@pytest.mark.server
@pytest.mark.parametrize("fault", FAULTS)
def test_an_embedding_server_that_misbehaves_stores_nothing_and_recalls_nothing(tmp_path: Path, fault: str) -> None:
    messages = with_memory(tmp_path)
    with server(fault) as address:
        falls_back(controller(tmp_path, embedder=client(address)), tmp_path, messages)
        falls_back(controller(tmp_path, embedder=client(address)), tmp_path, history(8), session="new")


@pytest.mark.server
def test_an_embedding_server_that_is_down_stores_nothing_and_recalls_nothing(tmp_path: Path) -> None:
    messages = with_memory(tmp_path)
    pamer = controller(tmp_path, embedder=client(f"http://127.0.0.1:{free_port()}/v1"))
    falls_back(pamer, tmp_path, messages)
    falls_back(pamer, tmp_path, history(8), session="new")


class BadEmbedder(HashingEmbedder):
    """A local embedder that answers nonsense."""

    def __init__(self, rows: Any) -> None:
        super().__init__(64)
        self.rows = rows

    def embed(self, texts: Any) -> Any:
        return self.rows


@pytest.mark.parametrize(
    "rows", [np.full((1, 64), np.nan), np.zeros((1, 64)), np.ones((1, 63)), np.ones((2, 64)), np.ones(64), None], ids=str
)
def test_a_vector_of_the_wrong_kind_stores_nothing_and_recalls_nothing(tmp_path: Path, rows: Any) -> None:
    messages = with_memory(tmp_path)
    pamer = controller(tmp_path, embedder=BadEmbedder(rows))
    for decision in (falls_back(pamer, tmp_path, messages), falls_back(pamer, tmp_path, history(8), session="new")):
        assert decision.error.startswith("ModelError: hashing-64 ")


def test_memories_of_another_embedder_are_never_compared(tmp_path: Path) -> None:
    messages = with_memory(tmp_path)
    decision = falls_back(controller(tmp_path, embedder=HashingEmbedder(32)), tmp_path, messages)
    assert "hashing-64" in decision.error
