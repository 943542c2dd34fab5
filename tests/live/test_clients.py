"""Real clients, through the proxy and straight to the upstream: the OpenAI and Anthropic SDKs, streaming and not, with parallel calls."""

from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from pamer_lab.live.fake_upstream import FakeUpstream
from tests.live.conftest import Bench

POLICIES = ["base", "sliding-window:2"]
TURNS = 6
LOOK: dict[str, Any] = {"name": "look", "description": "Look at a room.", "parameters": {"type": "object", "properties": {}}}


def said(request: dict[str, Any], digest: str) -> str:
    """Nothing of what a policy may leave out, so that both ways give one answer."""
    return f"I have seen it all … ✓ ({request['model']})"


def shown(room: int) -> str:
    return f"room {room}: " + f"exhibit {room} " * 40


def chat(url: str, stream: bool) -> list[Any]:
    """An agent on chat completions with two calls a turn; what it got."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client-0123456789", max_retries=0)
    history: list[Any] = [{"role": "system", "content": "Be careful."}, {"role": "user", "content": "Count the rooms."}]
    tools: list[Any] = [{"type": "function", "function": LOOK}]
    found: list[Any] = []
    for turn in range(TURNS):
        asked: dict[str, Any] = {"model": "fake", "messages": history, "tools": tools, "extra_headers": {"x-fake": "tool"}}
        if stream:
            with client.chat.completions.stream(**asked) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
        found.append((message.content, [call.function.arguments for call in message.tool_calls or []]))
        ids = [f"call_{turn}_{number}" for number in range(2)]
        calls = [{"id": own, "type": "function", "function": {"name": "look", "arguments": "{}"}} for own in ids]
        history.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": own, "content": shown(turn)} for own in ids]
    return found


def messages(url: str, stream: bool) -> list[Any]:
    """The same agent on Anthropic's API."""
    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-client-0123456789", max_retries=0)
    history: list[Any] = [{"role": "user", "content": "Count the rooms."}]
    tools: list[Any] = [{"name": "look", "description": "Look at a room.", "input_schema": LOOK["parameters"]}]
    found: list[Any] = []
    for turn in range(TURNS):
        asked: dict[str, Any] = {"model": "fake", "max_tokens": 50, "system": "Be careful.", "messages": history, "tools": tools}
        asked["extra_headers"] = {"x-fake": "tool"}
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        found.append([(part.type, getattr(part, "text", ""), getattr(part, "input", None)) for part in message.content])
        ids = [f"toolu_{turn}_{number}" for number in range(2)]
        uses = [{"type": "tool_use", "id": own, "name": "look", "input": {}} for own in ids]
        history.append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": own, "content": shown(turn)} for own in ids]})
    return found


def responses(url: str, stream: bool) -> list[Any]:
    """The same agent on the Responses API."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client-0123456789", max_retries=0)
    history: list[Any] = [{"role": "user", "content": "Count the rooms."}]
    found: list[Any] = []
    for turn in range(TURNS):
        asked: dict[str, Any] = {"model": "fake", "input": history, "instructions": "Be careful.", "store": False}
        asked |= {"tools": [{"type": "function", **LOOK}], "extra_headers": {"x-fake": "tool"}}
        if stream:
            with client.responses.stream(**asked) as events:
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**asked)
        found.append((answer.output_text, [item.type for item in answer.output]))
        ids = [f"call_{turn}_{number}" for number in range(2)]
        history += [{"type": "function_call", "call_id": own, "name": "look", "arguments": "{}"} for own in ids]
        history += [{"type": "function_call_output", "call_id": own, "output": shown(turn)} for own in ids]
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("agent", [chat, messages, responses])
def test_an_sdk_gets_through_the_proxy_what_it_gets_directly(
    started: Callable[..., Bench], agent: Callable[[str, bool], list[Any]], stream: bool, policy: str
) -> None:
    bench = started(policy, gate=False, fake=FakeUpstream(reply=said))
    straight = agent(bench.direct, stream)
    direct = [entry.body for entry in bench.got]
    bench.got.clear()
    assert agent(bench.url, stream) == straight
    bench.settle()
    through = [entry.body for entry in bench.got]
    if policy == "base":
        assert through == direct
    else:
        assert bench.summary["edits"] > 0 and len(through[-1]) < 0.7 * len(direct[-1])
    assert bench.summary["fallbacks"] == 0 and len(bench.record.asked) == TURNS
    assert bench.record.opened.client == ("anthropic-sdk" if agent is messages else "openai-sdk")


@pytest.mark.parametrize("status", [400, 429, 500])
def test_an_sdk_raises_the_same_error(started: Callable[..., Bench], status: int) -> None:
    bench = started("sliding-window:2")
    raised = []
    for url in (bench.direct, bench.url):
        client = anthropic.Anthropic(base_url=url, api_key="sk-ant-client-0123456789", max_retries=0)
        with pytest.raises(anthropic.APIStatusError) as caught:
            asked: Any = {"model": "fake", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]}
            client.messages.create(**asked, extra_headers={"x-fake": f"status={status}"})
        raised.append((type(caught.value), caught.value.status_code, caught.value.body))
    assert raised[0] == raised[1]
