"""The example of `docs/adding-a-policy.md` works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.policies import registry
from tests.runs.making import long_trace, turns_of
from tests.runs.test_ledger import assert_ledger

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-policy.md"


def test_the_documented_policy_runs_after_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(\"\"\"`first.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code
    made: dict[str, Any] = {"__name__": "first_and_last"}
    exec(code[1], made)
    monkeypatch.setitem(registry.POLICIES, "first-and-last", made["FirstAndLast"])
    turns = turns_of(long_trace(6), "first-and-last:2")
    assert turns[5].states == "A..AA"
    assert_ledger(long_trace(6), turns)
    assert registry.parse_policy("first-and-last:3").name == "first-and-last:3"
