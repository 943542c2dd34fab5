from pathlib import Path

import pytest

from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import frozen_name, loads, needs_models, other_heads, why_not
from pamer_lab.policies.registry import ALL_SEVEN, parse_policy
from pamer_lab.policies.resources import heads_identity

EMBEDDED = load_profile("embedded")
LIGHT = {"base", "sliding-window", "periodic-summary"}


@pytest.mark.parametrize("name", ALL_SEVEN)
def test_a_policy_loads_models_exactly_when_its_heads_vote(name: str) -> None:
    policy = parse_policy(name)
    votes = name.partition(":")[0] not in LIGHT
    assert needs_models(policy) is votes
    assert loads(policy, EMBEDDED) == (["SmolLM2-135M-Instruct", "all-MiniLM-L6-v2"] if votes else [])


def test_a_policy_without_models_is_always_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pamer_lab.probes.artefact.SHIPPED", tmp_path)
    assert why_not(parse_policy("sliding-window:5"), EMBEDDED) == ""


def test_missing_heads_and_missing_weights_are_told_apart_with_their_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pamer, paper = parse_policy("pamer"), load_profile("paper")
    monkeypatch.setattr("pamer_lab.policies.availability.is_here", lambda model: False)
    assert "weights of SmolLM2-135M-Instruct are not on this machine. Get them: pamer-lab prepare" in why_not(pamer, EMBEDDED)
    assert f"no trained heads for {frozen_name(paper)}" in why_not(pamer, paper) and "pamer-lab train" in why_not(pamer, paper)
    monkeypatch.setattr("pamer_lab.policies.availability.is_here", lambda model: True)
    assert why_not(pamer, EMBEDDED) == ""
    monkeypatch.setattr("pamer_lab.probes.artefact.SHIPPED", tmp_path)
    assert "no trained heads for SmolLM2-135M-Instruct" in why_not(pamer, EMBEDDED)


def test_a_run_of_other_heads_is_noticed_and_one_without_heads_never() -> None:
    now = {"heads": heads_identity(EMBEDDED)}
    assert not other_heads(now, parse_policy("pamer"), EMBEDDED)
    assert other_heads({"heads": {"sha256": "0"}}, parse_policy("pamer"), EMBEDDED) and other_heads({}, parse_policy("pamer+"), EMBEDDED)
    assert not other_heads({}, parse_policy("base"), EMBEDDED)
