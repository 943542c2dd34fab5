"""Nothing silent: what came out empty or was not read is a warning; a reader that finds nothing lets the next one try."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pamer_lab.errors import FormatError, NotThisFormat
from pamer_lab.trajectory import Trace, read_bytes, reading
from pamer_lab.trajectory.draft import Draft

CHAT = [{"role": "user", "content": "Dig."}, {"role": "assistant", "content": "A bean."}]


def _read(value: Any) -> Trace:
    (trace,) = read_bytes(json.dumps(value).encode(), "log.json").traces
    return trace


def test_empty_turns_empty_results_and_calls_without_arguments_are_counted_at_their_first_place() -> None:
    calls = [{"id": own, "function": {"name": "dig"}} for own in "ab"]
    trace = _read(
        [
            *CHAT,
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": " \n"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "assistant", "content": ""},
        ]
    )
    found = {(item.kind, item.where, item.text.split()[0]) for item in trace.warnings}
    assert found == {("empty", "messages[2]", "2"), ("empty", "messages[3]", "2"), ("empty", "messages[5]", "1")}


def test_a_written_empty_object_of_arguments_is_no_loss() -> None:
    calls = [{"id": "a", "function": {"name": "dig", "arguments": {}}}, {"id": "b", "function": {"name": "dig", "arguments": "{}"}}]
    assert not _read([*CHAT, {"role": "assistant", "content": "", "tool_calls": calls}]).warnings


def test_what_was_not_read_is_one_warning_with_every_type_and_its_count() -> None:
    draft = Draft("diary", where="line 1")
    draft.user("Dig.")
    draft.assistant("A bean.")
    for number, kind in enumerate(["hook", "mood", "hook"]):
        draft.unread(kind, f"line {number + 2}")
    trace = draft.finish(reading.Source("x"), "t-1")
    assert [(item.kind, item.where) for item in trace.warnings] == [("unread", "line 2")]
    assert "hook (2), mood (1)" in trace.warnings[0].text
    assert trace.meta["other_lines"] == {"hook": 2, "mood": 1}


def _format(name: str, draft: Draft | Exception) -> SimpleNamespace:
    def read(document: Any) -> Any:
        if isinstance(draft, Exception):
            raise draft
        yield draft

    return SimpleNamespace(NAME=name, read=read)


def _draft(name: str, text: str) -> Draft:
    draft = Draft(name)
    draft.assistant(text)
    return draft


@pytest.mark.parametrize("first", [_draft("first", ""), Draft("first"), NotThisFormat("no pages"), KeyError("pages")])
def test_a_reader_that_finds_nothing_lets_the_next_one_try(first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [_format("first", first), _format("second", _draft("second", "A bean."))]
    monkeypatch.setattr(reading, "claimants", lambda document: iter(candidates))
    trace = _read({})
    assert trace.format == "second"
    assert [item.where for item in trace.warnings] == ["file"] and "first (" in trace.warnings[0].text


def test_a_fault_that_a_reader_found_in_its_own_format_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [_format("first", FormatError("page 2 has no date")), _format("second", _draft("second", "A bean."))]
    monkeypatch.setattr(reading, "claimants", lambda document: iter(candidates))
    (rejection,) = read_bytes(b"{}", "log.json").rejected
    assert rejection.reason == "page 2 has no date" and not rejection.tried


def test_a_file_that_no_reader_can_use_names_them_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [_format("first", NotThisFormat("no pages")), _format("second", Draft("second"))]
    monkeypatch.setattr(reading, "claimants", lambda document: iter(candidates))
    (rejection,) = read_bytes(b"{}", "log.json").rejected
    assert rejection.reason == "no pages"
    assert [name for name, _ in rejection.tried] == ["first", "second"] and "second" in rejection.sentence


def test_a_file_that_nobody_knows_is_described() -> None:
    (rejection,) = read_bytes(b'[{"mood": 1, "sky": 2}]', "log.json").rejected
    assert "mood, sky" in rejection.reason and not rejection.tried


def test_a_trace_whose_turns_are_all_empty_is_still_read_with_the_warning() -> None:
    trace = _read([CHAT[0], {"role": "assistant", "content": ""}])
    assert trace.turns == 1 and [item.kind for item in trace.warnings] == ["empty"]
