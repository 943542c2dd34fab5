"""What today's programs write: each file was recorded by the program and version in its name, run against a scripted model.

The model answers every program alike: a call with words before it, two calls at once without words, then an answer. Long texts and lists
of tools were cut, and folders renamed, after the recording.
"""

from pathlib import Path

import pytest

from pamer_lab.blocks import violations
from pamer_lab.trajectory import read_all, read_traces
from tests.trajectory.formats.told import counts, only

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
ONE_BY_ONE = {"codex-0.169-exec.jsonl"}
"""Streams that do not say which calls were made at once."""
NOTED = {
    "agno-3.1.json": "fields of messages that were left out",
    "grok-cli-0.0.34.jsonl": "1 line that is not JSON left out",
    "haystack-3.4.json": "fields of messages that were left out",
    "qwen-code-0.24.jsonl": "not read",
    "strands.json": "fields of messages that were left out",
}
"""What a reader leaves out of a file, in words of its warning."""


@pytest.mark.parametrize("path", sorted(RECORDED.iterdir()), ids=lambda path: path.name)
def test_a_recording_has_the_turns_calls_and_results_of_the_script(path: Path) -> None:
    trace = only(read_traces(path))
    assert counts(trace) == (4 if path.name in ONE_BY_ONE else 3, 3, 3)
    said = [message for message in trace.messages if message.role == "assistant"]
    assert "Let me look first." in (said[0].content, said[0].thinking) and said[-1].content == "Finished after 3 results."
    assert len(said[0].tool_calls) == 1 and all(call.arguments not in ("", "{}") for message in said for call in message.tool_calls)
    assert all("hello-" in message.content or "Sunny in" in message.content for message in trace.messages if message.role == "tool")
    assert not violations(trace.messages) and not [message for message in trace.messages if message.result]
    assert [warning.text for warning in trace.warnings if NOTED.get(path.name, "\0") not in warning.text] == []


def test_all_recordings_are_read_as_a_folder_too() -> None:
    found = read_all([RECORDED])
    assert len(found.traces) == len(list(RECORDED.iterdir())) and not found.rejected
