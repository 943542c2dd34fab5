import ast
from pathlib import Path

import pytest

from pamer_lab.ui.shared import downloads
from pamer_lab.ui.shared.downloads import cleaned

PROJECT = Path(__file__).resolve().parents[3]
SCANNED = {"shared/downloads.py", "shared/share.py", "audit/tools.py"}
"""Where files are handed out: the one for small downloads, and two that show the scan's findings first."""


def test_keys_are_replaced_in_what_is_saved_and_everything_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "these are plain words")
    key = "sk-" + "proj-" + "a1B2" * 10
    saved = cleaned(f"turn,note\n1,{key}\n2,these are plain words\n3,ada@example.org\n").decode()
    assert saved == "turn,note\n1,[redacted: API key 1]\n2,[redacted: API key 2]\n3,ada@example.org\n"


def test_a_long_text_is_scanned_in_a_process_of_its_own_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "plain words\n" * 20
    text = f"{words}api_key = {'a1B2' * 6}\n"
    at_once = cleaned(text)
    monkeypatch.setattr(downloads, "AT_ONCE", 100)
    monkeypatch.setattr(downloads, "clean_text", lambda text: pytest.fail("scanned in the page's process"))
    assert cleaned(text) == at_once and b"[redacted" in at_once


def test_no_page_hands_out_a_file_past_the_scan() -> None:
    found = set()
    for path in [*(PROJECT / "pages").rglob("*.py"), *(PROJECT / "pamer_lab" / "ui").rglob("*.py")]:
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        if names & {"download_button", "link_button"}:
            found.add(f"{path.parent.name}/{path.name}")
    assert found == SCANNED
