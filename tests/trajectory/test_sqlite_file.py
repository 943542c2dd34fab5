"""Session databases are read from a copy, within the limits; a hostile or damaged one gets a sentence."""

import json
import random
import sqlite3
from pathlib import Path

import pytest

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.trajectory import read_all, read_bytes
from pamer_lab.trajectory.sqlite_file import read_tables
from tests.trajectory.formats.told import counts, only


def _database(path: Path, *statements: str, wal: bool = False) -> bytes:
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path.read_bytes()


def _values(*values: object) -> str:
    return ", ".join("NULL" if value is None else "'" + str(value).replace("'", "''") + "'" for value in values)


def _opencode(path: Path, *, wal: bool = False) -> bytes:
    parts = [
        ("p0", "m0", {"type": "text", "text": "count the rakes"}),
        ("p1", "m1", {"type": "tool", "tool": "ls", "callID": "a", "state": {"status": "completed", "input": {}, "output": "two"}}),
        ("p2", "m2", {"type": "text", "text": "Two."}),
    ]
    return _database(
        path,
        "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, directory TEXT, version TEXT)",
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
        f"INSERT INTO session VALUES ({_values('s', None, 'rakes', '/shed', '1')})",
        *(
            f"INSERT INTO message VALUES ({_values(f'm{number}', 's', number, json.dumps({'role': role}))})"
            for number, role in enumerate(("user", "assistant", "assistant"))
        ),
        *(f"INSERT INTO part VALUES ({_values(own, above, 's', 1, json.dumps(data))})" for own, above, data in parts),
        wal=wal,
    )


def test_the_database_of_opencode_gives_its_sessions(tmp_path: Path) -> None:
    _opencode(tmp_path / "opencode.db")
    trace = only(read_all([tmp_path / "opencode.db"]).traces)
    assert (trace.format, counts(trace), trace.meta["title"]) == ("opencode-events", (2, 1, 1), "rakes")
    assert [message.content for message in trace.messages] == ["count the rakes", "", "two", "Two."]


def test_a_database_in_wal_mode_is_read_as_far_as_it_was_written_and_says_so(tmp_path: Path) -> None:
    trace = only(read_bytes(_opencode(tmp_path / "opencode.db", wal=True), "opencode.db").traces)
    assert counts(trace) == (2, 1, 1)
    assert any("-wal" in warning.text for warning in trace.warnings)
    assert [path.name for path in tmp_path.iterdir()] == ["opencode.db"], "nothing was written beside it"


def test_the_database_of_goose_gives_a_trace_per_session(tmp_path: Path) -> None:
    said = [
        ("one", "user", [{"type": "text", "text": "count"}]),
        ("one", "assistant", [{"type": "text", "text": "Two."}]),
        ("two", "user", [{"type": "text", "text": "again"}]),
        ("two", "assistant", [{"type": "text", "text": "Still two."}]),
    ]
    data = _database(
        tmp_path / "sessions.db",
        "CREATE TABLE sessions (id TEXT, name TEXT, working_dir TEXT, accumulated_input_tokens INTEGER)",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, metadata_json TEXT)",
        "INSERT INTO sessions VALUES ('one', 'rakes', '/shed', 40), ('two', 'more', '/shed', NULL)",
        *(
            f"INSERT INTO messages (session_id, role, content_json) VALUES ({_values(session, role, json.dumps(parts))})"
            for session, role, parts in said
        ),
    )
    traces = read_bytes(data, "sessions.db").traces
    assert [(trace.format, trace.meta["session"], trace.messages[-1].content) for trace in traces] == [
        ("goose-session", "one", "Two."),
        ("goose-session", "two", "Still two."),
    ]
    assert traces[0].usage is not None and traces[0].usage.input_tokens == 40


def test_a_database_that_no_format_knows_is_refused_with_its_tables(tmp_path: Path) -> None:
    data = _database(tmp_path / "x.db", "CREATE TABLE birds (name TEXT)", "INSERT INTO birds VALUES ('wren')")
    assert "birds" in read_bytes(data, "x.db").rejected[0].reason


def test_views_functions_and_virtual_tables_of_a_file_never_run(tmp_path: Path) -> None:
    data = _database(
        tmp_path / "x.db",
        "CREATE TABLE plain (a TEXT)",
        "INSERT INTO plain VALUES ('kept')",
        "CREATE VIEW bomb AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TABLE computed (a TEXT, b TEXT GENERATED ALWAYS AS (upper(a)) VIRTUAL)",
        "INSERT INTO computed (a) VALUES ('x')",
        "CREATE VIRTUAL TABLE words USING fts5(body)",
    )
    tables = read_tables(data, ReadLimits())
    assert tables["plain"] == [{"a": "kept"}]
    assert not {"bomb", "words", "computed"} & tables.keys()


def test_triggers_and_endless_views_in_a_session_store_do_not_run(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    _opencode(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS data FROM n"
    data = _database(
        path,
        "CREATE TRIGGER gone AFTER INSERT ON message BEGIN DELETE FROM part; END",
        f"CREATE VIEW messages AS {endless}",
        "CREATE VIEW ring AS SELECT * FROM other",
        "CREATE VIEW other AS SELECT * FROM ring",
        "CREATE INDEX bomb ON part (upper(data))",
    )
    assert counts(only(read_bytes(data, path.name).traces)) == (2, 1, 1)
    hidden = _database(tmp_path / "view.db", f"CREATE VIEW message AS {endless}", f"CREATE VIEW session AS {endless}")
    assert not read_bytes(hidden, "view.db").traces and read_bytes(hidden, "view.db").rejected[0].reason


def test_a_foreign_wal_file_beside_a_store_is_not_mixed_in(tmp_path: Path) -> None:
    theirs = sqlite3.connect(tmp_path / "theirs.db")
    theirs.execute("PRAGMA journal_mode = WAL")
    theirs.execute("CREATE TABLE planted (a TEXT)")
    theirs.commit()
    foreign = (tmp_path / "theirs.db-wal").read_bytes()
    theirs.close()
    assert foreign
    folder = tmp_path / "own"
    folder.mkdir()
    before = _opencode(folder / "opencode.db", wal=True)
    for planted in (foreign, foreign[:40], b"\0" * 5_000):
        (folder / "opencode.db-wal").write_bytes(planted)
        assert counts(only(read_all([folder / "opencode.db"]).traces)) == (2, 1, 1)
        assert (folder / "opencode.db").read_bytes() == before and (folder / "opencode.db-wal").read_bytes() == planted


def test_what_a_running_program_has_only_in_its_log_is_read(tmp_path: Path) -> None:
    _opencode(tmp_path / "opencode.db", wal=True)
    running = sqlite3.connect(tmp_path / "opencode.db")
    body = {"type": "text", "text": "And a spade."}
    running.execute("INSERT INTO message VALUES ('m3', 's', 9, ?)", (json.dumps({"role": "assistant"}),))
    running.execute("INSERT INTO part VALUES ('p3', 'm3', 's', 1, ?)", (json.dumps(body),))
    running.commit()
    running.execute("INSERT INTO part VALUES ('p4', 'm3', 's', 1, ?)", (json.dumps({**body, "text": "not committed"}),))
    alone = read_bytes((tmp_path / "opencode.db").read_bytes(), "opencode.db")
    trace = only(read_all([tmp_path / "opencode.db"]).traces)
    running.close()
    assert counts(only(alone.traces)) == (2, 1, 1) and "-wal" in str(alone.traces[0].warnings)
    assert counts(trace) == (3, 1, 1) and trace.messages[-1].content == "And a spade." and not trace.warnings


def test_a_page_that_points_to_itself_ends(tmp_path: Path) -> None:
    data = bytearray(_opencode(tmp_path / "opencode.db"))
    size = int.from_bytes(data[16:18], "big")
    for start in range(size, len(data), size):
        data[start : start + 12] = bytes([5, 0, 0, 0, 0, 0, 0, 0]) + (start // size + 1).to_bytes(4, "big")
    reading = read_bytes(bytes(data), "ring.db")
    assert not reading.traces and reading.rejected[0].reason


def test_more_rows_than_the_limit_are_refused(tmp_path: Path) -> None:
    data = _database(tmp_path / "x.db", "CREATE TABLE t (a TEXT)", *("INSERT INTO t VALUES ('xxxxxxxxxx')" for _ in range(50)))
    assert read_tables(data, ReadLimits())
    with pytest.raises(InputError):
        read_tables(data, ReadLimits(max_bytes=400))


def test_damaged_files_get_a_sentence(tmp_path: Path) -> None:
    data = _opencode(tmp_path / "opencode.db")
    rng = random.Random(1)
    outcomes = set()
    for number in range(300):
        mutant = bytearray(data if number % 3 else data[: rng.randrange(16, len(data))])
        for _ in range(rng.randrange(1, 30)):
            mutant[rng.randrange(16, len(mutant))] = rng.randrange(256)
        reading = read_bytes(bytes(mutant), "mutant.db")
        outcomes.add(bool(reading.traces))
        assert reading.traces or reading.rejected
    assert outcomes == {True, False}


def _chat(path: Path, columns: str, *rows: tuple[object, ...]) -> bytes:
    return _database(
        path,
        f"CREATE TABLE messages ({columns})",
        *(f"INSERT INTO messages VALUES ({_values(*row)})" for row in rows),
    )


def test_rows_with_a_role_are_messages_of_their_session(tmp_path: Path) -> None:
    call = json.dumps([{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}])
    data = _chat(
        tmp_path / "state.db",
        "session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, reasoning TEXT, active INTEGER",
        ("s", "user", "count", None, None, None, None, 1),
        ("s", "assistant", "", None, call, None, "hm", 1),
        ("s", "tool", "two", "a", None, "ls", None, 1),
        ("s", "assistant", "Two.", None, None, None, None, 1),
        ("s", "assistant", "rewound", None, None, None, None, 0),
    )
    trace = only(read_bytes(data, "state.db").traces)
    assert (trace.format, counts(trace), trace.messages[1].thinking) == ("sqlite-chat", (2, 1, 1), "hm")
    assert [warning.kind for warning in trace.warnings] == ["unread"]


def test_items_of_the_responses_api_in_rows_make_turns_together(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "count"},
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "two"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
    ]
    data = _chat(tmp_path / "agents.db", "session_id TEXT, message_data TEXT", *(("s", json.dumps(item)) for item in items))
    trace = only(read_bytes(data, "agents.db").traces)
    assert (trace.format, counts(trace), trace.warnings) == ("sqlite-chat", (2, 1, 1), ())
    assert [message.content for message in trace.messages] == ["count", "", "two", "Two."]


def test_the_parts_of_crush_are_read_from_under_their_data(tmp_path: Path) -> None:
    def parts(*items: tuple[str, dict[str, object]]) -> str:
        return json.dumps([{"type": kind, "data": data} for kind, data in items])

    asked = ("tool_call", {"id": "a", "name": "ls", "input": "{}", "finished": True})
    data = _chat(
        tmp_path / "crush.db",
        "session_id TEXT, role TEXT, parts TEXT, model TEXT",
        ("s", "user", parts(("text", {"text": "count"})), None),
        ("s", "assistant", parts(("reasoning", {"thinking": "hm"}), asked, ("finish", {"reason": "tool_use"})), "m1"),
        ("s", "tool", parts(("tool_result", {"tool_call_id": "a", "name": "ls", "content": "two", "is_error": False})), None),
        ("s", "assistant", parts(("text", {"text": "Two."}), ("finish", {"reason": "end"})), "m1"),
    )
    trace = only(read_bytes(data, "crush.db").traces)
    assert (trace.model, counts(trace)) == ("m1", (2, 1, 1))
    assert [message.content for message in trace.messages] == ["count", "", "two", "Two."] and not trace.warnings


def test_prompts_with_their_responses_are_conversations(tmp_path: Path) -> None:
    data = _database(
        tmp_path / "logs.db",
        "CREATE TABLE responses (id TEXT, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT, input_tokens INTEGER)",
        "INSERT INTO responses VALUES ('1', 'm', 'a?', 'Be brief.', 'A.', 'c', 9), ('2', 'm', 'b?', NULL, 'B.', 'c', 12)",
    )
    trace = only(read_bytes(data, "logs.db").traces)
    assert [message.role for message in trace.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert [turn.usage.input_tokens for turn in trace.messages if turn.usage] == [9, 12]


def test_cursors_store_gives_a_trace_per_conversation(tmp_path: Path) -> None:
    tool = {"toolCallId": "a", "name": "ls", "rawArgs": '{"p": "."}', "result": "two", "status": "completed"}
    bubbles = {
        "b1": {"type": 1, "text": "count"},
        "b2": {"type": 2, "text": "I look."},
        "b3": {"type": 2, "text": "", "toolFormerData": tool},
    }
    bubbles |= {"b4": {"type": 2, "text": "Two.", "thinking": {"text": "hm"}}}
    heads = [{"bubbleId": name, "type": bubble["type"]} for name, bubble in bubbles.items()]
    values = {"composerData:c": {"composerId": "c", "name": "rakes", "fullConversationHeadersOnly": heads}, "composerData:empty": {}}
    values |= {f"bubbleId:c:{name}": bubble for name, bubble in bubbles.items()}
    data = _database(
        tmp_path / "state.vscdb",
        "CREATE TABLE cursorDiskKV (key TEXT, value BLOB)",
        *(f"INSERT INTO cursorDiskKV VALUES ({_values(key, json.dumps(value))})" for key, value in values.items()),
    )
    trace = only(read_bytes(data, "state.vscdb").traces)
    assert (trace.format, counts(trace), trace.meta["title"]) == ("cursor-store", (2, 1, 1), "rakes")
    assert [message.content for message in trace.messages] == ["count", "I look.", "two", "Two."]
