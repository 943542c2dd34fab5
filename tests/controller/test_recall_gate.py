"""Gates before recall: a draft's probabilities or states, a question, and what happens when a gate fails."""

import json
import math
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamer_lab.controller import FixedProbe
from pamer_lab.controller.recall_gate import GATE_FAILED
from pamer_lab.errors import InputError, ModelError
from pamer_lab.factory import Factory, Parts
from pamer_lab.models.chat import ChatClient, LocalChat
from pamer_lab.models.draft import draft, drafted_states, next_action
from pamer_lab.models.frozen import load_frozen
from pamer_lab.models.profiles import ChatSettings, load_profile
from pamer_lab.models.usage import UNKNOWN_USAGE, ChatUsage, usage_of
from pamer_lab.policies.availability import why_not
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.probes.draft_probe import FIT, FOLDER, DraftProbe, layers_of
from pamer_lab.runs.values import Turn
from pamer_lab.studies.drafts import DRAFT_TOKENS
from pamer_lab.workspace import Workspace
from tests.loopback import listening
from tests.runs.making import PARTS, long_trace, turns_of

ALWAYS = Parts(embedder=PARTS.embedder, probe=FixedProbe())


class _Server(BaseHTTPRequestHandler):
    asked: list[dict[str, Any]]
    answer: dict[str, Any]
    broken = 0
    """Answers that break off, before those that do not."""

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(self.answer).encode()[: 9 if len(self.asked) <= self.broken else None]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[tuple[type[_Server], ChatClient]]:
    """An OpenAI-compatible server whose answer the test sets, and a client of it."""
    handler = type("Handler", (_Server,), {"asked": [], "answer": {}})
    with listening(HTTPServer(("127.0.0.1", 0), handler)) as address:
        yield handler, ChatClient(ChatSettings(kind="openai", model="drafting", base_url=f"{address}/v1", attempts=1))


def answered(text: str, chances: list[float] | None = None) -> dict[str, Any]:
    words = [f"{word} " for word in text.split()]
    entries = [
        {"token": word, "logprob": math.log(chance), "bytes": None, "top_logprobs": []}
        for word, chance in zip(words, chances or [], strict=bool(chances))
    ]
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    choice["logprobs"] = {"content": entries, "refusal": None} if chances else None
    usage = {"prompt_tokens": 50, "completion_tokens": len(words), "total_tokens": 50 + len(words)}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "drafting", "choices": [choice], "usage": usage}


def gated(kind: str, tmp_path: Path, chat: object, monkeypatch: pytest.MonkeyPatch) -> list[Turn]:
    monkeypatch.setattr(RunResources, "chat", property(lambda self: chat))
    return turns_of(long_trace(8), f"pamer:minimum=300:retained=1:recall={kind}", workspace=tmp_path, parts=ALWAYS)


def test_a_draft_whose_every_token_is_likely_recalls_nothing(
    server: tuple[type[_Server], ChatClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, chat = server
    handler.answer = answered("search the archive", [0.9, 0.8, 0.95])
    turns = gated("flare", tmp_path, chat, monkeypatch)
    assert [turn.action for turn in turns] == ["pass", "pass", "pass", "compress", "pass", "compress", "pass", "compress"]
    assert [[entry.operation for entry in turn.spent if entry.operation in ("gate", "embedding")] for turn in turns[4:7]] == [
        ["gate"],
        ["embedding"],
        ["gate"],
    ]
    assert turns[4].spent[0].input_tokens == 50 and turns[4].spent[0].calls == 1
    assert handler.asked[0]["logprobs"] is True and handler.asked[0]["max_tokens"] == 64


def test_an_uncertain_token_recalls_with_a_query_without_the_least_likely_words(
    server: tuple[type[_Server], ChatClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, chat = server
    handler.answer = answered("open document D0001 tomorrow", [0.9, 0.79, 0.5, 0.1])
    seen: list[str] = []
    embed = PARTS.embedder.embed  # type: ignore[union-attr]
    monkeypatch.setattr(PARTS.embedder, "embed", lambda texts: (seen.extend(texts), embed(texts))[1])
    turns = gated("flare", tmp_path, chat, monkeypatch)
    assert [turn.action for turn in turns][3:] == ["compress", "recall", "compress", "recall", "compress"]
    drafted = [text for text in seen if "D0001" in text and "open" in text]
    assert drafted and "tomorrow" not in drafted[0] and drafted[0].startswith("Who founded the museum?")


@pytest.mark.parametrize(("retrieve", "action"), [("true", "recall"), ("false", "pass")])
def test_the_asked_gate_does_what_the_model_says(
    retrieve: str, action: str, server: tuple[type[_Server], ChatClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, chat = server
    handler.answer = answered(f'{{"retrieve":{retrieve}}}')
    turns = gated("self-rag", tmp_path, chat, monkeypatch)
    assert [turns[4].action, turns[6].action] == [action, action]
    assert [entry.input_tokens for entry in turns[4].spent if entry.operation == "gate"] == [50]


@pytest.mark.parametrize("kind", ["flare", "self-rag"])
def test_a_gate_that_fails_lets_recall_go_on_and_its_call_is_counted(
    kind: str, server: tuple[type[_Server], ChatClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, chat = server
    handler.answer = answered("no json and no probabilities")
    turns = gated(kind, tmp_path, chat, monkeypatch)
    assert turns[4].action == "recall" and GATE_FAILED in turns[4].error
    assert [entry.input_tokens for entry in turns[4].spent if entry.operation == "gate"] == [50]


def test_a_draft_counts_the_attempts_that_failed_before_it(server: tuple[type[_Server], ChatClient]) -> None:
    handler, chat = server
    handler.answer, handler.broken = answered("search", [0.9]), 2
    with pytest.raises(ModelError) as failed:
        draft(chat, next_action("text"), 4)
    assert usage_of(failed.value) == UNKNOWN_USAGE
    patient = ChatClient(chat._settings.model_copy(update={"attempts": 2}))
    assert draft(patient, next_action("text"), 4).usage == ChatUsage(50, 1, "recorded", calls=2, unknown=1)


def test_the_gate_is_off_by_default_and_its_runs_are_their_own(tmp_path: Path) -> None:
    assert parse_policy("pamer").recall == "always" and parse_policy("pamer:recall=flare").name == "pamer:recall=flare"  # type: ignore[attr-defined]
    with pytest.raises(InputError):
        parse_policy("pamer:recall=sometimes")
    factory = Factory(load_profile("embedded"), Workspace(tmp_path), "cpu", parts=ALWAYS)
    assert "chat" in why_not(parse_policy("pamer:recall=self-rag"), factory) and not why_not(parse_policy("pamer"), factory)


def test_weights_in_this_process_say_how_likely_their_tokens_are() -> None:
    chat = LocalChat(load_frozen(load_profile("embedded"), "cpu"))
    found = draft(chat, [{"role": "user", "content": "Say: one two three"}], 6)
    assert 1 <= len(found.tokens) == len(found.probabilities) <= 6 and all(0 < chance <= 1 for chance in found.probabilities)
    assert found.usage.output_tokens == len(found.tokens) and "".join(found.tokens).strip()


def test_a_chat_without_probabilities_is_refused() -> None:
    class Plain:
        name = "plain"

    with pytest.raises(ModelError, match="plain"):
        draft(Plain(), [], 4)  # type: ignore[arg-type]


def gate_probe(bias: float, folder: Path, fingerprint: str = "") -> None:
    """A probe in a workspace that says the same about every draft of the embedded model."""
    model = load_frozen(load_profile("embedded"), "cpu")
    layers = layers_of(model.layers)
    weights = [[0.0] * model.width for _ in layers]
    found = DraftProbe(model.name, fingerprint or model.fingerprint, layers, weights, [bias] * len(layers), {})
    found.write(folder / FOLDER / f"{model.name}.json")


@pytest.mark.weights
@pytest.mark.parametrize(("bias", "action"), [(1.0, "recall"), (-1.0, "pass")])
def test_the_probe_on_a_draft_decides_and_its_tokens_are_local_work(bias: float, action: str, tmp_path: Path) -> None:
    gate_probe(bias, tmp_path)
    turns = turns_of(long_trace(6), "pamer:minimum=300:retained=1:recall=probing-rag", workspace=tmp_path, parts=ALWAYS)
    asked = [entry for entry in turns[4].spent if entry.operation == "gate"]
    assert turns[4].action == action and not turns[4].error
    assert any(entry.operation == "embedding" for entry in turns[4].spent) is (action == "recall"), "a closed gate searches nothing"
    assert len(asked) == 1 and asked[0].local and asked[0].input_tokens > 0 < asked[0].output_tokens <= DRAFT_TOKENS


@pytest.mark.weights
def test_the_packaged_probe_decides_by_its_margin(tmp_path: Path) -> None:
    turns = turns_of(long_trace(6), "pamer:minimum=300:retained=1:recall=probing-rag", workspace=tmp_path, parts=ALWAYS)
    asked = [turn for turn in turns if any(entry.operation == "gate" for entry in turn.spent)]
    assert asked and not any(turn.error for turn in turns)
    for turn in asked:
        margin = float(re.search(r"\(([+-][\d.]+)\)", turn.reason)[1])  # type: ignore[index]
        assert turn.action == ("recall" if margin > 0 else "pass")


@pytest.mark.weights
def test_a_probe_of_other_weights_is_refused(tmp_path: Path) -> None:
    gate_probe(1.0, tmp_path, "other")
    with pytest.raises(InputError, match="fit-probing-rag"):
        Factory(load_profile("embedded"), Workspace(tmp_path), "cpu").draft_gate()


@pytest.mark.weights
def test_states_of_a_draft_are_those_of_its_tokens() -> None:
    import torch

    model = load_frozen(load_profile("embedded"), "cpu")
    asked = next_action("Who founded the museum?\nsearch the archive")
    layers = layers_of(model.layers)
    states, usage = drafted_states(model, asked, 5, layers)
    ids, found = LocalChat(model).generate(asked, 5)
    with torch.inference_mode():
        complete = model.model(found.sequences, output_hidden_states=True).hidden_states
    wanted = np.stack([complete[layer + 1][0, len(ids) : -1].numpy().mean(0) for layer in layers])
    assert states.shape == wanted.shape == (len(layers), model.width) and usage.output_tokens == 5
    assert np.allclose(states, wanted, atol=1e-2, rtol=1e-3)


def test_a_model_without_a_probe_is_answered_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = Factory(load_profile("embedded"), Workspace(tmp_path), "cpu", parts=ALWAYS)
    assert not why_not(parse_policy("pamer:recall=probing-rag"), factory)
    monkeypatch.setattr(Factory, "model_name", property(lambda self: "another-model"))
    assert FIT in why_not(parse_policy("pamer:recall=probing-rag"), factory)
