"""Lists of traces: filters that the store answers, counts, and a bounded number of rows."""

from collections.abc import Sequence

import msgspec
import pytest

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.storage import database
from pamer_lab.workspace import TRACES, Workspace
from pamer_lab.workspace.catalogue import Filters, listed
from tests.runs.making import long_trace

TOKENS = MessageTokens(EstimatedCounter())
REWARDS = {"t-a": None, "t-b": 1.0, "t-c": 0.5, "t-d": 0.0}


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """Traces of 2, 3, 4 and 5 turns; the third is a demo, the second has another format and an awkward model."""
    made = [
        msgspec.structs.replace(long_trace(2 + number, trace_id=name), reward=reward, format="made", model="m")
        for number, (name, reward) in enumerate(REWARDS.items())
    ]
    made[1] = msgspec.structs.replace(made[1], format="other", model="It's 100 %_Ä")
    workspace.add_traces([made[0], made[1], made[3]], TOKENS)
    workspace.add_traces([made[2]], TOKENS, demo=True)
    return workspace


def ids(rows: Sequence[dict[str, object]]) -> list[str]:
    return sorted(str(row["trace_id"]) for row in rows)


@pytest.mark.parametrize(
    ("filters", "fitting"),
    [
        (Filters(), ["t-a", "t-b", "t-c", "t-d"]),
        (Filters(owners="my traces"), ["t-a", "t-b", "t-d"]),
        (Filters(owners="demo"), ["t-c"]),
        (Filters(formats=["made"], reward="below 1"), ["t-c", "t-d"]),
        (Filters(reward="not recorded"), ["t-a"]),
        (Filters(reward="recorded", owners="my traces"), ["t-b", "t-d"]),
        (Filters(reward="1 or more"), ["t-b"]),
        (Filters(turns=(3, 4)), ["t-b", "t-c"]),
        (Filters(turns=(5, float("inf"))), ["t-d"]),
        (Filters(tokens=(float("inf"), float("inf"))), []),
        (Filters("T-A"), ["t-a"]),
        (Filters("it's 100 %_ä"), ["t-b"]),
        (Filters("%"), ["t-b"]),
        (Filters("' OR 1=1 --"), []),
        (Filters(labelled=True), []),
    ],
)
def test_filters_are_answered_by_the_store(filled: Workspace, filters: Filters, fitting: list[str]) -> None:
    found = listed(filled, filters.where)
    assert (ids(found.rows), found.fitting, found.total, found.complete) == (fitting, len(fitting), 4, True)


def test_of_many_traces_those_stored_last_are_listed_and_all_are_counted(filled: Workspace) -> None:
    found = listed(filled, most=2)
    assert (len(found.rows), found.fitting, found.total, found.complete) == (2, 4, 4, False) and "t-c" in ids(found.rows)
    some = listed(filled, Filters(reward="recorded").where, most=1)
    assert (ids(some.rows), some.fitting, some.total) == (["t-c"], 3, 4)


def test_a_workspace_without_traces_lists_none(workspace: Workspace) -> None:
    assert listed(workspace).total == 0 and not workspace.path.exists()


def test_a_large_table_is_indexed_by_itself(filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not filled.database.table(TRACES).list_indices()
    monkeypatch.setattr(database, "INDEX_FROM", 4)
    filled.add_traces([long_trace(6, trace_id="t-e")], TOKENS)
    assert [index.columns for index in filled.database.table(TRACES).list_indices()] == [["trace_id"]]
    assert filled.trace("t-e").row["turns"] == 6 and ids(filled.rows_of(["t-e", "t-b", "t-none"])) == ["t-b", "t-e"]
