"""The chat and embedding clients against a server that misbehaves."""

from typing import Any

import numpy as np
import pytest

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models import attempts
from pamer_lab.models.answers import schema_fault
from pamer_lab.models.chat import ChatAnswer, ChatClient, load_chat
from pamer_lab.models.embedder import EmbeddingClient
from pamer_lab.models.profiles import ChatSettings, EmbeddingSettings, load_profile
from pamer_lab.models.usage import NO_USAGE, UNKNOWN_USAGE, ChatUsage, usage_of
from tests.models.fault_server import CHAT, embedding_answer, serving

SCHEMA = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": {"type": "integer"}}},
    "required": ["steps"],
    "additionalProperties": False,
}
pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_DELAY_SECONDS", 0.01)


def ask(url: str, *, schema: Any = SCHEMA, tries: int = 3, timeout: float = 20.0) -> ChatAnswer:
    settings = ChatSettings(kind="openai", model="m", base_url=url, attempts=tries, timeout_seconds=timeout)
    return ChatClient(settings).complete([{"role": "user", "content": "which steps?"}], max_tokens=50, schema=schema)


def embed(url: str, texts: list[str], tries: int = 3) -> Any:
    settings = EmbeddingSettings(kind="openai", model="m", base_url=url, dimensions=4, attempts=tries)
    return EmbeddingClient(settings).embed(texts)


def chat_with(text: Any, **choice: Any) -> dict[str, Any]:
    return CHAT | {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} | choice]}


USED, NOT_USED, UNKNOWN = ChatUsage(7, 3, "recorded"), NO_USAGE, UNKNOWN_USAGE


@pytest.mark.parametrize(
    ("fault", "cost"),
    [
        (429, NOT_USED),
        (500, NOT_USED),
        ("cut", NOT_USED),
        ("this is not JSON", UNKNOWN),
        ({"choices": []}, UNKNOWN),
        (chat_with("{}") | {"usage": None}, UNKNOWN),
        (chat_with(None), USED),
        (chat_with("no JSON"), USED),
        (chat_with('{"steps": ["one"]}'), USED),
    ],
)
def test_a_fault_is_tried_again_and_both_attempts_are_paid_for(fault: Any, cost: ChatUsage) -> None:
    with serving(fault, CHAT) as server:
        answer = ask(server.url)
    assert answer.data() == {"steps": [1, 2]} and answer.usage == USED + cost
    assert len(server.requests) == 2
    with serving(fault) as server, pytest.raises(ModelError) as caught:
        ask(server.url, tries=2)
    assert usage_of(caught.value) == cost + cost


def test_a_server_that_was_given_up_on_may_have_worked_so_its_usage_is_unknown() -> None:
    with serving("slow") as server, pytest.raises(ModelError) as caught:
        ask(server.url, tries=1, timeout=0.2)
    assert usage_of(caught.value) == UNKNOWN


def test_an_answer_that_does_not_end_is_given_up_and_its_usage_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("dripping", CHAT) as server:
        answer = ask(server.url, tries=2, timeout=1.0)
    assert answer.data() == {"steps": [1, 2]} and answer.usage == USED + UNKNOWN
    monkeypatch.setattr(attempts, "MOST_BYTES", 1_000_000)
    with serving("endless") as server, pytest.raises(ModelError) as caught:
        ask(server.url, tries=1)
    assert usage_of(caught.value) == UNKNOWN


@pytest.mark.parametrize("fault", [429, 503, "cut", "this is not JSON", chat_with('{"steps": ["one"]}'), chat_with('{"other": 1}')])
def test_when_all_attempts_fail_one_sentence_says_so(fault: Any) -> None:
    with serving(fault) as server, pytest.raises(ModelError, match=r"\b2\b") as caught:
        ask(server.url, tries=2)
    assert len(server.requests) == 2
    assert "\n" not in str(caught.value)


def test_a_slow_server_runs_into_the_timeout() -> None:
    with serving("slow") as server, pytest.raises(ModelError):
        ask(server.url, tries=1, timeout=0.2)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refused_request_is_not_tried_again(status: int) -> None:
    with serving(status) as server, pytest.raises(ModelError, match=str(status)):
        ask(server.url)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "this_one"),
    [
        *((fault, True) for fault in (400, 413, 500, chat_with(" <think>hm</think> "))),
        *((fault, False) for fault in (401, 403, 404, 429, 503, "cut")),
    ],
)
def test_a_request_that_cannot_be_answered_is_told_from_a_server_that_cannot_answer(fault: Any, this_one: bool) -> None:
    with serving(fault) as server, pytest.raises(ModelError) as caught:
        ask(server.url, schema=None, tries=1)
    assert isinstance(caught.value, attempts.Unanswered) == this_one


def test_an_answer_cut_at_its_limit_is_refused_where_json_was_asked_for() -> None:
    cut_off = chat_with('{"steps": [1', finish_reason="length")
    with serving(chat_with("no JSON"), cut_off) as server, pytest.raises(attempts.DoesNotFit, match="50 tokens") as caught:
        ask(server.url)
    assert len(server.requests) == 2 and usage_of(caught.value) == USED + USED


def test_a_plain_answer_cut_at_its_limit_says_so() -> None:
    with serving(chat_with("the first half of", finish_reason="length")) as server:
        answer = ask(server.url, schema=None)
    assert answer.truncated and answer.text == "the first half of" and answer.usage == USED
    with serving(chat_with("all of it")) as server:
        assert not ask(server.url, schema=None).truncated


@pytest.mark.parametrize(
    ("fault", "too_long"),
    [
        (413, True),
        (400, False),
        ((400, '{"error": {"message": "This model\'s maximum context length is 4096 tokens."}}'), True),
        ((400, '{"error": {"message": "input is too long for requested model"}}'), True),
        ((401, '{"error": {"message": "maximum context length"}}'), False),
    ],
)
def test_a_prompt_over_the_window_is_told_from_other_refusals(fault: Any, too_long: bool) -> None:
    with serving(fault) as server, pytest.raises(ModelError) as caught:
        ask(server.url, tries=1)
    assert isinstance(caught.value, attempts.DoesNotFit) == too_long and usage_of(caught.value) == NOT_USED


def test_thinking_and_code_fences_are_taken_off_and_the_request_asks_for_neither() -> None:
    with serving(chat_with('<think>\n\n</think>\n\n```json\n{"steps": []}\n```')) as server:
        assert ask(server.url).text == '{"steps": []}'
    assert server.requests[0]["temperature"] == 0
    assert server.requests[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


WORDS = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}


ESCAPED = '{"said": "half \\ud83d and \\ud83d\\ude00"}'


@pytest.mark.parametrize(("text", "schema"), [("half \ud83d and \U0001f600", None), (ESCAPED, WORDS)], ids=["plain", "escaped"])
def test_half_a_surrogate_pair_in_an_answer_becomes_a_character_that_can_be_stored_and_sent(text: str, schema: Any) -> None:
    with serving(chat_with(text)) as server:
        answer = ask(server.url, schema=schema)
    said = answer.data()["said"] if schema else answer.text
    assert said == "half \ufffd and \U0001f600" and answer.raw.encode()


def test_embeddings_come_back_in_order_and_of_unit_length() -> None:
    with serving(500, embedding_answer(2, 4)) as server:
        rows = embed(server.url, ["a", "b"])
    assert rows.shape == (2, 4)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert server.requests[-1]["dimensions"] == 4


def test_a_wrong_dimension_is_an_error_at_once() -> None:
    with serving(embedding_answer(1, 3)) as server, pytest.raises(ModelError, match="3 dimensions"):
        embed(server.url, ["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [embedding_answer(1, 4), "nonsense", {"data": "x"}, {"data": [{"index": 0, "embedding": ["a"] * 4}] * 2}])
def test_a_wrong_shape_of_embeddings_is_never_taken_for_an_answer(fault: Any) -> None:
    with serving(fault) as server, pytest.raises(ModelError):
        embed(server.url, ["a", "b"], tries=2)


def test_the_schema_check_names_the_place() -> None:
    assert schema_fault({"steps": [1, True]}, SCHEMA).startswith("answer.steps[1] ")
    assert schema_fault({"steps": [], "more": 1}, SCHEMA).startswith("answer.more ")
    assert schema_fault({"steps": [3]}, SCHEMA) == ""


def test_the_embedded_profile_has_no_chat_and_a_server_needs_an_address() -> None:
    assert load_chat(load_profile("embedded")) is None
    with pytest.raises(InputError, match="base_url"):
        ChatClient(ChatSettings(kind="openai", model="m"))
