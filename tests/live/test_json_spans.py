"""Byte spans: each one parses to the value that the parser finds there."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.live.json_spans import elements, members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.booleans())
def test_each_member_parses_to_its_value(value: dict[str, object], spaced: bool) -> None:
    body = b" \n" + orjson.dumps(value, option=orjson.OPT_INDENT_2 if spaced else 0) + b"\t"
    assert {key: orjson.loads(body[start:end]) for key, (start, end) in members(body).items()} == orjson.loads(body)


@given(st.lists(VALUES, max_size=5), st.booleans())
def test_each_element_parses_to_its_value(value: list[object], spaced: bool) -> None:
    body = b'{"x": ' + orjson.dumps(value, option=orjson.OPT_INDENT_2 if spaced else 0) + b"}"
    assert [orjson.loads(body[start:end]) for start, end in elements(body, members(body)["x"])] == value


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError):
        members(b'{"a": 1, "\\u0061": 2}')


def test_signs_inside_strings_separate_nothing() -> None:
    body = rb'{"a": "}],:\"\\", "b": [1.0, "\\\\", 12345678901234567890123]}'
    assert {key: body[slice(*span)] for key, span in members(body).items()} == {
        "a": rb'"}],:\"\\"',
        "b": rb'[1.0, "\\\\", 12345678901234567890123]',
    }
