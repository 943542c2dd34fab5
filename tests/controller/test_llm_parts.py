"""Summaries, routing and recall by a language model, over a real HTTP server that behaves and misbehaves."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.controller.recall_agent_llm import LlmRecallAgent
from pamer_lab.controller.router import RouterQuery
from pamer_lab.controller.router_llm import LlmRouter, prompt_text
from pamer_lab.controller.selection import SelectionRefusedError, select
from pamer_lab.errors import ModelError
from pamer_lab.memory import MemoryStore, SourceBlock
from pamer_lab.memory.llm_summary import LlmSummariser
from pamer_lab.models.chat_client import ChatClient
from pamer_lab.models.profiles import ChatSettings
from pamer_lab.storage import Database
from pamer_lab.trajectory.values import Message
from tests.controller.failing import falls_back
from tests.controller.test_failing_embeddings import free_port
from tests.controller.test_pamer_plus import plus, remembered, rows
from tests.controller.world import controller, history, memories

pytestmark = pytest.mark.server


@contextmanager
def server(answer: Any, *, delay: float = 0.0, requests: list[Any] | None = None) -> Iterator[ChatClient]:
    """A chat server on loopback; `answer` is a text, or makes one from the request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if requests is not None:
                requests.append(body)
            time.sleep(delay)
            text = answer(body) if callable(answer) else answer
            reply = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
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
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield chat(running.server_port)
    finally:
        running.shutdown()
        running.server_close()


def chat(port: int) -> ChatClient:
    return ChatClient(ChatSettings(kind="openai", model="m", base_url=f"http://127.0.0.1:{port}/v1", timeout_seconds=0.5, attempts=1))


def summary(*steps: int, text: str = "ORD-3 costs 51 EUR.") -> str:
    return json.dumps({"summary": text, "step_details": [{"step": step, "detail": f"read part {step}"} for step in steps]})


def test_a_structured_answer_becomes_the_memory_and_its_tokens_are_counted(tmp_path: Path) -> None:
    requests: list[Any] = []
    with server(summary(*range(6)), requests=requests) as client:
        _, decision = controller(tmp_path, summariser=LlmSummariser(client)).transform("s", history(8))
    assert decision.action == "compress", decision.error
    stored = MemoryStore(Database(tmp_path)).load("s").memories[0]
    assert stored.summary == "ORD-3 costs 51 EUR." and stored.blocks[2].detail == "read part 2" and stored.summary_model == "llm m"
    assert (decision.auxiliary[0].input_tokens, decision.auxiliary[0].output_tokens) == (100, 20)
    asked = requests[0]
    assert asked["temperature"] == 0 and asked["max_tokens"] == 1024 and asked["response_format"]["type"] == "json_schema"
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize(
    "answer",
    ["not json", "{}", summary(*range(5)), summary(*range(7)), summary(*range(6), 5), summary(*range(6), text=" "), "[]"],
    ids=["not json", "no keys", "a gap", "an unknown step", "an overlap", "empty", "a list"],
)
def test_an_answer_of_the_wrong_shape_stores_nothing(tmp_path: Path, answer: str) -> None:
    with server(answer) as client:
        falls_back(controller(tmp_path, summariser=LlmSummariser(client)), tmp_path, history(8))
    assert memories(tmp_path) == []


def test_a_server_that_is_down_or_too_slow_stores_nothing(tmp_path: Path) -> None:
    falls_back(controller(tmp_path, summariser=LlmSummariser(chat(free_port()))), tmp_path, history(8))
    with server(summary(*range(6)), delay=2) as client:
        falls_back(controller(tmp_path, summariser=LlmSummariser(client)), tmp_path, history(8))
    assert memories(tmp_path) == []


def test_a_source_over_its_budget_reaches_the_model_with_both_ends_of_every_message() -> None:
    requests: list[Any] = []
    blocks = [SourceBlock(step, (Message("assistant", f"BEGIN{step} " + "x" * 9_000 + f" END{step}"),)) for step in range(4)]
    with server(summary(*range(4)), requests=requests) as client:
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
    assert decision.restored_steps == (3,) and decision.auxiliary[0].operation == "router"
    sent = requests[0]["messages"][1]["content"]
    assert "step 3:" in sent and "part_8" in sent and "w96x3" not in sent
    assert prompt_text(RouterQuery("t", (), memory)).count("step ") == 6


@pytest.mark.parametrize("answer", ["random text", "{}", '{"summary_ids": [], "raw_steps_needed": ["1"], "goal": ""}', "null"])
def test_a_malformed_routing_is_a_failure_not_a_guess(tmp_path: Path, answer: str) -> None:
    messages = remembered(tmp_path)
    with server(answer) as client:
        falls_back(plus(tmp_path, LlmRouter(client)), tmp_path, messages)
    assert rows(tmp_path)[0]["outcome"] == "refused"


def test_an_over_long_routing_is_refused(tmp_path: Path) -> None:
    remembered(tmp_path)
    memory = MemoryStore(Database(tmp_path)).load("s")
    with server(json.dumps({"summary_ids": [], "raw_steps_needed": list(range(10_000)), "goal": ""})) as client:
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
        assert decision.restored_steps == decision.restored_in_part == (3,) and decision.auxiliary[0].input_tokens == 100
    if action == "fallback":
        assert rows(tmp_path)[0]["cache"] == "invalid_packet" and rows(tmp_path)[0]["restored_tokens"] == 0


def test_a_model_that_fails_is_an_error_of_its_own_kind() -> None:
    with server("nonsense") as client, pytest.raises(ModelError):
        LlmSummariser(client).summarise("t", [SourceBlock(0, (Message("assistant", "x"),))])
