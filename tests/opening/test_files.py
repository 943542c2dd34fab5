"""Files that strangers made, named or placed."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pamer_lab.errors import InputError
from pamer_lab.opening import Budget, below, read_file, read_text
from pamer_lab.opening.budget import FREE_BYTES, MOST_EXPANSION


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


ODD: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": Path.mkdir,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("rooted", [False, True], ids=["anywhere", "below a root"])
def test_only_regular_files_are_opened_and_nothing_waits(kind: str, rooted: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    ODD[kind](path)
    with pytest.raises(InputError) as fault:
        read_file(path, 100, roots=[tmp_path] if rooted else [])
    assert fault.value.path == str(path)


def test_a_descriptor_that_the_caller_opened_may_be_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"0123456789")
    os.close(writer)
    try:
        assert read_file(f"/dev/fd/{reader}", 100) == b"0123456789"
    finally:
        os.close(reader)


def test_a_file_is_read_up_to_its_limit_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1234")
    assert read_file(path, 4) == b"1234" and read_text(path) == "1234"
    with pytest.raises(InputError):
        read_file(path, 3)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "missing")
    path.write_bytes(b"\xff")
    with pytest.raises(InputError):
        read_text(path)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A root with a file, a folder, and links: inside, out of it, and through a folder out of it."""
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (root / "deep" / "own").write_text("own")
    (root / "inside").symlink_to("deep/own")
    (root / "out").symlink_to(tmp_path / "outside" / "secret")
    (root / "folder").symlink_to(tmp_path / "outside")
    return root


def test_below_a_root_links_may_lead_anywhere_but_out(house: Path) -> None:
    assert read_file(house / "deep" / "own", roots=[house]) == b"own"
    assert read_file(house / "inside", roots=[house]) == b"own"
    for name in ("out", "folder/secret", "../outside/secret", "deep/../../outside/secret"):
        with pytest.raises(InputError):
            read_file(house / name, roots=[house])
    assert below(house / "inside", [house]) == house / "deep" / "own"


def test_a_root_with_a_longer_name_is_another_root(house: Path) -> None:
    beside = house.parent / "root-2"
    beside.mkdir()
    (beside / "x").write_text("x")
    with pytest.raises(InputError):
        read_file(beside / "x", roots=[house])
    assert read_file(beside / "x", roots=[house, beside]) == b"x"


def test_a_folder_exchanged_for_a_link_after_the_check_is_not_followed(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is checked while `deep` is a folder, and opened when it is a link: the open itself refuses."""
    (house.parent / "outside" / "own").write_text("secret")

    def exchange(path: Path, roots: object) -> Path:
        found = below(path, [house])
        (house / "deep").rename(house / "was-deep")
        (house / "deep").symlink_to(house.parent / "outside")
        return found

    monkeypatch.setattr("pamer_lab.opening.files.below", exchange)
    with pytest.raises(InputError):
        read_file(house / "deep" / "own", roots=[house])


def test_a_budget_grows_with_its_source_and_ends() -> None:
    budget = Budget(1_000, messages=10)
    budget.take(FREE_BYTES + MOST_EXPANSION * 1_000, 10)
    with pytest.raises(InputError):
        budget.take(1)
    with pytest.raises(InputError):
        Budget(0, messages=2).take(0, 3)
