"""Keys and passwords that were typed where they do not belong: refused or removed, and repeated nowhere."""

from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.commands.options import COMMANDS
from pamer_lab.engines.interface import check_address
from pamer_lab.errors import InputError

KEY = "sk-ant-api03-" + "Zq7" * 20
SECRET = "hunter2-planted"
ADDRESSES = [f"s3://id:{SECRET}@bucket/x", f"gs://bucket/x?secret={SECRET}", f"az://{SECRET}@account/x", f"file://u:{SECRET}@host/x"]
WORDS = {
    "import": ["a.json"],
    "label": ["a.json"],
    "layerwise": ["a.json"],
    "controls": ["a.json"],
    "compact": ["a.json"],
    "audit": ["export", "x.csv"],
    "extract": ["a.json"],
    "train": ["a.json"],
    "replay": ["t-0", "--policy", "base"],
    "runs": ["list"],
    "memory": ["check"],
    "heads": ["list"],
    "prices": [],
    "whatif": ["r-0"],
    "report": ["r-0", "--out", "x.html"],
    "arena": ["--list"],
    "doctor": [],
    "live": ["list"],
}
"""What each command needs to get as far as its workspace."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAMER_LAB_HOME", str(tmp_path / "ws"))  # `--workspace` sets it; afterwards it is as before
    (tmp_path / "a.json").write_text('[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]')


@pytest.mark.parametrize("command", WORDS)
def test_no_command_repeats_the_credentials_of_its_workspaces_address(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command in COMMANDS
    for address in ADDRESSES:
        code = main([command, *WORDS[command], "--workspace", address])
        said = capsys.readouterr()
        assert code == 2 and said.err.count("\n") == 1 and SECRET not in said.out + said.err
    assert [path.name for path in tmp_path.rglob("*") if SECRET in path.name] == []


@pytest.mark.parametrize(
    "engine", [f"ray:ray://u:{SECRET}@host:10001", f"ray:host:6379?token={SECRET}", f"rai:{SECRET}", f"local:{SECRET}"]
)
def test_an_engines_address_with_credentials_is_refused_and_not_repeated(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "a.json", "--engine", engine]) == 2
    assert SECRET not in "".join(capsys.readouterr())


def test_the_address_of_the_environment_is_checked_like_one_that_was_typed() -> None:
    for address in ("", "auto", "host:6379", "ray://host:10001"):
        check_address(address)
    with pytest.raises(InputError) as refused:
        check_address(f"ray://u:{SECRET}@host:10001")
    assert SECRET not in refused.value.sentence


@pytest.mark.parametrize("words", [["doctor", KEY], ["doctor", f"--api-key={KEY}"], [KEY], ["runs", KEY], ["doctor", "--password", SECRET]])
def test_the_parser_does_not_repeat_a_key_that_was_typed_as_an_option(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = "".join(capsys.readouterr())
    assert stopped.value.code == 2 and KEY not in said and SECRET not in said
