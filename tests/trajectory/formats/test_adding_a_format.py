"""The example of `docs/adding-a-format.md` works as it stands there."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pamer_lab.trajectory import formats, read_bytes

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "adding-a-format.md").read_text()


def test_the_documented_format_is_read_after_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(\"\"\"Diaries.*?)```", GUIDE, re.DOTALL)
    sample = re.search(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    assert code and sample
    module = ModuleType("diary")
    exec(code[1], module.__dict__)
    monkeypatch.setitem(sys.modules, "pamer_lab.trajectory.formats.diary", module)
    monkeypatch.setattr(formats, "ORDER", (*formats.ORDER[:-2], "diary", *formats.ORDER[-2:]))
    (trace,) = read_bytes(sample[1].encode(), "run.json").traces
    assert trace.format == "diary" and not trace.warnings
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.messages[1].tool_calls[0].arguments == '{"path":"a.txt"}' and trace.messages[2].content == "total: 51"
    (rejection,) = read_bytes(b'{"diary": 1, "pages": [{"answer": "x"}]}', "run.json").rejected
    assert rejection.where == "goal" and "needs its goal" in rejection.reason
    (rejection,) = read_bytes(b'{"diary": 1, "goal": "g", "pages": [{}]}', "run.json").rejected
    assert "\n" not in rejection.sentence
