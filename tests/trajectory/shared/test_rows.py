"""A document's values and their places, and one bad trace beside good ones."""

from typing import Any

import orjson
import pytest

from pamer_lab.config import ReadLimits
from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document, parse_document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.rows import attempt, first_row, head, one_value, read_each, rows, trace_rows, warn_strays
from pamer_lab.trajectory.values import Source


def _document(*values: Any, lines: bool = True) -> Document:
    data = b"\n".join(orjson.dumps(value) for value in values) if lines else orjson.dumps(values)
    return parse_document(data, ReadLimits(), name="test")


def test_lines_and_a_list_give_the_same_rows_with_their_own_places() -> None:
    values = ({"a": 1}, 7, {"a": 2})
    assert rows(_document(*values)) == [("line 1", {"a": 1}), ("line 3", {"a": 2})]
    assert rows(_document(*values, lines=False)) == [("[0]", {"a": 1}), ("[2]", {"a": 2})]
    assert first_row(_document(7, {"a": 2})) == {"a": 2} and head(_document(*values), 1) == [{"a": 1}]


def test_a_single_trace_needs_no_place() -> None:
    assert trace_rows(_document({"a": 1}, lines=False)) == [("", {"a": 1})]
    assert [where for where, _ in trace_rows(_document({"a": 1}, {"a": 2}))] == ["line 1", "line 2"]


def test_lines_are_not_one_value() -> None:
    assert one_value(_document({"a": 1}, {"a": 2})) is None and one_value(_document({"a": 1})) == {"a": 1}


def test_values_that_are_not_objects_are_named() -> None:
    draft = Draft("test")
    warn_strays(draft, _document({"a": 1}, [2], "x"))
    assert [warning.where for warning in draft.warnings] == ["line 2", "line 3"]


def test_a_bad_episode_does_not_hide_the_others() -> None:
    def read_one(value: Any, where: str) -> Draft:
        draft = Draft("test", where=where)
        draft.assistant(value["said"])
        return draft

    drafts = list(read_each(_document({"said": "a"}, {}, {"said": "c"}), "test", read_one))
    assert [len(draft.messages) for draft in drafts] == [1, 0, 1]


def test_a_fault_keeps_its_own_place() -> None:
    def read() -> Draft:
        raise Draft("test", where="line 3").fault("messages[1]", "is wrong")

    with pytest.raises(FormatError) as fault:
        attempt("test", "line 3", read).finish(Source("test"), "t")
    assert (fault.value.where, fault.value.reason) == ("line 3 messages[1]", "is wrong")
