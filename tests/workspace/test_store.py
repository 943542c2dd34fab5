import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.errors import InputError
from pamer_lab.runs.engine import replay
from pamer_lab.trajectory import read_bytes
from pamer_lab.trajectory.values import Label
from pamer_lab.workspace import TRACES, Workspace
from tests.runs.making import estimated, long_trace

CHAT = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "r"},
    {"role": "assistant", "content": "done"},
]


def test_a_second_import_adds_nothing(workspace: Workspace) -> None:
    traces = read_bytes(json.dumps(CHAT).encode(), "a.json").traces
    tokens = MessageTokens(EstimatedCounter())
    first = workspace.add_traces(traces, tokens)
    assert workspace.add_traces(read_bytes(json.dumps(CHAT).encode(), "b.json").traces, tokens)[0]["trace_id"] == first[0]["trace_id"]
    assert len(workspace.trace_rows()) == 1


def test_a_stored_trace_comes_back_as_it_was_with_its_counts(workspace: Workspace) -> None:
    (trace,) = read_bytes(json.dumps(CHAT).encode(), "a.json").traces
    tokens = MessageTokens(EstimatedCounter())
    (row,) = workspace.add_traces([trace], tokens)
    stored = workspace.trace(trace.trace_id)
    assert stored.trace == trace
    assert list(stored.message_tokens) == tokens.counts(trace.messages)
    assert (row["turns"], row["blocks"], row["tool_calls"], row["tool_results"], row["prefix_messages"]) == (2, 2, 1, 1, 2)
    assert row["tokens"] == sum(stored.message_tokens) and row["tokens_kind"] == "estimated"


def test_a_missing_trace_is_named(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="t-0000"):
        workspace.trace("t-0000")


def test_looking_at_an_empty_workspace_creates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert Workspace(folder).trace_rows() == []
    assert not folder.exists()


def test_sizes_and_contexts_come_from_the_stored_counts(workspace: Workspace) -> None:
    tokens = MessageTokens(EstimatedCounter())
    trace = long_trace(5)
    workspace.add_traces([trace, long_trace(3, trace_id="t-other")], tokens)
    stored = workspace.trace(trace.trace_id)
    size = workspace.trace_sizes([trace.trace_id])[trace.trace_id]
    assert size.turns == 5 and size.head_tokens == stored.tools_tokens + sum(stored.message_tokens[:2])
    assert size.head_tokens + size.later_tokens == stored.row["tokens"]
    before = workspace.contexts_before([trace.trace_id])
    assert list(before) == [trace.trace_id] and len(before[trace.trace_id]) == 5
    assert before[trace.trace_id][0] == size.head_tokens and before[trace.trace_id] == sorted(before[trace.trace_id])


def test_a_tables_version_grows_with_it_and_is_zero_without_it(workspace: Workspace) -> None:
    assert workspace.table_version(TRACES) == (0, 0)
    workspace.add_traces([long_trace(2)], MessageTokens(EstimatedCounter()))
    first = workspace.table_version(TRACES)
    workspace.add_traces([long_trace(3, trace_id="t-other")], MessageTokens(EstimatedCounter()))
    assert (0, 0) < first < workspace.table_version(TRACES)


def test_frames_list_what_is_in_the_workspace_without_the_texts(workspace: Workspace) -> None:
    assert workspace.traces().height == workspace.runs().height == 0 and not workspace.path.exists()
    columns = workspace.traces().columns, workspace.runs().columns
    run = replay(long_trace(4), "base", workspace)
    traces, runs = workspace.traces(), workspace.runs()
    assert (traces.columns, runs.columns) == columns
    assert traces.to_dicts() == workspace.trace_rows()
    assert {name: runs.row(0, named=True)[name] for name in ("run_id", "policy", "status", "turns", "total")} == {
        "run_id": run.run_id, "policy": "base", "status": "done", "turns": 4, "total": run.totals["total"]
    }  # fmt: skip
    assert not {"body", "head"} & {*traces.columns, *runs.columns}


def test_labels_are_read_without_the_rest_of_their_traces(workspace: Workspace) -> None:
    assert workspace.labels() == {}
    given = {name: (Label(2, "recall", steps=(0,)), Label(3, "compression", False)) for name in ("t-a", "t-b")}
    traces = [replace(long_trace(5, trace_id=name), labels=given.get(name, ())) for name in ("t-a", "t-b", "t-none")]
    workspace.add_traces(traces, estimated())
    assert workspace.labels() == given == {name: workspace.trace(name).trace.labels for name in given}
    assert workspace.labels(["t-b", "t-none", "t-elsewhere"]) == {"t-b": given["t-b"]}
