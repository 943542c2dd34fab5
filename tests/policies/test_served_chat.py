"""Every policy that can ask a chat model, against a real server whose model writes nonsense: the run goes on and counts its calls."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from pamer_lab.controller import FixedProbe
from pamer_lab.factory import Factory, Parts
from pamer_lab.models.profiles import ChatSettings, Profile, load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.recount import faults
from pamer_lab.runs.turns import replay_turns
from pamer_lab.workspace import Workspace
from tests.own_model import save_own_qwen, served
from tests.runs.making import PARTS, estimated, long_trace, timeline_of

pytestmark = pytest.mark.server
TRACE = long_trace(7, words=80)
ALWAYS = Parts(embedder=PARTS.embedder, probe=FixedProbe(), tokens=estimated())
POLICIES = {
    "selfcompact:interval=1": "router",
    "sculptor:every=2:keep=1": "router",
    "self-gc:window=1000:payback=50": "router",
    "acon:threshold=300": "summary",
    "acon-observation:threshold=50": "summary",
    "pace-paper": "summary",
    "pace-code": "summary",
    "sam:budget=400:page=200:read=pages": "summary",
    "periodic-summary:2": "summary",
    "comem:2": "summary",
    "auto-compact:threshold=400": "summary",
    "memgpt:window=400": "summary",
    "masking-summary:n=2:m=1": "summary",
    "selfcompact-rules:interval=2": "summary",
    "pamer:minimum=100:retained=1": "summary",
    "pamer+:minimum=100:retained=1": "summary",
}
"""Policy, with settings that make it act on a short trace -> what it asks the model for."""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profile]:
    """The embedded profile with a chat model of random weights behind `transformers serve`."""
    model = save_own_qwen(tmp_path_factory.mktemp("own") / "nonsense", [message.content for message in TRACE.messages])
    with served(model) as url:
        yield load_profile("embedded").model_copy(
            update={"name": "served", "chat": ChatSettings(kind="openai", model=str(model), base_url=url, attempts=1)}
        )


@pytest.mark.parametrize("name", POLICIES)
def test_nonsense_from_a_real_server_stops_no_run_and_every_call_is_counted(name: str, profile: Profile, tmp_path: Path) -> None:
    policy = parse_policy(name)
    resources = RunResources(Factory(profile, Workspace(tmp_path), "cpu", parts=ALWAYS), "session")
    timeline = timeline_of(TRACE)
    turns = list(replay_turns(timeline, policy, resources, ()))
    assert len(turns) == timeline.turns and not faults(timeline, turns)
    asked = [entry for turn in turns for entry in turn.spent if entry.operation == POLICIES[name] and not entry.local]
    assert asked and sum(entry.calls for entry in asked) >= len(asked)
    assert all(entry.input_tokens > 0 or entry.unknown for entry in asked)
    assert all(profile.chat.model in entry.model for entry in asked)
    # Random words are no JSON: whoever asked for it says so in the decision.
    assert POLICIES[name] == "summary" or any(turn.error for turn in turns)


@pytest.mark.parametrize("gate", ["self-rag", "flare"])
def test_a_recall_gate_that_cannot_use_the_answer_lets_recall_go_on(gate: str, profile: Profile, tmp_path: Path) -> None:
    extractive = Factory(load_profile("embedded"), Workspace(tmp_path), "cpu", parts=ALWAYS).summariser  # so that there are memories
    parts = dataclasses.replace(ALWAYS, summariser=extractive)
    resources = RunResources(Factory(profile, Workspace(tmp_path), "cpu", parts=parts), "session")
    turns = list(replay_turns(timeline_of(TRACE), parse_policy(f"pamer:minimum=300:retained=1:recall={gate}"), resources, ()))
    asked = [turn for turn in turns if any(entry.operation == "gate" and entry.calls for entry in turn.spent)]
    assert asked and all(turn.action == "recall" and turn.error for turn in asked)
