"""Names and parameters of policies."""

from dataclasses import dataclass, field
from typing import Any, get_args

import pytest

from pamer_lab.errors import InputError
from pamer_lab.policies.availability import GROUPS
from pamer_lab.policies.interface import Basis, Embeds
from pamer_lab.policies.presets import PRESETS
from pamer_lab.policies.registry import (
    DEFAULT_POLICIES,
    POLICIES,
    describe_policies,
    describe_presets,
    offered_policies,
    parameters_of,
    parse_policies,
    parse_policy,
    read_parameters,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("base", "base"),
        ("sliding-window", "sliding-window:5"),
        ("sliding-window:7", "sliding-window:7"),
        ("sliding-window:k=7:budget=900", "sliding-window:7:budget=900"),
        (" periodic-summary:3 ", "periodic-summary:3"),
        ("periodic-summary:3:accumulate", "periodic-summary:3:accumulate"),
        ("periodic-summary:accumulate:3", "periodic-summary:3:accumulate"),
        ("periodic-summary:3:keep=2", "periodic-summary:3:keep=2"),
        ("pamer+:router=index", "pamer+"),
        ("pamer+:archive", "pamer+:router=archive"),
        ("pamer+:router=archive", "pamer+:router=archive"),
    ],
)
def test_a_policy_has_one_canonical_name_that_names_it_again(text: str, name: str) -> None:
    policy = parse_policy(text)
    assert policy.name == name
    assert parse_policy(name) == policy


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'pammer'.*base, sliding-window, periodic-summary"):
        parse_policy("pammer")


WRONG = [
    *"sliding-window:0 sliding-window:-1 sliding-window:x sliding-window:3:size=2 sliding-window:1:2:3 sliding-window:²".split(),
    *"sliding-window:9999999999 base:1 periodic-summary:3:sometimes pamer+:router=all pamer:router=index".split(),
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_parameter_is_refused_with_what_it_takes(text: str) -> None:
    with pytest.raises(InputError, match=r"policy '(sliding-window|base|periodic-summary|pamer\+?)'"):
        parse_policy(text)


def test_the_same_policy_twice_is_taken_once() -> None:
    assert [policy.name for policy in parse_policies("base, sliding-window:5,sliding-window")] == ["base", "sliding-window:5"]
    with pytest.raises(InputError):
        parse_policies(" , ")


def test_every_policy_states_what_it_is_where_it_comes_from_what_it_rests_on_and_where_it_deviates() -> None:
    for entry in describe_policies():
        assert entry["description"] and entry["sources"] and entry["deviations"]
        assert entry["facts"] and {fact["basis"] for fact in entry["facts"]} <= {*get_args(Basis)}
        assert set(entry["parameters"]) == set(entry["takes"])
        assert POLICIES[entry["name"]].needs_models is ("heads" in entry["needs"])
        assert isinstance(parse_policy(entry["name"]), Embeds) is ("embedder" in entry["needs"]), "its time is estimated by its texts"


def test_what_is_offered_follows_from_the_classes() -> None:
    assert offered_policies("first") == ("base", "sliding-window:5", "periodic-summary:5", "pamer", "pamer+")
    assert (*offered_policies("first"), "pamer-no-recall", "pamer-no-compression") == DEFAULT_POLICIES
    assert {parse_policy(name).name for name in offered_policies()} == set(offered_policies()) and len(offered_policies()) == len(POLICIES)


def test_policies_that_are_shown_together_can_be_told_apart() -> None:
    looks = [(kind.look.colour, kind.look.dash) for kind in POLICIES.values() if kind.offered == "first"]
    assert len(set(looks)) == len({colour for colour, _ in looks}) == len(looks)


@dataclass(frozen=True)
class Parameters:
    """One of each kind."""

    count: int = field(default=2, metadata={"least": 1, "most": 9})
    share: float = field(default=0.5, metadata={"most": 1.0})
    fresh: bool = False
    mode: str = field(default="a", metadata={"choices": ("a", "b")})
    shift: float = field(default=0.0, metadata={"least": -2})


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["9", "0.25", "true", "b"], {"count": 9, "share": 0.25, "fresh": True, "mode": "b"}),
        (["share=1", "fresh=False", "shift=-1.5"], {"share": 1.0, "fresh": False, "shift": -1.5}),
        (["share=1e-3"], {"share": 0.001}),
    ],
)
def test_parameters_are_whole_numbers_numbers_flags_and_words(given: list[str], values: dict[str, Any]) -> None:
    found = read_parameters("x", Parameters, given)
    assert found == values and {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in values.items()}


OUTSIDE = [
    "count=0",
    "count=10",
    "count=1.5",
    "share=1.01",
    "share=-0.1",
    "share=nan",
    "share=inf",
    "share=1_0",
    "fresh=yes",
    "mode=c",
    "shift=-3",
    "shift=x",
]


@pytest.mark.parametrize("given", OUTSIDE)
def test_a_value_outside_its_bounds_is_refused_with_what_the_parameter_takes(given: str) -> None:
    with pytest.raises(InputError) as refused:
        read_parameters("x", Parameters, [given])
    assert parameters_of(Parameters)[given.partition("=")[0]].takes in str(refused.value)


def test_every_preset_is_a_policy_and_states_where_it_is_from() -> None:
    for entry in describe_presets():
        policy = parse_policy(entry["name"])
        assert policy == parse_policy(entry["policy"]) and policy.name == entry["policy"]
        assert entry["basis"] in get_args(Basis) and entry["source"]
    assert not {*PRESETS} & {*POLICIES, *GROUPS}


def test_a_preset_with_parameters_is_refused_with_the_policy_that_takes_them() -> None:
    with pytest.raises(InputError, match="auto-compact:244800"):
        parse_policy("codex:tail=2")
