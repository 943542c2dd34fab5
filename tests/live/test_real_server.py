"""A real model behind the proxy: `transformers serve` with SmolLM2, asked by the OpenAI and Anthropic SDKs and by mini-swe-agent.

That server has chat completions and responses; Anthropic's Messages API is put in front of it by `messages_adapter`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from pamer_lab.live.fake_upstream import serving
from pamer_lab.models import embedded
from pamer_lab.workspace import Workspace
from tests.live import agents
from tests.live.conftest import Bench
from tests.live.messages_adapter import MessagesAdapter
from tests.own_model import served

pytestmark = [pytest.mark.server, pytest.mark.weights]
Turn = tuple[str, int]
"""What the model said, and the input tokens that the server reported."""
Client = Callable[[str, list[Any], bool, dict[str, str]], Turn]
STEPS = 6
SHORT = r"""
agent: {system_template: "You use a shell. Reply with one word: ls, pwd or date.", instance_template: "{{task}}", mode: yolo}
model:
  observation_template: "The shell printed:\n{{output.output}}\nReply with one word: ls, pwd or date."
  action_regex: '\A(?:.*?\b(ls|pwd|date)\b|)'
  model_kwargs: {max_tokens: 8, temperature: 0.0}
"""
"""Short enough for a small model, whose harmless commands are run; without one, nothing is run."""


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with served(embedded.prepare()) as url:
        yield url.removesuffix("/v1")


@pytest.fixture(scope="module")
def messages_server(model_server: str) -> Iterator[str]:
    with serving(MessagesAdapter(f"{model_server}/v1")) as url:
        yield url


def chat(url: str, history: list[Any], stream: bool, headers: dict[str, str]) -> Turn:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client-0123456789", max_retries=0, default_headers=headers)
    asked: dict[str, Any] = {"model": str(embedded.prepare()), "messages": history, "max_tokens": 6, "temperature": 0.0}
    if not stream:
        answer = client.chat.completions.create(**asked)
        return answer.choices[0].message.content or "", answer.usage.prompt_tokens if answer.usage else 0
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    usage = next((chunk.usage for chunk in chunks if chunk.usage), None)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), usage.prompt_tokens if usage else 0


def messages(url: str, history: list[Any], stream: bool, headers: dict[str, str]) -> Turn:
    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-client-0123456789", max_retries=0, default_headers=headers)
    asked: dict[str, Any] = {"model": str(embedded.prepare()), "messages": history, "max_tokens": 6}
    if not stream:
        answer = client.messages.create(**asked)
    else:
        with client.messages.stream(**asked) as events:
            answer = events.get_final_message()
    return "".join(part.text for part in answer.content if part.type == "text"), answer.usage.input_tokens


def responses(url: str, history: list[Any], stream: bool, headers: dict[str, str]) -> Turn:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client-0123456789", max_retries=0, default_headers=headers)
    asked: dict[str, Any] = {"model": str(embedded.prepare()), "input": history, "max_output_tokens": 6, "temperature": 0.0}
    if not stream:
        answer = client.responses.create(**asked, stream=False)  # this server streams where nothing is said
        return answer.output_text, answer.usage.input_tokens if answer.usage else 0
    events = list(client.responses.create(**asked, stream=True))
    done = next(event.response for event in events if event.type == "response.completed")
    return "".join(
        event.delta for event in events if event.type == "response.output_text.delta"
    ), done.usage.input_tokens if done.usage else 0


def talked(client: Client, url: str, stream: bool) -> list[Turn]:
    """Three turns with the model, greedy."""
    history: list[Any] = [{"role": "user", "content": "Name the capital of France in one word."}]
    found: list[Turn] = []
    for _ in range(3):
        found.append(client(url, history, stream, {"x-session-id": f"stream-{stream}"}))
        history = [*history, {"role": "assistant", "content": found[-1][0]}, {"role": "user", "content": "And of Italy?"}]
    return found


@pytest.mark.parametrize("client", [chat, messages, responses])
def test_a_real_model_answers_through_the_proxy_as_it_does_directly(
    started: Callable[..., Bench], model_server: str, messages_server: str, client: Client
) -> None:
    upstream = messages_server if client is messages else model_server
    bench = started(upstream=upstream)
    straight = talked(client, upstream, stream=False)
    assert straight[0][0] and straight[0][1]
    for stream in (False, True):
        through = talked(client, bench.url, stream)
        assert [text for text, _ in through] == [text for text, _ in straight]
        bench.settle()
        record = next(record for record in bench.records() if record.session == f"stream-{stream}")
        answers = [record.answers[asked.n] for asked in record.asked]
        assert [answer.message and answer.message.content for answer in answers] == [text for text, _ in straight]
        assert [answer.usage.input if answer.usage else 0 for answer in answers] == [tokens for _, tokens in through]


@pytest.mark.parametrize("client", [chat, messages, responses])
def test_a_policy_edits_before_a_real_model(started: Callable[..., Bench], model_server: str, messages_server: str, client: Client) -> None:
    bench = started("sliding-window:1", gate=False, upstream=messages_server if client is messages else model_server)
    assert all(text for text, _ in talked(client, bench.url, stream=True))
    bench.settle()
    assert bench.summary["edits"] == 1 and bench.summary["fallbacks"] == bench.summary["errors"] == 0


def test_mini_swe_agent_takes_steps_with_a_real_model_behind_an_editing_policy(
    workspace: Workspace, tmp_path: Path, model_server: str
) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    limits = ["--agent-class", "default", "-c", "short.yaml", "-c", f"agent.step_limit={STEPS}"]
    agent = agents.counting("-m", f"openai/{embedded.prepare()}", *limits)
    found = agents.run_behind(workspace, f"{model_server}/v1", agent, tmp_path, agents.QUIET)
    (session,) = found["sessions"]
    assert (found["exit_code"], session["turns"], session["fallbacks"], session["errors"]) == (0, STEPS, 0, 0)
    assert session["edits"] > 0 and session["tokens"]["billed"]["output"] > 0
