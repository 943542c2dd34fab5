"""The example of `docs/adding-a-condition.md` works as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.studies.compact import registry
from pamer_lab.studies.compact.view import context_at
from tests.studies.compact.making import resources, sized
from tests.studies.compact.test_memory_of_states import OLDER, Given

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-condition.md"


def test_the_documented_condition_runs_after_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code
    made: dict[str, Any] = {"__name__": "pamer_lab.studies.compact.ends"}
    exec(code[1], made)
    before = registry.all_conditions()
    monkeypatch.setattr(registry, "all_conditions", lambda caps=(): (*before, made["Ends"]()))
    view = context_at(sized(20, 30, 40, 50), 4, "ends", resources())
    assert [piece.block for piece in view.pieces] == [None, None, 0, 3]
    assert (view.tokens, view.left_out) == (85, (1, 2))
    assert registry.choose("ends")[-1].represent(Given(OLDER, [1, 2])).features.shape == (2, 2)
