from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import is_light, loads, other_heads, why_not
from pamer_lab.policies.registry import DEFAULT_POLICIES, parse_policy
from pamer_lab.workspace import Workspace

LIGHT = {"base", "sliding-window", "periodic-summary"}


@pytest.fixture
def embedded(tmp_path: Path) -> Factory:
    return Factory(load_profile("embedded"), Workspace(tmp_path / "workspace"))


@pytest.mark.parametrize("name", DEFAULT_POLICIES)
def test_a_policy_loads_models_exactly_when_its_heads_vote(name: str, embedded: Factory) -> None:
    policy = parse_policy(name)
    votes = name.partition(":")[0] not in LIGHT
    assert policy.needs_models is votes
    assert loads(policy, embedded) == (["SmolLM2-135M-Instruct", "all-MiniLM-L6-v2"] if votes else [])


def test_a_policy_that_asks_a_chat_server_for_summaries_is_not_run_unasked(embedded: Factory) -> None:
    served = Factory(load_profile("paper"), embedded.workspace)
    light = {name for name in DEFAULT_POLICIES if is_light(parse_policy(name), embedded)}
    assert light == {"base", "sliding-window:5", "periodic-summary:5"}
    assert {name for name in light if is_light(parse_policy(name), served)} == {"base", "sliding-window:5"}


def test_a_policy_without_models_needs_no_heads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedded: Factory) -> None:
    monkeypatch.setattr("pamer_lab.probes.registry.PACKAGED", tmp_path)
    assert why_not(parse_policy("sliding-window:5"), embedded) == ""


def test_missing_weights_are_named_with_the_command_that_gets_them(monkeypatch: pytest.MonkeyPatch, embedded: Factory) -> None:
    pamer = parse_policy("pamer")
    assert why_not(pamer, embedded) == ""
    monkeypatch.setattr("pamer_lab.factory.is_here", lambda model: False)
    assert "SmolLM2-135M-Instruct" in why_not(pamer, embedded) and "pamer-lab prepare" in why_not(pamer, embedded)


def test_missing_heads_are_named_with_the_command_that_trains_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedded: Factory
) -> None:
    monkeypatch.setattr("pamer_lab.probes.registry.PACKAGED", tmp_path)
    reason = why_not(parse_policy("pamer"), embedded)
    assert "SmolLM2-135M-Instruct" in reason and "pamer-lab train" in reason


def test_a_profile_whose_tokenizer_is_not_here_runs_no_policy_and_names_the_command(embedded: Factory) -> None:
    paper = Factory(load_profile("paper"), embedded.workspace)
    assert "hf download Qwen/Qwen3.5-9B" in why_not(parse_policy("base"), paper)


def test_a_run_of_other_heads_is_noticed_and_one_without_heads_never(embedded: Factory) -> None:
    now = {"heads": embedded.heads_identity()}
    assert not other_heads(now, parse_policy("pamer"), embedded)
    assert other_heads({"heads": {"sha256": "0"}}, parse_policy("pamer"), embedded) and other_heads({}, parse_policy("pamer+"), embedded)
    assert not other_heads({}, parse_policy("base"), embedded)
