"""Conversations that a program keeps as many small files, and cassettes in a folder."""

from pathlib import Path
from typing import Any

import orjson

from pamer_lab.trajectory import Trace, read_all, read_files
from tests.trajectory.formats.told import counts

MESSAGES = [
    {"role": "user", "content": [{"text": "Add."}]},
    {"role": "assistant", "content": [{"text": "I add."}, {"toolUse": {"toolUseId": "s1", "name": "add", "input": {"a": 1}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "s1", "status": "success", "content": [{"text": "2"}]}}]},
    *[{"role": "assistant", "content": [{"text": f"answer {number}"}]} for number in range(9)],
]


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(value))


def strands(folder: Path) -> None:
    write(folder / "session.json", {"session_id": "a", "session_type": "AGENT"})
    write(folder / "agents" / "agent_a" / "agent.json", {"agent_id": "a", "state": {}})
    for number, message in enumerate(MESSAGES):
        write(folder / "agents" / "agent_a" / "messages" / f"message_{number}.json", {"message": message, "message_id": number})


def storage(folder: Path) -> None:
    """Two sessions, the second one a side agent of the first."""
    for key, parent in (("ses_1", None), ("ses_2", "ses_1")):
        write(folder / "session" / "project" / f"{key}.json", {"id": key, "title": f"title of {key}", "parentID": parent})
        write(folder / "message" / key / f"msg_1{key}.json", {"sessionID": key, "role": "user"})
        write(folder / "message" / key / f"msg_2{key}.json", {"sessionID": key, "role": "assistant", "modelID": "m1"})
        write(folder / "part" / f"msg_1{key}" / "prt_1.json", {"type": "text", "text": f"prompt of {key}"})
        state = {"status": "completed", "input": {"path": "a"}, "output": "text of a"}
        write(folder / "part" / f"msg_2{key}" / "prt_1.json", {"type": "tool", "tool": "read", "callID": "c1", "state": state})
        write(folder / "part" / f"msg_2{key}" / "prt_2.json", {"type": "text", "text": f"answer of {key}"})


def test_the_message_files_of_a_strands_session_are_one_trace_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    strands(tmp_path / "session_a")
    reading = read_all([tmp_path])
    assert reading.rejected == []
    assert [counts(trace) for trace in reading.traces] == [(10, 1, 1)]
    assert [message.content for message in reading.traces[0].messages if message.role == "assistant"][-1] == "answer 8"


def test_opencodes_folder_of_small_files_is_one_trace_per_session_with_its_side_agents(tmp_path: Path) -> None:
    storage(tmp_path / "storage")
    reading = read_all([tmp_path])
    assert reading.rejected == []
    assert [(trace.format, counts(trace), trace.model) for trace in reading.traces] == [("opencode-events", (1, 1, 1), "m1")]
    [trace] = reading.traces
    assert trace.messages[0].content == "prompt of ses_1"
    assert [event.kind for event in trace.events] == ["subagent"]
    assert "answer of ses_2" in trace.events[0].text
    assert trace.warnings == ()


def test_a_stored_part_without_its_message_is_counted(tmp_path: Path) -> None:
    storage(tmp_path)
    (tmp_path / "message" / "ses_2" / "msg_2ses_2.json").unlink()
    [trace] = read_all([tmp_path]).traces
    assert [(warning.kind, warning.where) for warning in trace.warnings] == [("unread", "part/msg_2ses_2/prt_1")]


def test_no_link_leads_out_of_a_folder_of_pieces(tmp_path: Path) -> None:
    storage(tmp_path / "in")
    write(tmp_path / "secret" / "prt_0.json", {"type": "text", "text": "not ours"})
    (tmp_path / "in" / "part" / "msg_1ses_1" / "prt_0.json").symlink_to(tmp_path / "secret" / "prt_0.json")
    (tmp_path / "in" / "part" / "msg_1ses_0").symlink_to(tmp_path / "secret")
    reading = read_all([tmp_path / "in"])
    assert "not ours" not in str(reading)


def test_files_that_are_only_called_like_pieces_are_read_one_by_one(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    write(tmp_path / "message_1.json", {"messages": chat})
    write(tmp_path / "message_2.json", {"messages": chat})
    assert [counts(trace) for trace in read_all([tmp_path]).traces] == [(1, 0, 0), (1, 0, 0)]


def test_a_folder_import_takes_cassettes_and_passes_over_other_yaml(tmp_path: Path) -> None:
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).decode()
    answer = orjson.dumps({"choices": [{"message": {"role": "assistant", "content": "hello"}}]}).decode()
    lines = ["interactions:", "- request:", f"    body: '{body}'", "    uri: https://example.org/v1/chat/completions", "  response:"]
    (tmp_path / "call.yaml").write_text("\n".join([*lines, "    body:", f"      string: '{answer}'", ""]))
    (tmp_path / "settings.yml").write_text("name: x\n")
    reading = read_all([tmp_path])
    assert reading.rejected == []
    assert [trace.messages[-1].content for trace in reading.traces] == ["hello"]


def uploaded(folder: Path) -> list[Trace]:
    """The traces of a folder that a browser uploads: every file with its path below the folder's parent."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    found = list(read_files((file.relative_to(folder.parent).as_posix(), file.read_bytes()) for file in files))
    traces = [item for item in found if isinstance(item, Trace)]
    assert traces == found
    return traces


def test_uploaded_folders_of_pieces_give_the_traces_of_the_folder_itself(tmp_path: Path) -> None:
    strands(tmp_path / "session_a")
    storage(tmp_path / "storage")
    assert [counts(trace) for trace in uploaded(tmp_path / "session_a")] == [(10, 1, 1)]
    [trace] = uploaded(tmp_path / "storage")
    assert trace.trace_id == read_all([tmp_path / "storage"]).traces[0].trace_id
    assert counts(trace) == (1, 1, 1)


def test_an_uploaded_file_that_only_looks_like_a_piece_is_read_by_itself() -> None:
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}]
    [trace] = read_files([("runs/session/a.json", orjson.dumps(chat))])
    assert isinstance(trace, Trace)
    assert counts(trace) == (1, 0, 0)
