"""A real model behind the proxy (`transformers serve` with SmolLM2, the OpenAI SDK), and a real agent (mini-swe-agent) before it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.models import embedded
from pamer_lab.workspace import Workspace
from tests.live.conftest import Bench
from tests.own_model import served

MINI = shutil.which("mini")
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with served(embedded.prepare()) as url:
        yield url


def chatted(url: str, stream: bool) -> list[tuple[str, int]]:
    """Three turns with the model, greedy; each answer, and the input tokens that the server reported."""
    named = {"x-session-id": f"stream-{stream}"}
    client = openai.OpenAI(base_url=url, api_key="sk-client-0123456789", max_retries=0, default_headers=named)
    history: list[Any] = [{"role": "user", "content": "Name the capital of France in one word."}]
    found: list[tuple[str, int]] = []
    for _ in range(3):
        asked: dict[str, Any] = {"model": str(embedded.prepare()), "messages": history, "max_tokens": 6, "temperature": 0.0}
        if stream:
            asked["stream_options"] = {"include_usage": True}
            chunks = list(client.chat.completions.create(**asked, stream=True))
            text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
            usage = next((chunk.usage for chunk in chunks if chunk.usage), None)
        else:
            answer = client.chat.completions.create(**asked)
            text, usage = answer.choices[0].message.content or "", answer.usage
        found.append((text, usage.prompt_tokens if usage else 0))
        history = [*history, {"role": "assistant", "content": text}, {"role": "user", "content": "And of Italy?"}]
    return found


@pytest.mark.server
@pytest.mark.weights
def test_a_real_model_answers_through_the_proxy_as_it_does_directly(started: Callable[..., Bench], model_server: str) -> None:
    bench = started(upstream=model_server.removesuffix("/v1"))
    straight = chatted(model_server, stream=False)
    for stream in (False, True):
        through = chatted(f"{bench.url}/v1", stream)
        assert [text for text, _ in through] == [text for text, _ in straight] and straight[0][0]
        bench.settle()
    records = {record.session: record for record in bench.records()}
    known, streamed = ([record.answers[asked.n] for asked in record.asked] for record in (records["stream-False"], records["stream-True"]))
    assert [answer.usage and answer.usage.input for answer in known] == [tokens for _, tokens in straight]
    assert [answer.message and answer.message.content for answer in streamed] == [text for text, _ in straight]


@pytest.mark.server
@pytest.mark.weights
def test_a_policy_edits_before_a_real_model(started: Callable[..., Bench], model_server: str) -> None:
    bench = started("sliding-window:1", gate=False, upstream=model_server.removesuffix("/v1"))
    assert len(chatted(f"{bench.url}/v1", stream=True)) == 3
    bench.settle()
    assert bench.summary["edits"] == 1 and bench.summary["fallbacks"] == bench.summary["errors"] == 0


@pytest.mark.skipif(MINI is None, reason="mini-swe-agent is not installed: pip install mini-swe-agent mcp, in an environment of its own")
def test_mini_swe_agent_works_to_its_end_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    turns = iter(range(100))

    def reply(request: dict[str, Any], digest: str) -> str:
        turn = next(turns)
        return f"THOUGHT: step {turn}\n\n```mswea_bash_command\n{f'seq {turn} 300' if turn < 5 else f'echo {DONE}'}\n```"

    fake = FakeUpstream(reply=reply)
    agent = [str(MINI), "-m", "openai/fake", "-t", "Count.", "-y", "--exit-immediately", "-l", "0", "-c", "mini_textbased.yaml"]
    agent += ["--model-class", "litellm_textbased"]
    variables = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = os.environ | variables | {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-client-0123456789"}
    with serving(fake) as url:
        options = ["--upstream", url, "--policy", "sliding-window:2", "--gate", "none", "--workspace", str(workspace.path), "--json"]
        command = [sys.executable, "-m", "pamer_lab.cli", "run", *options, "--", *agent]
        done = subprocess.run(command, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300)
    found = json.loads(done.stdout)
    (session,) = found["sessions"]
    assert (found["exit_code"], session["turns"], session["fallbacks"]) == (0, 6, 0) and session["edits"] > 0
    assert session["tokens"]["billed"]["output"] == fake.totals.output
