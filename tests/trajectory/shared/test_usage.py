"""Recorded usage: what each source's names come to."""

from typing import Any

import pytest

from pamer_lab.trajectory.shared.usage import add_usage, read_usage, usage_in
from pamer_lab.trajectory.values import Usage


@pytest.mark.parametrize(
    ("value", "cost", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, None, Usage(10, 2, 4)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}, None, Usage(18, 2, 5)),
        ({"input_tokens": 10, "output_tokens": 2, "input_token_details": {"cache_read": 6}}, 0.5, Usage(10, 2, 6, 0.5)),
        ({"tokens_sent": 7, "tokens_received": 1}, 0.0, Usage(7, 1)),
        ({"prompt_tokens": 0}, None, None),
        ("many", None, None),
        (None, 0.25, Usage(cost_usd=0.25)),
    ],
)
def test_the_usual_names_are_read(value: Any, cost: Any, usage: Usage | None) -> None:
    assert read_usage(value, cost) == usage


def test_a_source_names_the_fields_that_are_added_up() -> None:
    value = {"input": 5, "cacheRead": 7, "output": 2, "thoughts": "many"}
    assert usage_in(value, sent="input cacheRead", given="output thoughts", cached="cacheRead", cost=0) == Usage(12, 2, 7, 0.0)


def test_two_spellings_of_one_field_count_once() -> None:
    assert usage_in({"promptTokens": 5, "prompt_tokens": 5}, sent="promptTokens|prompt_tokens", given="x") == Usage(5)


@pytest.mark.parametrize("value", [None, [], "x", {}, {"input": None}])
def test_nothing_recorded_is_no_usage(value: Any) -> None:
    assert usage_in(value, sent="input", given="output") is None


def test_sums_keep_a_price_that_only_one_side_has() -> None:
    assert add_usage(Usage(1, 2, 1), Usage(3, 4, 0, 0.5)) == Usage(4, 6, 1, 0.5)
    assert add_usage(None, Usage(1)) == Usage(1) and add_usage(None, None) is None
