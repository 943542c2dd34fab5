"""Sessions of coding agents on this computer: found, listed, scanned and imported; nothing outside their folders is read."""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.errors import InputError
from pamer_lab.reviewer_mode import READONLY_VARIABLE, ReviewerModeError
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.sessions import TOOLS, choose, find_sessions, import_sessions, tool_folders

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "traces"
PLACES = {
    "claude-code": (".claude/projects/-shed/1.jsonl", "claude-code.jsonl"),
    "codex": (".codex/sessions/2026/01/01/rollout-1.jsonl", "codex-rollout-envelope.jsonl"),
    "gemini": (".gemini/tmp/hash/chats/session-1.jsonl", "gemini-recording.jsonl"),
    "copilot": (".copilot/session-state/s/events.jsonl", "copilot-events.jsonl"),
    "cursor": (".cursor/projects/shed/agent-transcripts/s/s.jsonl", "cursor-transcript.jsonl"),
    "qwen": (".qwen/projects/-shed/chats/s.jsonl", "qwen-code.jsonl"),
    "goose": (".local/share/goose/sessions/s.jsonl", "goose-session.jsonl"),
}
"""Tool -> where a session of it is below the home folder, and a sample."""
KEY = "sk-ant-" + "Zq8RkT2vWm5XyB7nLc3Jd0Hs"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, without variables that name other folders."""
    for tool in TOOLS.values():
        for folder in tool.folders:
            if folder.startswith("$"):
                monkeypatch.delenv(folder[1:].partition("/")[0], raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def put(home: Path, tool: str) -> Path:
    place, sample = PLACES[tool]
    path = home / place
    path.parent.mkdir(parents=True)
    shutil.copy(FIXTURES / sample, path)
    return path


@pytest.mark.parametrize("tool", PLACES)
def test_a_tools_session_is_found_with_its_turns_and_first_words(home: Path, tool: str) -> None:
    path = put(home, tool)
    found = find_sessions(tool)
    (session,) = found.sessions
    assert (session.path, session.bytes, found.left, session.fault) == (str(path), path.stat().st_size, 0, "")
    assert session.turns >= 2 and session.first


@pytest.mark.parametrize("folder", [".config", "Library/Application Support"])
def test_chats_of_windows_without_a_folder_and_cursors_store_are_found(home: Path, folder: str) -> None:
    chat = home / folder / "Code/User/globalStorage/emptyWindowChatSessions/0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f.json"
    chat.parent.mkdir(parents=True)
    shutil.copy(FIXTURES / "copilot-session.json", chat)
    (chat.parent / "settings.json").write_text("{}")
    assert [session.path for session in find_sessions("copilot").sessions] == [str(chat)]
    store = home / folder / "Cursor/User/globalStorage/state.vscdb"
    store.parent.mkdir(parents=True)
    composer = {"composerId": "c", "fullConversationHeadersOnly": [{"bubbleId": "1"}, {"bubbleId": "2"}]}
    rows = {"composerData:c": composer, "bubbleId:c:1": {"type": 1, "text": "count the rakes"}, "bubbleId:c:2": {"type": 2, "text": "Two."}}
    with sqlite3.connect(store) as database:
        database.execute("CREATE TABLE cursorDiskKV (key TEXT, value TEXT)")
        database.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", [(key, json.dumps(value)) for key, value in rows.items()])
        database.execute("INSERT INTO cursorDiskKV VALUES ('composerData:gone', NULL)")
    (session,) = find_sessions("cursor").sessions
    assert (session.turns, session.first, session.format) == (1, "count the rakes", "cursor-store")


def test_the_files_of_opencode_are_put_together(home: Path) -> None:
    storage = home / ".local/share/opencode/storage"
    files = {
        "session/p/ses_1.json": {"id": "ses_1", "title": "rakes"},
        "message/ses_1/msg_1.json": {"id": "msg_1", "role": "user", "sessionID": "ses_1"},
        "message/ses_1/msg_2.json": {"id": "msg_2", "role": "assistant", "sessionID": "ses_1"},
        "part/msg_1/prt_1.json": {"type": "text", "text": "count the rakes"},
        "part/msg_2/prt_2.json": {"type": "text", "text": "Two."},
    }
    for name, value in files.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_text(json.dumps(value))
    (session,) = find_sessions("opencode").sessions
    assert (session.turns, session.first, session.format) == (1, "count the rakes", "opencode-events")


def test_the_newest_come_first_and_the_rest_are_counted(home: Path) -> None:
    first = put(home, "claude-code")
    for number in (2, 3):
        other = first.with_name(f"{number}.jsonl")
        other.write_bytes(first.read_bytes() + b"\n" * number)
        os.utime(other, (number, number))
    found = find_sessions("claude-code", most=2)
    assert [Path(session.path).name for session in found.sessions] == ["1.jsonl", "3.jsonl"]
    assert found.left == 1


def test_no_link_leads_out_of_a_tools_folder(home: Path, tmp_path: Path) -> None:
    path = put(home, "claude-code")
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(path, outside / "secret.jsonl")
    (path.parent / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (path.parent / "folder").symlink_to(outside)
    assert [session.path for session in find_sessions("claude-code").sessions] == [str(path)]
    (session,) = find_sessions("claude-code").sessions
    path.unlink()
    path.symlink_to(outside / "secret.jsonl")  # exchanged between the list and the import
    result, _ = import_sessions([session], Workspace(tmp_path / "ws"))
    assert not result.traces and "outside" in result.rejected[0].reason


def test_a_folder_that_may_not_be_read_is_not_looked_through(home: Path, tmp_path: Path) -> None:
    put(home, "claude-code")
    assert tool_folders("claude-code", [tmp_path / "elsewhere"]) == []
    assert tool_folders("claude-code", [home]) == [home / ".claude/projects"]
    assert not find_sessions("claude-code", allowed=[tmp_path / "elsewhere"]).sessions


@pytest.mark.parametrize(("words", "numbers"), [("all", [0, 1, 2]), ("2", [1]), ("3,1-2", [0, 1, 2])])
def test_sessions_are_chosen_by_number_or_all(home: Path, words: str, numbers: list[int]) -> None:
    first = put(home, "claude-code")
    for number in (2, 3):
        first.with_name(f"{number}.jsonl").write_bytes(first.read_bytes() + b"\n" * number)
    found = find_sessions("claude-code").sessions
    assert choose(found, words) == [found[number] for number in numbers]
    assert choose(found, found[1].trace_id) == [found[1]]
    for wrong in ("0", "4", "2-9", "x", "-1", ""):
        with pytest.raises(InputError):
            choose(found, wrong)


def test_secrets_are_replaced_before_a_session_is_stored(home: Path, tmp_path: Path) -> None:
    path = put(home, "goose")
    path.write_text(path.read_text().replace("count the rakes", f"use {KEY}"))
    workspace = Workspace(tmp_path / "ws")
    sessions = find_sessions("goose").sessions
    _, scan = import_sessions(sessions, workspace, store=False)
    assert [finding.kind for finding in scan.findings] == ["API key"] and not workspace.trace_rows()
    result, _ = import_sessions(sessions, workspace)
    stored = workspace.trace(result.traces[0]["trace_id"]).trace
    assert stored.trace_id == sessions[0].trace_id
    assert stored.messages[0].content == "use [redacted: API key 1]"
    assert KEY not in str(stored)


def test_reviewer_mode_reads_no_session(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home, "goose")
    sessions = find_sessions("goose").sessions
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    with pytest.raises(ReviewerModeError):
        import_sessions(sessions, Workspace(tmp_path / "ws"))


def test_the_command_lists_then_imports_what_was_chosen(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, "qwen")
    words = ["import", "--from", "qwen", "--json", "--workspace", str(tmp_path / "ws")]
    assert main(words) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["number"], row["turns"], row["first"]) for row in listed["sessions"]] == [(1, 2, "count the rakes")]
    assert listed["traces"] == [] and listed["folders"] == [str(home / ".qwen/projects")]
    assert main([*words, "--choose", "1", "--scan"]) == 0
    assert json.loads(capsys.readouterr().out)["traces"] == []
    assert main([*words, "--choose", "1"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [row["trace_id"] for row in done["traces"]] == [listed["sessions"][0]["trace_id"]]
    assert done["found"] == []


@pytest.mark.parametrize(
    "words",
    [[], ["--from", "qwen", "x.json"], ["--choose", "1", "x.json"], ["--from", "qwen", "--scan"], ["--from", "qwen", "--choose", "9"]],
)
def test_options_that_do_not_belong_together_are_refused(home: Path, tmp_path: Path, words: list[str]) -> None:
    assert main(["import", *words, "--workspace", str(tmp_path / "ws")]) == 2
