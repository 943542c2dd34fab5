"""Labels: which tool names count as memory operations, and side files."""

import json
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.cli import main
from pamer_lab.errors import InputError
from pamer_lab.trajectory import Label, Message, Rejection, ToolCall, iter_traces, read_traces
from pamer_lab.trajectory.labels import SideLabels, is_compression, is_recall, missing_labels, operation_labels
from pamer_lab.workspace import Workspace

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "traces"


@pytest.mark.parametrize(
    "name",
    ["manage_context", "compress_context", "compactConversation", "summarize_history", "ContextCompress", "compact", "prune_messages"],
)
def test_tools_that_shrink_the_context_mark_compression(name: str) -> None:
    assert is_compression(name) and not is_recall(name)


@pytest.mark.parametrize(
    "name",
    ["query_memory", "recall_memory", "search_memory", "archival_memory_search", "retrieve_memories", "MemorySearch", "recall_context"],
)
def test_tools_that_ask_the_memory_mark_recall(name: str) -> None:
    assert is_recall(name) and not is_compression(name)


@pytest.mark.parametrize(
    "name", ["search", "get_document", "summarize_text", "read_memory", "get_context", "search_messages", "trim", "bash", ""]
)
def test_other_tools_mark_nothing(name: str) -> None:
    assert not is_compression(name) and not is_recall(name)


def test_a_turn_is_marked_once_per_target_at_its_own_decision_point() -> None:
    twice = Message("assistant", tool_calls=(ToolCall("a", "query_memory"), ToolCall("b", "query_memory"), ToolCall("c", "manage_context")))
    labels = operation_labels([Message("user", "x"), Message("assistant", "hm"), twice])
    assert [(label.t, label.target, label.origin) for label in labels] == [
        (1, "recall", "memory-operation"),
        (1, "compression", "memory-operation"),
    ]


def test_recorded_operations_become_labels_and_events_with_recorded_tokens() -> None:
    (trace,) = read_traces(FIXTURES / "acm_run.json")
    assert [(label.t, label.target) for label in trace.labels] == [(1, "compression"), (2, "recall")]
    compaction, recall = trace.events
    assert (compaction.kind, compaction.tokens_before, compaction.tokens_after) == ("compaction", 300, 120)
    assert trace.messages[compaction.before_message - 1].tool_calls[0].name == "manage_context"
    assert (recall.kind, recall.text) == ("memory_read", "who founded")


def test_a_target_that_the_source_labelled_itself_is_not_labelled_again() -> None:
    asks = Message("assistant", tool_calls=(ToolCall("a", "query_memory"), ToolCall("b", "manage_context")))
    own = [Label(0, "recall", value=False)]
    assert [label.target for label in missing_labels(own, [asks])] == ["compression"]


def _side(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"pamer_lab_labels": 1, "traces": entries}))
    return path


def test_a_side_file_gives_labels_by_question_and_by_number(tmp_path: Path) -> None:
    side = SideLabels(
        _side(
            tmp_path / "x.labels.json",
            {"question_id": "3", "labels": [{"t": 1, "target": "recall", "steps": [0], "origin": "me"}]},
            {"index": 1, "file": "tau_bench.json", "labels": [{"t": 0, "target": "compression", "value": False}]},
            {"index": 1, "file": "other.json", "labels": []},
        )
    )
    first, second = (side.apply(trace) for trace in read_traces(FIXTURES / "tau_bench.json"))
    assert [(label.t, label.target, label.steps, label.origin) for label in first.labels] == [(1, "recall", (0,), "side-file")]
    assert [(label.t, label.value) for label in second.labels] == [(0, False)]
    assert side.unused == {2}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"labels": []}, "exactly one"),
        ({"index": 0, "question_id": "3", "labels": []}, "exactly one"),
        ({"index": 0, "labels": [{"t": 9, "target": "recall"}]}, "labels point 9"),
        ({"index": 0, "labels": [{"t": 1, "target": "recall", "steps": [1]}]}, "labels point 1"),
        ({"index": 0, "labels": [{"t": 0, "target": "sleep"}]}, "not a label file"),
        ({"index": 0, "label": []}, "not a label file"),
    ],
)
def test_a_faulty_side_file_is_refused_with_its_place(tmp_path: Path, entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        side = SideLabels(_side(tmp_path / "bad.labels.json", entry))
        side.apply(read_traces(FIXTURES / "tau_bench.json")[0])


def test_the_import_command_takes_a_side_file_and_names_entries_without_a_trace(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [{"t": 1, "target": "compression"}]
    side = _side(tmp_path / "t.labels.json", {"question_id": "3", "labels": labels}, {"question_id": "none", "labels": labels})
    code = main(["import", str(FIXTURES / "tau_bench.json"), "--labels", str(side), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 2 and result["rejected"][0]["where"] == "traces[1]"
    assert [row["labels"] for row in result["traces"]] == [1, 0]
    stored = workspace.trace(result["traces"][0]["trace_id"]).trace
    assert stored.labels[0].origin == "side-file"


def test_a_folder_import_passes_over_side_files(tmp_path: Path) -> None:
    _side(tmp_path / "a.labels.json")
    (tmp_path / "a.json").write_bytes((FIXTURES / "tau_bench.json").read_bytes())
    assert not [item for item in iter_traces([tmp_path]) if isinstance(item, Rejection)]
