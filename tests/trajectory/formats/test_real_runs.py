"""Every real file of the benchmark, SWE and call-log formats: counts by an independent look, and no text lost."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import Trace, read_traces
from tests.conftest import REAL_TRACES
from tests.trajectory.formats.told import counts, raw_values, strings, told

Counts = list[tuple[int, int, int]]
"""(turns, calls, results) per episode."""


def _chat(messages: list[Any], agent: str = "assistant") -> tuple[int, int, int]:
    turns = [item for item in messages if item["role"] == agent]
    return len(turns), sum(len(item.get("tool_calls") or []) for item in turns), sum(item["role"] == "tool" for item in messages)


def _episodes(values: list[Any]) -> list[Any]:
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


def _tau(values: list[Any]) -> Counts:
    return [_chat(episode["traj"]) for episode in _episodes(values)]


def _tau2(values: list[Any]) -> Counts:
    runs = values[0]["simulations"]
    agent = [[item for item in run["messages"] if item.get("requestor") != "user"] for run in runs]
    return [_chat(messages) for messages in agent]


def _swe_agent(values: list[Any]) -> Counts:
    history = [item for item in values[0]["history"] if not item.get("is_demo")]
    return [_chat(history)]


def _mini(values: list[Any]) -> Counts:
    return [_chat(values[0]["messages"] if isinstance(values[0], dict) else values[0])]


def _openhands_v0(values: list[Any]) -> Counts:
    found = []
    for events in [value["history"] for value in values] if isinstance(values[0], dict) else values:
        turns = [event for event in events if event.get("source") == "agent" and event.get("action") not in (None, "system")]
        calls = [event for event in turns if "tool_call_metadata" in event]
        results = [event for event in events if "observation" in event and "tool_call_metadata" in event]
        found.append((len(turns), len(calls), len(results)))
    return found


def _openhands_v1(values: list[Any]) -> Counts:
    kinds = [event["kind"] for event in values]
    said = sum(event["kind"] == "MessageEvent" and event["source"] == "agent" for event in values)
    return [(kinds.count("ActionEvent") + said, kinds.count("ActionEvent"), kinds.count("ObservationEvent"))]


def _completion(values: list[Any]) -> Counts:
    return [_chat([*values[0]["messages"], values[0]["response"]["choices"][0]["message"]])]


def _request_log(values: list[Any]) -> Counts:
    requests = [value["request_params"]["messages"] for value in values if value["type"] == "request"]
    longest = max(requests, key=len)
    return [_chat([*longest, values[-1]["response"]["choices"][0]["message"]])]


def _verifiers(values: list[Any]) -> Counts:
    return [_chat(value["prompt"] + value["completion"]) for value in values]


FORMATS: dict[str, Callable[[list[Any]], Counts]] = {
    "tau-bench": _tau,
    "tau2-bench": _tau2,
    "swe-agent-traj-v0": _swe_agent,
    "swe-agent-traj-v1": _swe_agent,
    "mini-swe-agent": _mini,
    "openhands-v0-events": _openhands_v0,
    "openhands-v1-events": _openhands_v1,
    "openhands-llm-completion-log": _completion,
    "llm-request-response-log": _request_log,
    "verifiers-results": _verifiers,
}

SAID = {"content", "text", "thought", "reasoning_content", "system_prompt", "policy", "observation", "response", "arguments", "message"}
"""Keys of a source under which message text stands, whatever the format."""
NOT_SENT = {"tasks", "instance", "metadata", "config", "replay_config", "extra", "raw_data", "user_info", "tools", "model_response"}
NOT_SENT |= {"reward_info", "edited_files30", "edited_files50", "edited_files70", "state", "query", "kwargs", "outputs"}
"""Subtrees that repeat the conversation, describe the run, or that nobody sent to the agent."""


def _said(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if key in SAID:
            # OpenHands joins the answer's text and the think tool's argument into one thought
            yield from value.splitlines() if key == "thought" else [value]
    elif isinstance(value, dict):
        for name, child in value.items():
            if name in NOT_SENT or (name in ("message", "observation") and ("args" in value or "extras" in value)):
                continue  # OpenHands' `message` is a headline for people, its `observation` names a kind
            yield from _said(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _said(child, key)


def _sources() -> list[Any]:
    if not REAL_TRACES.is_dir():
        return [pytest.param("", Path(), marks=pytest.mark.skip(reason="the real traces are not next to this checkout"))]
    found = [(name, path) for name in FORMATS for path in sorted((REAL_TRACES / name).iterdir())]
    return [pytest.param(name, path, id=f"{name}-{path.name[:40]}") for name, path in found]


def _values(path: Path) -> list[Any]:
    if path.is_dir():
        return [json.loads(file.read_text()) for file in sorted(path.iterdir())]
    return raw_values(path)


@pytest.mark.parametrize(("name", "path"), _sources())
def test_a_real_file_gives_the_turns_calls_and_results_it_holds_and_loses_no_text(name: str, path: Path) -> None:
    traces = read_traces(path)
    values = _values(path)
    assert [counts(trace) for trace in traces] == FORMATS[name](values)
    assert {trace.format for trace in traces} == {name.removesuffix("-v0").removesuffix("-v1")}
    assert not [violation for trace in traces for violation in violations(trace.messages)]
    texts = [text for value in values for text in _said(value) if text.strip()]
    assert texts
    assert not _missing(traces, texts)[:3]


def _missing(traces: list[Trace], texts: list[str]) -> list[str]:
    """Texts that stand nowhere in the traces; arguments given as JSON text may be spaced otherwise."""
    heard = told(traces)
    missing = heard.misses(texts)
    return [text for text in missing if heard.misses(strings(_json(text)) if _json(text) is not None else [text])]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_demonstrations_of_swe_agent_stand_in_the_prefix_and_are_not_turns(real_traces: Path) -> None:
    (trace,) = read_traces(real_traces / "swe-agent-traj-v0" / "psf__requests-1921.traj")
    shown = [message for message in trace.messages if message.name.startswith("demonstration-")]
    assert len(shown) == 22
    assert {message.role for message in shown} == {"user"}
    assert trace.usage is not None and trace.usage.output_tokens == 7586
    assert trace.task_id == "psf__requests-1921"


def test_the_policy_of_tau2_is_the_system_message_and_the_users_calls_are_not_the_agents(real_traces: Path) -> None:
    path = real_traces / "tau2-bench" / "telecom_llm_agent_gpt-4o.json"
    policy = json.loads(path.read_text())["info"]["environment_info"]["policy"]
    traces = read_traces(path)
    assert all(trace.messages[0].content == policy and trace.messages[0].role == "system" for trace in traces)
    assert any(message.name == "user-tool-call" for trace in traces for message in trace.messages)
    assert all(message.usage for message in traces[0].messages[2:] if message.role == "assistant" and message.content)


def test_usage_of_mini_swe_agent_is_found_inside_the_raw_response(real_traces: Path) -> None:
    (trace,) = read_traces(real_traces / "mini-swe-agent" / "deepseek_reasoner_dev.sqlfluff__sqlfluff-1733.traj.json")
    agent = [message for message in trace.messages if message.role == "assistant"]
    assert all(message.usage and message.usage.input_tokens for message in agent)
    assert any(message.thinking for message in agent)
    assert trace.events[-1].data["exit_status"] == "InternalServerError"


def test_what_a_retry_dropped_from_a_call_log_is_told_as_an_event(real_traces: Path) -> None:
    (trace,) = read_traces(real_traces / "llm-request-response-log")
    assert trace.events
    assert sum(message.usage is not None for message in trace.messages) == trace.turns
