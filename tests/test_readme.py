"""The README's Python runs as it stands."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


@pytest.mark.weights
def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.search(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code
    monkeypatch.chdir(PROJECT)
    program = code[1].replace('".pamer-lab"', repr(str(tmp_path))).replace('"pamer"', '"sliding-window:2"')
    names: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), names)  # our own README
    assert names["messages"] == [{"role": "user", "content": "hello"}]
