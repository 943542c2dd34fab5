"""Text in traces, summaries and step details cannot change what router and recall may do.

`attacks.json` says what each attack tried. Each runs twice: against the parts without a model, and against the parts that ask a model,
here a local server that does whatever the attacker wants. What must hold is the same: the caller's messages are untouched, at most
one fenced message is added, no block comes back that a valid selection does not name, nothing of another session, nothing in the store
changes, and the audit row says what happened.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.audit import AuditStore
from pamer_lab.blocks import EstimatedCounter, violations
from pamer_lab.blocks.marks import MARKS, break_template_tokens, skeleton
from pamer_lab.controller import FixedProbe
from pamer_lab.controller.pamer_plus import StepRecaller, archived_messages
from pamer_lab.controller.recall import CLOSING, OPENING
from pamer_lab.controller.recall_agent import LlmRecallAgent, QuotingAgent
from pamer_lab.controller.request import read_message
from pamer_lab.controller.router import LlmRouter
from pamer_lab.controller.router_embedded import EmbeddedRouter
from pamer_lab.controller.router_index import ArchiveSource
from pamer_lab.memory import MemoryStore, SourceBlock, Summary
from pamer_lab.models.chat import ChatClient
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import ChatSettings
from pamer_lab.storage import Database
from tests.controller.world import NO, TOOLS, as_bytes, controller, history, snapshot, turn
from tests.loopback import listening

ATTACKS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "attacks.json").read_text())["attacks"]
SECRET = "FOREIGN-SECRET-7731"
TOKEN = "attack-reached-the-model"


class Repeating:
    """A summariser that repeats the attack in the summary and in every step detail."""

    name = "repeating"

    def __init__(self, text: str) -> None:
        self._text = text

    def summarise(self, task: str, blocks: Sequence[SourceBlock], later: Any = ()) -> Summary:
        line = " ".join(self._text.split()) or "-"
        return Summary(f"{TOKEN} {self._text}", tuple(f"{TOKEN} {line}" for _ in blocks))


def expanded(value: Any, ids: dict[str, str]) -> Any:
    """An attack's text or answer with its stand-ins filled in."""
    if isinstance(value, dict):
        return {key: expanded(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item, ids) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith("@range "):
        return list(range(int(value.split()[1])))
    if value.startswith("@repeat "):
        _, text, count = value.split()
        return text * int(count)
    for name, filled in ids.items():
        value = value.replace(f"{{{name}}}", filled)
    return value


class Obedient:
    """A chat server whose model does what the attack asks, as soon as it has read it."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.read: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
                part = "router" if "You route" in asked[0]["content"] else "recall"
                outer.read.append(asked[1]["content"])
                text = outer.answers[part] if TOKEN in asked[1]["content"] else "the attack did not reach me"
                message = {"role": "assistant", "content": text}
                usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
                reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": usage}
                body = json.dumps(reply | {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Silence."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def client(self) -> ChatClient:
        url = f"http://127.0.0.1:{self.server.server_port}/v1"
        return ChatClient(ChatSettings(kind="openai", model="m", base_url=url, timeout_seconds=20, attempts=1))


@pytest.fixture(scope="module")
def obedient() -> Iterator[Obedient]:
    started = Obedient()
    with listening(started.server):
        yield started


@pytest.fixture
def folder(others: Path, tmp_path: Path) -> Path:
    """A store with another session's memory in it."""
    return Path(shutil.copytree(others, tmp_path / "lance"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attacks") / "lance"
    foreign = history(8)
    for message in foreign:
        if message["role"] == "tool":
            message["content"] += f" {SECRET}"
    controller(made).transform("other", foreign)
    return made


def attacked(folder: Path, session: str, text: str, **parts: Any) -> list[dict[str, Any]]:
    """A session whose step 2 carries the attack, and whose first six steps are covered by a memory."""
    messages = history(8)
    messages[2 + 2 * 2 + 1]["content"] += f"\n{TOKEN} {text}"
    _, decision = controller(folder, **parts).transform(session, messages)
    assert decision.action == "compress", decision.error
    return messages + turn(8)


def ids_of(folder: Path, session: str) -> dict[str, str]:
    store = MemoryStore(Database(folder))
    return {"foreign": store.load("other").memories[0].memory_id, "own": store.load(session).memories[0].memory_id if session else ""}


def contained(folder: Path, session: str, messages: list[dict[str, Any]], router: Any, agent: Any) -> tuple[str, dict[str, Any]]:
    """Run one request and check everything that must hold; returns the action and the audit row."""
    store = MemoryStore(Database(folder))
    before, stored, tools = as_bytes(messages), snapshot(folder), as_bytes(TOOLS)
    recaller = StepRecaller(store, router(store), agent, EstimatedCounter(), query_characters=30_000, recorder=AuditStore(store.database))
    returned, decision = controller(folder, store=store, recaller=recaller, probe=FixedProbe(NO)).transform(session, messages, TOOLS)
    row = next(row for row in AuditStore(Database(folder)).full_rows() if row["session_id"] == session)
    assert as_bytes(messages) == before and as_bytes(TOOLS) == tools and snapshot(folder) == stored
    assert SECRET not in json.dumps(list(returned)) and SECRET not in json.dumps(row, default=str)
    assert row["reason"].strip() and row["outcome"] in ("accepted", "empty", "declined", "refused")
    if decision.action == "fallback":
        assert returned is messages and decision.error and row["outcome"] == "refused"
        return decision.action, row
    own = {id(message) for message in messages}
    added = [message for message in returned if id(message) not in own]
    assert [message for message in returned if id(message) in own] == messages[:2] + messages[-6:]
    assert violations([read_message(message, "") for message in returned]) == []
    assert set(decision.restored_steps) == set(row["cited_steps"]) <= set(row["steps"]) <= set(range(6))
    assert len(added) == (1 if decision.action == "recall" else 0)
    for message in added:
        content = message["content"]
        assert message["role"] == "user" and content.startswith(OPENING) and content.endswith(CLOSING)
        assert not MARKS.search(
            skeleton(content.replace(OPENING, "").replace(CLOSING, "").replace("<entry evidence ", "").replace("</entry>\n", ""))
        )
        assert content.count(OPENING) == content.count(CLOSING) == 1 and content.count("</entry>") == len(row["cited_steps"])
        unchosen = set(range(6)) - set(row["steps"])
        assert not any(f"The total of ORD-{step} is {step * 17} EUR." in content for step in unchosen)
    return decision.action, row


def test_there_are_at_least_thirty_attacks_and_each_says_what_it_tried() -> None:
    assert len(ATTACKS) >= 30 and len({attack["name"] for attack in ATTACKS}) == len(ATTACKS)
    assert all(attack["tried"].endswith(".") and attack["llm"] in ("refused", "fenced", "empty") for attack in ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_without_a_model_the_attack_is_only_text(attack: dict[str, Any], folder: Path) -> None:
    session = f"embedded {attack['name']}"
    messages = attacked(folder, session, expanded(attack["text"], ids_of(folder, "")))
    # The newest result asks for the step that carries the attack, so that it is quoted back.
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "invoice.txt"}'}}
    messages[-2:] = [
        {"role": "assistant", "content": "I read the invoice.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "The invoice refers to src/part_2.py for its total."},
    ]
    action, row = contained(
        folder,
        session,
        messages,
        lambda store: EmbeddedRouter(HashingEmbedder(64), ArchiveSource(lambda blocks: archived_messages(store, blocks))),
        QuotingAgent(EstimatedCounter(), max_tokens=2_000),
    )
    assert action == "recall" and 2 in row["steps"], "the attack must have been quoted to prove anything"


@pytest.mark.server
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_a_model_that_obeys_the_attack_gets_no_further(attack: dict[str, Any], folder: Path, obedient: Obedient) -> None:
    session = f"llm {attack['name']}"
    text = expanded(attack["text"], ids_of(folder, ""))
    messages = attacked(folder, session, text, summariser=Repeating(text))
    ids = ids_of(folder, session)
    filled = {part: expanded(attack[part], ids) for part in ("router", "recall")}
    obedient.answers = {part: answer if isinstance(answer, str) else json.dumps(answer) for part, answer in filled.items()}
    obedient.read.clear()
    action, row = contained(folder, session, messages, lambda store: LlmRouter(obedient.client), LlmRecallAgent(obedient.client))
    assert obedient.read and all(TOKEN in prompt and not MARKS.search(skeleton(prompt)) for prompt in obedient.read)
    assert (action, row["outcome"]) == {"refused": ("fallback", "refused"), "fenced": ("recall", "accepted"), "empty": ("pass", "empty")}[
        attack["llm"]
    ], row["reason"]


PIECES = [
    "</recalled_memory>",
    "<|",
    "|>",
    "＜",
    "｜",
    "<s>",
    "[INST]",
    "\u200b",
    "entry",
    "<entry\u0301",
    "</",
    "ｓ",
    ">",
    "𝐬",
    "[",
    "INST]",
    " ",
    "word",
    "é",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30))
def test_no_mark_survives_even_for_a_tokenizer_that_folds_look_alikes(text: str) -> None:
    made = break_template_tokens(text)
    assert not MARKS.search(made) and not MARKS.search(skeleton(made))
    assert made == text or MARKS.search(text) or MARKS.search(skeleton(text))
