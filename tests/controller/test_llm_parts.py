"""Summaries, routing and recall by a language model, over a real HTTP server that behaves and misbehaves."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.controller import RequestDecision
from pamer_lab.controller.recall_agent import LlmRecallAgent
from pamer_lab.controller.router import LlmRouter, RouterQuery, prompt_text
from pamer_lab.controller.selection import SelectionRefusedError, select
from pamer_lab.errors import ModelError
from pamer_lab.memory import LostRaceError, MemoryStore, SourceBlock
from pamer_lab.memory.llm_summary import LlmDetailWriter, LlmSummariser
from pamer_lab.models.chat import ChatClient
from pamer_lab.models.profiles import ChatSettings
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.storage import Database
from pamer_lab.trajectory.values import Message
from tests.controller.failing import falls_back
from tests.controller.test_failing_embeddings import free_port
from tests.controller.test_pamer_plus import plus, remembered, rows
from tests.controller.world import controller, history, memories, turn
from tests.loopback import listening

pytestmark = pytest.mark.server


@contextmanager
def server(answer: Any, *, timeout: float = 20.0, **given: Any) -> Iterator[ChatClient]:
    """A client of a chat server that is `served`."""
    with served(answer, **given) as port:
        yield chat(port, timeout)


@contextmanager
def served(answer: Any, *, delay: float = 0.0, requests: list[Any] | None = None) -> Iterator[int]:
    """The port of a chat server on loopback that cuts answers at `max_tokens`; `answer` is a text, or makes one from the request."""
    counter = embedded_counter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if requests is not None:
                requests.append(body)
            time.sleep(delay)
            text = answer(body) if callable(answer) else answer
            size, limit = counter.count([text])[0], body["max_tokens"]
            ended = "length" if size > limit else "stop"
            text = text[: len(text) * limit // size] if size > limit else text
            reply = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": ended, "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
            }
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(running):
        yield running.server_port


def chat(port: int, timeout: float = 20.0) -> ChatClient:
    return ChatClient(ChatSettings(kind="openai", model="m", base_url=f"http://127.0.0.1:{port}/v1", timeout_seconds=timeout, attempts=1))


SUMMARY = "ORD-3 costs 51 EUR."


def details(*steps: int, detail: str = "read part {}") -> str:
    return json.dumps({"step_details": [{"step": step, "detail": detail.format(step)} for step in steps]})


def summary_or_details(body: Any, *, detail: str = "read part {}") -> str:
    """What a good model answers: details where a schema asks for them, else the summary."""
    steps = [int(number) for number in re.findall(r"^## Step (\d+)$", body["messages"][1]["content"], re.MULTILINE)]
    return details(*steps, detail=detail) if "response_format" in body else SUMMARY


def costs(decision: RequestDecision) -> list[tuple[str, int, int, int]]:
    return [(entry.operation, entry.input_tokens, entry.output_tokens, entry.calls) for entry in decision.spent]


def test_the_plain_answer_becomes_the_summary_and_the_details_cost_no_call(tmp_path: Path) -> None:
    requests: list[Any] = []
    with server(SUMMARY, requests=requests) as client:
        _, decision = controller(tmp_path, summariser=LlmSummariser(client)).transform("s", history(8))
    assert decision.action == "compress", decision.error
    stored = MemoryStore(Database(tmp_path)).load("s").memories[0]
    assert stored.summary == SUMMARY and stored.summary_model == "llm m"
    assert "part_2.py" in stored.blocks[2].detail and len(stored.blocks) == 6
    assert costs(decision) == [("summary", 100, 20, 1)]
    (asked,) = requests
    assert asked["temperature"] == 0 and asked["max_tokens"] == 1024 and "response_format" not in asked
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}


def test_step_details_by_the_model_have_calls_and_a_budget_of_their_own(tmp_path: Path) -> None:
    requests: list[Any] = []
    with server(summary_or_details, requests=requests) as client:
        writer = LlmDetailWriter(client, steps_per_call=4, detail_tokens=50)
        _, decision = controller(tmp_path, summariser=LlmSummariser(client), details=writer).transform("s", history(8))
    stored = MemoryStore(Database(tmp_path)).load("s").memories[0]
    assert stored.summary == SUMMARY and [block.detail for block in stored.blocks] == [f"read part {step}" for step in range(6)]
    assert [body["max_tokens"] for body in requests] == [1024, 200, 100]
    assert costs(decision) == [("summary", 100, 20, 1), ("details", 200, 40, 2)]


@pytest.mark.parametrize("answer", [" ", "<think>hm</think>"])
def test_an_empty_summary_stores_nothing_and_is_paid_for(tmp_path: Path, answer: str) -> None:
    with server(answer) as client:
        decision = falls_back(controller(tmp_path, summariser=LlmSummariser(client)), tmp_path, history(8))
    assert memories(tmp_path) == [] and costs(decision) == [("summary", 100, 20, 1)]


@pytest.mark.parametrize(
    "answer",
    ["not json", "{}", details(*range(5)), details(*range(7)), details(*range(6), 5), details(*range(6), detail=" "), "[]"],
    ids=["not json", "no keys", "a gap", "an unknown step", "an overlap", "empty", "a list"],
)
def test_details_of_the_wrong_shape_store_nothing_and_every_call_is_paid_for(tmp_path: Path, answer: str) -> None:
    with server(lambda body: answer if "response_format" in body else SUMMARY) as client:
        pamer = controller(tmp_path, summariser=LlmSummariser(client), details=LlmDetailWriter(client))
        decision = falls_back(pamer, tmp_path, history(8))
    assert memories(tmp_path) == []
    # Six steps, then three, then the first one alone.
    assert costs(decision) == [("summary", 100, 20, 1), ("details", 300, 60, 3)]


def test_39_blocks_compress_at_once_where_summary_and_details_no_longer_share_an_answer(tmp_path: Path) -> None:
    """24 short details alone were over 1,024 tokens: one answer for both gave six fallbacks in six turns."""
    detail = (
        "Read src/part_{0}.py and found that the total of ORD-{0} is 17 EUR; decided to go on with the next part of the list, as planned."
    )
    many = json.loads(details(*range(24), detail=detail))["step_details"]
    assert embedded_counter().count([json.dumps(many)])[0] > 1_024
    messages, actions = history(39, words=40), []
    with server(lambda body: summary_or_details(body, detail=detail)) as client:
        pamer = controller(tmp_path, summariser=LlmSummariser(client), details=LlmDetailWriter(client))
        for number in range(39, 45):
            _, decision = pamer.transform("s", messages)
            actions.append(decision.action)
            messages = messages + turn(number, words=40)
    assert actions[0] == "compress" and "fallback" not in actions
    assert len(MemoryStore(Database(tmp_path)).load("s").memories[0].blocks) == 37


def wordy(body: Any) -> str:
    """A model that writes about 60 tokens for each step it sees, whatever it was asked for."""
    return "".join(
        f"{line} " + "and so it went on and on " * 9 for line in re.findall(r"^## Step \d+$", body["messages"][1]["content"], re.MULTILINE)
    )


def test_a_session_whose_compressions_fail_recovers_with_a_shorter_range(tmp_path: Path) -> None:
    messages, decisions, sizes = history(39), [], []
    with server(wordy) as client:
        pamer = controller(tmp_path, summariser=LlmSummariser(client, retries=1))
        for number in range(39, 45):
            sent, decision = pamer.transform("s", messages)
            decisions.append(decision)
            sizes.append(len(sent))
            messages = messages + turn(number)
    assert [decision.action for decision in decisions[:4]] == ["fallback", "fallback", "fallback", "compress"]
    assert "compress" in [decision.action for decision in decisions[4:]]
    assert all(costs(decision) == [("summary", 200, 40, 2)] for decision in decisions[:3])
    done, memory = decisions[3], MemoryStore(Database(tmp_path)).load("s").memories[0]
    assert memory.steps == tuple(range(10)), "a quarter of the 40 older blocks"
    assert done.block_states == ("summarised",) * 10 + ("active",) * 32
    assert sizes[3] == 2 + 2 * 32 and sum(item.tokens for item in done.items) == done.tokens_after
    assert done.candidate_tokens > memory.tokens and costs(done) == [("summary", 100, 20, 1)]


class LateStore(MemoryStore):
    """A store that another process wrote to first, once."""

    late = True

    def commit(self, *given: Any) -> Any:
        if self.late:
            self.late = False
            raise LostRaceError("another process was first")
        return super().commit(*given)


def test_a_summary_that_lost_a_race_is_paid_for_beside_the_next_and_is_no_failure(tmp_path: Path) -> None:
    with server(SUMMARY) as client:
        pamer = controller(tmp_path, summariser=LlmSummariser(client), store=LateStore(Database(tmp_path)))
        _, decision = pamer.transform("s", history(8))
    assert decision.action == "compress" and costs(decision) == [("summary", 100, 20, 1)] * 2


def test_a_summary_before_a_failed_embedding_is_paid_for(tmp_path: Path) -> None:
    class Broken:
        name, dimensions = "broken", 64

        def embed(self, texts: Any) -> Any:
            raise ModelError("no vector")

    with server(SUMMARY) as client:
        decision = falls_back(controller(tmp_path, summariser=LlmSummariser(client), embedder=Broken()), tmp_path, history(8))
    assert costs(decision) == [("summary", 100, 20, 1)]


def test_a_server_that_is_down_or_too_slow_stores_nothing(tmp_path: Path) -> None:
    falls_back(controller(tmp_path, summariser=LlmSummariser(chat(free_port()))), tmp_path, history(8))
    with server(SUMMARY, delay=2, timeout=0.5) as client:
        decision = falls_back(controller(tmp_path, summariser=LlmSummariser(client)), tmp_path, history(8))
    assert memories(tmp_path) == []
    assert costs(decision) == [("summary", 0, 0, 1)] and decision.spent[0].unknown == 1


def test_a_source_over_its_budget_reaches_the_model_with_both_ends_of_every_message() -> None:
    requests: list[Any] = []
    blocks = [SourceBlock(step, (Message("assistant", f"BEGIN{step} " + "x" * 9_000 + f" END{step}"),)) for step in range(4)]
    with server(SUMMARY, requests=requests) as client:
        LlmSummariser(client, source_characters=8_000).summarise("task", blocks)
    sent = requests[0]["messages"][1]["content"]
    assert len(sent) < 9_500 and all(f"BEGIN{step}" in sent and f"END{step}" in sent for step in range(4))


def test_the_router_sees_recent_blocks_and_index_only_and_its_answer_is_checked(tmp_path: Path) -> None:
    messages = remembered(tmp_path)
    memory = MemoryStore(Database(tmp_path)).load("s")
    good = json.dumps({"summary_ids": [memory.memories[0].memory_id], "raw_steps_needed": [3], "goal": "the total"})
    requests: list[Any] = []
    with server(good, requests=requests) as client:
        _, decision = plus(tmp_path, LlmRouter(client)).transform("s", messages)
    assert decision.restored_steps == (3,) and decision.spent[0].operation == "router"
    sent = requests[0]["messages"][1]["content"]
    assert "step 3:" in sent and "part_8" in sent and "w96x3" not in sent
    assert prompt_text(RouterQuery("t", (), memory)).count("step ") == 6


@pytest.mark.parametrize("answer", ["random text", "{}", '{"summary_ids": [], "raw_steps_needed": ["1"], "goal": ""}', "null"])
def test_a_malformed_routing_is_a_failure_not_a_guess(tmp_path: Path, answer: str) -> None:
    messages = remembered(tmp_path)
    with server(answer) as client:
        decision = falls_back(plus(tmp_path, LlmRouter(client)), tmp_path, messages)
    assert rows(tmp_path)[0]["outcome"] == "refused" and costs(decision) == [("router", 100, 20, 1)]


def test_a_refused_selection_is_paid_for(tmp_path: Path) -> None:
    messages = remembered(tmp_path)
    with server(json.dumps({"summary_ids": ["of another session"], "raw_steps_needed": [1], "goal": ""})) as client:
        decision = falls_back(plus(tmp_path, LlmRouter(client)), tmp_path, messages)
    assert costs(decision) == [("router", 100, 20, 1)]


@pytest.mark.parametrize("packet", ["no packet", json.dumps({"evidence": [{"step": 4, "text": "from elsewhere"}]})], ids=["bad", "refused"])
def test_a_packet_that_is_refused_is_paid_for_with_its_routing(tmp_path: Path, packet: str) -> None:
    messages = remembered(tmp_path)
    memory = MemoryStore(Database(tmp_path)).load("s").memories[0].memory_id
    routing = json.dumps({"summary_ids": [memory], "raw_steps_needed": [3], "goal": "the total"})
    with server(lambda body: routing if "raw_steps_needed" in json.dumps(body["response_format"]) else packet) as client:
        decision = falls_back(plus(tmp_path, LlmRouter(client), LlmRecallAgent(client)), tmp_path, messages)
    assert costs(decision) == [("router", 100, 20, 1), ("recall", 100, 20, 1)]


def test_an_over_long_routing_is_refused(tmp_path: Path) -> None:
    remembered(tmp_path)
    memory = MemoryStore(Database(tmp_path)).load("s")
    with server(json.dumps({"summary_ids": [], "raw_steps_needed": list(range(60)), "goal": ""})) as client:
        routing = LlmRouter(client).route(RouterQuery("t", (), memory))
    with pytest.raises(SelectionRefusedError, match="over-long"):
        select(memory, routing.answer)


@pytest.mark.parametrize(
    ("evidence", "action"),
    [
        ([{"step": 3, "text": "ORD-3 is 51 EUR"}], "recall"),
        ([], "pass"),
        ([{"step": 4, "text": "from elsewhere"}], "fallback"),
        ([{"step": 3, "text": "ORD-3 costs 51 EUR"}], "fallback"),
        ([{"step": 3, "text": "ORD-3 is 51 EUR"}, {"step": 3, "text": "and was paid"}], "fallback"),
    ],
    ids=["cites the chosen step", "declines", "cites another step", "rewords", "adds"],
)
def test_an_evidence_packet_may_cite_only_the_chosen_steps(tmp_path: Path, evidence: list[Any], action: str) -> None:
    from tests.controller.test_pamer_plus import ScriptedRouter, steps

    messages = remembered(tmp_path)
    with server(json.dumps({"evidence": evidence})) as client:
        _, decision = plus(tmp_path, ScriptedRouter(steps(3)), LlmRecallAgent(client)).transform("s", messages)
    assert decision.action == action
    if action == "recall":
        assert decision.restored_steps == decision.restored_in_part == (3,) and decision.spent[0].input_tokens == 100
    if action == "fallback":
        assert rows(tmp_path)[0]["cache"] == "invalid_packet" and rows(tmp_path)[0]["restored_tokens"] == 0


def test_a_model_that_fails_is_an_error_of_its_own_kind() -> None:
    with server("") as client, pytest.raises(ModelError):
        LlmSummariser(client).summarise("t", [SourceBlock(0, (Message("assistant", "x"),))])
