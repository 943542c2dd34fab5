"""Tool calls as diffs, commands and files; and the tokens of each tool's results."""

import json

import pytest

from pamer_lab.blocks.calls import shown_call, tool_tokens
from tests.runs.making import call, make_trace


@pytest.mark.parametrize(
    ("name", "arguments", "shape", "text", "path", "rest"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "x\ny", "new_string": "x\nz"}, "diff", "  x\n- y\n+ z", "a.py", ""),
        ("edit_file", {"path": "s.toml", "old": "a", "new": "b"}, "diff", "- a\n+ b", "s.toml", ""),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}] * 2}, "diff", "- 1\n+ 2\n- 1\n+ 2", "a", ""),
        ("Write", {"file_path": "b.txt", "content": "<b>hi</b>"}, "file", "<b>hi</b>", "b.txt", ""),
        ("Bash", {"command": "ls -la", "timeout": 5}, "command", "ls -la", "", '{"timeout":5}'),
        ("shell", {"command": ["bash", "-lc", "pwd"]}, "command", "bash -lc pwd", "", ""),
        ("apply_patch", {"input": "*** Begin Patch\n+x"}, "diff", "*** Begin Patch\n+x", "", ""),
    ],
)
def test_a_call_is_shown_in_its_natural_form_and_loses_nothing(
    name: str, arguments: dict[str, object], shape: str, text: str, path: str, rest: str
) -> None:
    shown = shown_call(name, json.dumps(arguments))
    assert shown is not None and (shown.shape, shown.text, shown.path, shown.rest) == (shape, text, path, rest)


@pytest.mark.parametrize(
    ("name", "arguments"), [("Read", '{"file_path": "a"}'), ("search", '{"q": "x"}'), ("Bash", "not json"), ("x", "[1]")]
)
def test_other_calls_stay_as_they_are(name: str, arguments: str) -> None:
    assert shown_call(name, arguments) is None


def test_results_are_counted_for_the_tool_that_was_called() -> None:
    trace = make_trace([call(0, "a", "x"), call(1, "b", "y")])
    tokens = [10 * (number + 1) for number in range(len(trace.messages))]
    (row,) = tool_tokens(trace, tokens)
    results = [count for message, count in zip(trace.messages, tokens, strict=True) if message.role == "tool"]
    assert (row["tool"], row["calls"], row["result_tokens"]) == ("search", 2, sum(results))
    assert row["share_pct"] == pytest.approx(100 * sum(results) / sum(tokens))
