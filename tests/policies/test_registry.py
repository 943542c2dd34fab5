"""Names and parameters of policies."""

import pytest

from pamer_lab.errors import InputError
from pamer_lab.policies.registry import describe_policies, parse_policies, parse_policy


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
    *("sliding-window:0", "sliding-window:-1", "sliding-window:x", "sliding-window:3:size=2", "sliding-window:1:2:3", "sliding-window:²"),
    *("sliding-window:9999999999", "base:1", "periodic-summary:3:sometimes", "pamer+:router=all", "pamer:router=index"),
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_parameter_is_refused_with_what_it_takes(text: str) -> None:
    with pytest.raises(InputError, match=r"policy '(sliding-window|base|periodic-summary|pamer\+?)'"):
        parse_policy(text)


def test_the_same_policy_twice_is_taken_once() -> None:
    assert [policy.name for policy in parse_policies("base, sliding-window:5,sliding-window")] == ["base", "sliding-window:5"]
    with pytest.raises(InputError):
        parse_policies(" , ")


def test_every_policy_states_what_it_is_and_where_it_deviates() -> None:
    for entry in describe_policies():
        assert entry["description"] and entry["deviations"]
