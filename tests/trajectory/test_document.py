"""Bad input gets one sentence that names the file and the place; good neighbours are still read."""

import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import polars
import pytest

from pamer_lab.config import ReadLimits
from pamer_lab.trajectory import read_all, read_bytes
from pamer_lab.trajectory.draft import NO_ASSISTANT, NO_MESSAGES
from pamer_lab.trajectory.json_values import CUT_OFF, NOT_JSON, NOT_UTF8, TOO_DEEP
from pamer_lab.trajectory.parsing import BINARY, EMPTY, ON_ONE_LINE, UTF_16
from pamer_lab.trajectory.reading import LISTED, NO_TRACES
from pamer_lab.trajectory.unpacking import TOO_LARGE, mb

CHAT = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
GOOD = json.dumps(CHAT).encode()

BAD = {
    "empty": (b"", EMPTY),
    "only white space": (b" \n\n ", EMPTY),
    "cut in a string": (GOOD[:40], CUT_OFF),
    "cut in a list": (GOOD[:-1], CUT_OFF),
    "notes": (b"# Shed\n\nAbout rakes.\n", NOT_JSON),
    "a log that begins with a number": (b"2026-01-02 10:00 started\n2026-01-02 10:01 ended\n", NOT_JSON),
    "utf-16": (GOOD.decode().encode("utf-16"), UTF_16),
    "latin-1": ('[{"role": "user", "content": "caf\xe9"}]'.encode("latin-1"), NOT_UTF8),
    "nested 10,000 deep": (b"[" * 10_000 + b"]" * 10_000, TOO_DEEP),
    "nested 10,000 deep in an object": (b'{"messages": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, TOO_DEEP),
    "NaN as text": (b'{"messages": [{"role": "user", "content": NaN}]}', "nan"),
    "duplicate keys": (b'{"messages": [], "messages": []}', "'messages'"),
    "no messages": (b'{"messages": []}', NO_MESSAGES),
    "no assistant": (b'[{"role": "user", "content": "x"}]', NO_ASSISTANT),
    "not a trace": (b'{"hello": "world"}', LISTED),
    "a number": (b"42", NO_MESSAGES),
    "a null": (b"null", NO_MESSAGES),
    "binary": (bytes(range(256)) * 4, BINARY),
    "cut gzip": (gzip.compress(GOOD * 100)[:-12], "gzip"),
    "damaged gzip": (gzip.compress(GOOD)[:12] + b"\xff" * 30, "gzip"),
    "parquet": (b"PAR1" + b"\0" * 40 + b"PAR1", "Parquet"),
    "empty zip": (b"PK\x03\x04" + b"\0" * 40, "zip"),
    "result without a call": (json.dumps([*CHAT, {"role": "tool", "tool_call_id": "x", "content": "r"}]).encode(), "'x'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence(name: str) -> None:
    data, reason = BAD[name]
    reading = read_bytes(data, "file.json")
    assert not reading.traces
    (rejection,) = reading.rejected
    assert reason in rejection.reason
    assert rejection.sentence.startswith("file.json") and "\n" not in rejection.sentence


def test_a_fault_in_a_line_is_placed_in_that_line() -> None:
    data = json.dumps({"messages": CHAT}).encode() + b'\n{"messages": [{"role": '
    (rejection,) = read_bytes(data, "f.jsonl").rejected
    assert rejection.where.startswith("line 2")


def test_a_duplicate_key_is_placed_in_its_line() -> None:
    data = b'[\n {"role": "user", "content": "a"},\n {"role": "assistant",\n  "role": "user", "content": "b"}]'
    (rejection,) = read_bytes(data, "f.json").rejected
    assert "'role'" in rejection.reason and rejection.where == "line 4"


def test_text_that_only_looks_like_a_duplicate_key_is_read() -> None:
    chat = [{"role": "user", "content": '": "x": {"a":1,"a":2} \\'}, {"role": "assistant", "content": ": "}]
    reading = read_bytes(json.dumps(chat).encode(), "f.json")
    assert [message.content for message in reading.traces[0].messages] == [item["content"] for item in chat]


def test_nan_outside_messages_is_a_missing_value_with_a_warning() -> None:
    (trace,) = read_bytes(b'{"messages": ' + GOOD + b', "reward": NaN}', "f.json").traces
    assert trace.reward is None
    assert any("NaN" in warning.text for warning in trace.warnings)


def test_half_a_surrogate_pair_becomes_a_replacement_character_with_a_warning() -> None:
    data = rb'[{"role": "user", "content": "a\ud83d b \ud83d\ude00 \\ud83d"}, {"role": "assistant", "content": "x"}]'
    (trace,) = read_bytes(data, "f.json").traces
    assert trace.messages[0].content == "a\ufffd b \U0001f600 \\ud83d"
    assert any("surrogate" in warning.text for warning in trace.warnings)


@pytest.mark.parametrize(("kind", "write"), [("Parquet", "write_parquet"), ("Feather", "write_ipc"), ("CSV", "write_csv")])
def test_a_table_is_refused_with_the_call_that_makes_it_readable(tmp_path: Path, kind: str, write: str) -> None:
    messages = json.dumps(CHAT) if kind == "CSV" else CHAT
    getattr(polars.DataFrame({"messages": [messages], "task_id": ["a"], "model": ["m"]}), write)(tmp_path / "table")
    (rejection,) = read_all([tmp_path / "table"]).rejected
    (read,) = re.findall(r"`polars\.(\w+)\(FILE\)\.write_ndjson\(NEW\)`", rejection.reason)
    getattr(polars, read)(tmp_path / "table").write_ndjson(tmp_path / "new.jsonl")
    (trace,) = read_all([tmp_path / "new.jsonl"]).traces
    assert kind in rejection.reason and [message.content for message in trace.messages] == ["hello", "hi"]


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    big = tmp_path / "big.json"
    with big.open("wb") as stream:
        stream.truncate(300_000_000)
    (rejection,) = read_all([big]).rejected
    assert mb(300_000_000) in rejection.reason and mb(ReadLimits().max_bytes) in rejection.reason


def test_a_gzip_bomb_is_refused() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    (rejection,) = read_bytes(bomb, "bomb.gz", ReadLimits(max_bytes=1_000_000)).rejected
    assert TOO_LARGE in rejection.reason


def test_a_zip_bomb_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", b" " * 5_000_000)
    (rejection,) = read_bytes(buffer.getvalue(), "bomb.eval", ReadLimits(max_bytes=1_000_000)).rejected
    assert TOO_LARGE in rejection.reason


def test_gzip_byte_order_mark_and_line_endings_do_not_matter() -> None:
    plain = read_bytes(GOOD, "a.json").traces[0]
    packed = read_bytes(gzip.compress(GOOD), "b.json.gz").traces[0]
    assert packed.trace_id == plain.trace_id and packed.messages == plain.messages
    assert read_bytes(b"\xef\xbb\xbf" + GOOD, "c.json").traces[0].messages == plain.messages
    lines = b"\r\n".join(json.dumps({"messages": CHAT}).encode() for _ in range(3)) + b"\r\n\r\n"
    assert len(read_bytes(lines, "d.jsonl").traces) == 3


def test_two_objects_on_one_line_are_both_read_and_noted() -> None:
    one = json.dumps({"messages": CHAT}).encode()
    reading = read_bytes(one + b"\n" + one + one + b"\n", "f.jsonl")
    assert len(reading.traces) == 3
    assert any(warning.text == f"2 {ON_ONE_LINE}" for warning in reading.traces[0].warnings)


def test_bad_files_do_not_stop_the_good_ones(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(GOOD)
    (tmp_path / "b.json").write_bytes(GOOD[:-3])
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.json").write_bytes(GOOD)
    reading = read_all([tmp_path, tmp_path / "missing.json"])
    assert len(reading.traces) == 2
    assert [Path(rejection.path).name for rejection in reading.rejected] == ["b.json", "missing.json"]


def test_a_folder_without_traces_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (rejection,) = read_all([tmp_path]).rejected
    assert NO_TRACES in rejection.reason


def test_an_unreadable_file_is_a_sentence(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    reading = read_all([loop])
    assert len(reading.rejected) == 1 and not reading.traces
