"""Fields of untrusted JSON come out as the type that was asked for, or as missing."""

from typing import Any

import pytest

from pamer_lab.trajectory.shared import get

ODD = [
    None,
    True,
    0,
    2.5,
    float("nan"),
    float("inf"),
    {"k": 10**5000},
    "",
    "x",
    [],
    [None],
    {},
    {"k": {}},
    {"k": [1]},
    {"k": "t"},
    {"k": True},
]


@pytest.mark.parametrize("value", ODD)
def test_no_value_makes_an_accessor_fail_or_give_another_type(value: Any) -> None:
    assert type(get.text(value, "k", "other")) is str
    assert type(get.obj(value, "k", "other")) is dict
    assert type(get.items(value, "k", "other")) is list
    assert all(type(item) is dict for item in get.objects(value, "k"))
    assert type(get.first(value, "k")) is dict
    assert type(get.count(value, "k")) in (int, type(None))
    assert type(get.amount(value, "k")) in (float, type(None))
    assert type(get.facts(value, "k")) is dict
    get.some(value, "k")


def test_several_keys_are_alternatives_in_their_order() -> None:
    row = {"a": "", "b": {"x": 1}, "c": 7, "d": "text", "e": [1, {"y": 2}]}
    assert get.text(row, "a", "b", "c", "d") == "7"
    assert get.obj(row, "a", "b") == {"x": 1}
    assert get.items(row, "b", "e") == [1, {"y": 2}]
    assert get.objects(row, "e") == [{"y": 2}]
    assert get.first(row, "e") == {}
    assert get.count(row, "a", "c") == 7
    assert get.some(row, "a", "b") == {"x": 1}


def test_a_truth_value_is_an_amount_but_neither_text_nor_a_count() -> None:
    assert (get.text({"k": True}, "k"), get.count({"k": True}, "k"), get.amount({"k": True}, "k")) == ("", None, 1.0)


def test_counts_are_whole_and_finite() -> None:
    assert [get.as_count(value) for value in (3, 2.9, float("nan"), float("inf"), 1e300, "3")] == [3, 2, None, None, None, None]


def test_json_text_is_parsed_and_other_text_is_missing() -> None:
    assert [get.parsed(value) for value in ('{"a": 1}', "no json", [1], None)] == [{"a": 1}, None, [1], None]


def test_items_have_places() -> None:
    assert list(get.placed(["x", "y"], "pages")) == [("pages[0]", "x"), ("pages[1]", "y")]
