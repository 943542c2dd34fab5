"""The chat client against a real server, and the same weights without one, give the same greedy answer."""

from collections.abc import Iterator

import pytest

from pamer_lab.models import embedded
from pamer_lab.models.attempts import DoesNotFit
from pamer_lab.models.chat import ChatClient, LocalChat, load_chat
from pamer_lab.models.frozen import load_frozen
from pamer_lab.models.profiles import ChatSettings, Profile
from pamer_lab.models.usage import usage_of
from tests.own_model import served as serving

pytestmark = [pytest.mark.server, pytest.mark.weights]
ASK = [{"role": "user", "content": "Name the capital of France in one word."}]


@pytest.fixture(scope="module")
def served() -> Iterator[ChatSettings]:
    """`transformers serve` on loopback with SmolLM2."""
    folder = embedded.prepare()
    with serving(folder) as url:
        yield ChatSettings(kind="openai", model=str(folder), base_url=url, attempts=2)


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
