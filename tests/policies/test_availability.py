from dataclasses import fields, replace
from pathlib import Path

import pytest

from pamer_lab.errors import InputError, LabError
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import expanded, is_light, loads, other_heads, refused, why_not
from pamer_lab.policies.presets import PRESETS
from pamer_lab.policies.registry import DEFAULT_POLICIES, offered_policies, parse_policy
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.probes.readout import HeadStack
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

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


def test_only_an_embedding_model_of_this_process_is_loaded(embedded: Factory) -> None:
    for kind in ("hashing", "openai"):
        settings = embedded.profile.embedding.model_copy(update={"kind": kind})
        other = Factory(embedded.profile.model_copy(update={"embedding": settings}), embedded.workspace)
        assert loads(parse_policy("pamer"), other) == ["SmolLM2-135M-Instruct"] and loads(parse_policy("pace-code"), other) == []


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


def test_two_heads_vote_with_two_and_a_vote_of_three_is_bad_input(tmp_path: Path, embedded: Factory) -> None:
    packaged = embedded.heads.heads
    stack = {field.name: getattr(packaged.stack, field.name) for field in fields(packaged.stack)}
    first = HeadStack(**{name: None if part is None else part[:2] for name, part in stack.items()})
    two = replace(packaged, stack=first, thresholds=packaged.thresholds[:2], seeds=packaged.seeds[:2])
    two.save(tmp_path / "two")
    factory = Factory(embedded.profile, embedded.workspace, heads_text=str(tmp_path / "two"))
    assert (factory.settings.heads, factory.settings.vote) == (2, 2)
    with pytest.raises(InputError, match="pamer"):
        parse_policy("pamer").controller_settings(factory)  # type: ignore[attr-defined]
    assert parse_policy("pamer:vote=2").controller_settings(factory).vote == 2  # type: ignore[attr-defined]


def test_a_profile_whose_tokenizer_is_not_here_runs_no_policy_and_names_the_command(embedded: Factory) -> None:
    paper = Factory(load_profile("paper"), embedded.workspace)
    assert "hf download Qwen/Qwen3.5-9B" in why_not(parse_policy("base"), paper)


def test_a_run_of_other_heads_is_noticed_and_one_without_heads_never(embedded: Factory) -> None:
    now = {"heads": embedded.heads_identity()}
    assert not other_heads(now, parse_policy("pamer"), embedded)
    assert other_heads({"heads": {"sha256": "0"}}, parse_policy("pamer"), embedded) and other_heads({}, parse_policy("pamer+"), embedded)
    assert not other_heads({}, parse_policy("base"), embedded)


def test_groups_of_policies_are_expanded_to_those_that_can_run_here(embedded: Factory) -> None:
    everything, left_out = expanded("all", embedded)
    assert {"base", "acon", "lre", "pamer"} <= {*everything} and {"sculptor", "selfcompact"} <= {*left_out}
    assert {*everything}.isdisjoint(left_out) and {*everything, *left_out} == {*offered_policies()}
    light, _ = expanded("light", embedded)
    assert {*light} < {*everything} and "pamer" not in light and all(is_light(parse_policy(name), embedded) for name in light)
    hosts, others = expanded("host", embedded)
    assert {parse_policy(name).family for name in [*hosts, *others]} == {"host"} and "auto-compact" in hosts


def test_a_group_beside_a_name_keeps_the_name_as_it_was_given_and_each_policy_once(embedded: Factory) -> None:
    names, _ = expanded("sliding-window:2, host ,auto-compact,pamer", embedded)
    assert names[0] == "sliding-window:2" and names[-1] == "pamer" and names.count("auto-compact") == 1
    assert expanded("pamer", embedded) == (["pamer"], {}), "the policy, not its family"
    with pytest.raises(LabError):
        expanded(" , ", embedded)


def test_a_policy_that_no_trace_has_the_recorded_calls_for_is_refused_with_the_reason(embedded: Factory) -> None:
    embedded.workspace.add_traces([long_trace(4)], embedded.tokens)
    ids = [row["trace_id"] for row in embedded.workspace.trace_rows()]
    found = refused(["base", "acm"], ids, embedded.workspace)
    assert list(found) == ["acm"] and "manage_context" in found["acm"]


def test_programs_means_every_preset(embedded: Factory) -> None:
    names, _ = expanded("base,programs", embedded)
    assert names[0] == "base" and {*names[1:]} == {parse_policy(name).name for name in PRESETS}


def test_a_policy_that_names_its_heads_votes_with_those_whatever_a_run_is_started_with(embedded: Factory) -> None:
    named, started = "smollm2-real", Factory(embedded.profile, embedded.workspace, heads_text="smollm2-generated")
    for text in (f"pamer:heads={named}", f"pamer+:inject=append:heads={named}", f"pamer:gate=priced:heads={named}"):
        policy = parse_policy(text)
        resources = RunResources(factory_of(policy, started))
        assert parse_policy(policy.name) == policy and resources.heads_identity()["name"] == named
        plain = parse_policy(text.replace(f":heads={named}", "")).settings(RunResources(started))
        assert policy.settings(resources)["heads"]["sha256"] != plain["heads"]["sha256"] == started.heads.heads.sha256
        assert other_heads(plain, policy, started) and not other_heads(policy.settings(resources), policy, started)
    assert factory_of(parse_policy("base"), started) is started
    assert "none-such" in why_not(parse_policy("pamer:heads=none-such"), started)
