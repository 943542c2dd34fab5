"""The command as a user runs it: exit codes, one JSON object, one line per fault."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pamer_lab.cli import main

CHAT = json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}])
KEYS = {
    *"path index trace_id question_id format messages turns blocks tool_calls tool_results".split(),
    *"prefix_messages tokens tokenizer labels warnings".split(),
}


def test_good_files_are_stored_and_bad_ones_named_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.json").write_text(CHAT)
    (tmp_path / "bad.json").write_text(CHAT[:20])
    code = main(["import", str(tmp_path), "--json", "--workspace", str(tmp_path / "ws")])
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert code == 2
    assert set(result["traces"][0]) >= KEYS
    assert result["rejected"][0]["path"].endswith("bad.json") and result["rejected"][0]["where"]
    assert len(err.strip().splitlines()) == 1 and "bad.json" in err


def test_the_program_itself_prints_one_json_object_and_no_traceback(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text(CHAT)
    command = [sys.executable, "-m", "pamer_lab.cli", "import", str(good), "--json", "--workspace", str(tmp_path / "ws")]
    project = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, env=os.environ)
    assert done.returncode == 0 and json.loads(done.stdout)["traces"][0]["turns"] == 1
    missing = subprocess.run([*command[:4], str(tmp_path / "no.json")], capture_output=True, text=True, cwd=project)
    assert missing.returncode == 2 and "no.json" in missing.stderr and "Traceback" not in missing.stderr


def test_control_characters_of_a_strangers_file_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evil.json").write_text('[{"role": "\\u001b[31mred", "content": "x"}, {"role": "user", "content": "x"}]')
    main(["import", str(tmp_path / "evil.json"), "--workspace", str(tmp_path / "ws")])
    assert "\x1b" not in capsys.readouterr().err


def test_an_unknown_bench_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nonsense"]) == 2
    assert "import" in capsys.readouterr().err
