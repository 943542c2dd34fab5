"""The chat client against a real server, and the same weights without one, give the same greedy answer."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pamer_lab.models import embedded
from pamer_lab.models.attempts import DoesNotFit
from pamer_lab.models.chat import load_chat
from pamer_lab.models.chat_client import ChatClient
from pamer_lab.models.frozen import load_frozen
from pamer_lab.models.local_chat import LocalChat
from pamer_lab.models.profiles import ChatSettings, Profile
from pamer_lab.models.usage import usage_of

pytestmark = [pytest.mark.server, pytest.mark.weights]
ASK = [{"role": "user", "content": "Name the capital of France in one word."}]


@pytest.fixture(scope="module")
def served() -> Iterator[ChatSettings]:
    """`transformers serve` on loopback with SmolLM2."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = embedded.prepare()
    command = [
        str(Path(sys.executable).parent / "transformers"),
        "serve",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    server = subprocess.Popen(command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, "transformers serve ended early"
                time.sleep(0.5)
        yield ChatSettings(kind="openai", model=str(folder), base_url=f"http://127.0.0.1:{port}/v1", attempts=2)
    finally:
        server.terminate()
        server.wait(timeout=30)


def test_a_real_server_and_the_local_weights_answer_alike(served: ChatSettings) -> None:
    remote = ChatClient(served).complete(ASK, max_tokens=6)
    model = load_frozen("embedded", "cpu")
    local = load_chat(Profile(name="local", chat=ChatSettings(kind="local")), model)
    assert local is not None
    answer = local.complete(ASK, max_tokens=6)
    assert answer.text == remote.text
    assert answer.usage.input_tokens == remote.usage.input_tokens > 0
    assert (answer.usage.kind, remote.usage.kind) == ("measured", "recorded")
    with pytest.raises(DoesNotFit, match="8,192"):
        LocalChat(model).complete([{"role": "user", "content": "word " * 9000}], max_tokens=10)


def test_the_local_model_says_when_it_ran_into_its_limit() -> None:
    chat = LocalChat(load_frozen("embedded", "cpu"))
    short, long = chat.complete(ASK, max_tokens=1), chat.complete(ASK, max_tokens=100)
    assert short.truncated and short.usage.output_tokens == 1
    assert not long.truncated and long.usage.output_tokens < 100
    with pytest.raises(DoesNotFit) as caught:
        chat.complete(ASK, max_tokens=1, schema={"type": "object"})
    assert usage_of(caught.value) == short.usage
