"""Every listed key format, alone and inside what traces wrap it in; and what must not be taken for a secret."""

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pamer_lab.detection import KEYS, find_secrets
from pamer_lab.redaction import Scan, summary
from tests.detection.made_up import CONTEXTS, HARMLESS, HIDINGS, LINES, PRECEDED, SHAPES, WRAPS, made


def _secret_part(text: str) -> str:
    """What of a shape must be gone: the long random end of it."""
    return text.split("/")[-1].rsplit("=", 1)[0][-16:] if "://" in text else text.rstrip("=%3D-")[-16:]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_known_shape_is_found_whatever_it_is_wrapped_in(wrap: str) -> None:
    missed = {}
    for name, (kind, secret) in SHAPES.items():
        if (wrap in ("after a sign", "emphasised") and name in PRECEDED) or (wrap == "userinfo" and "://" in secret):
            continue
        inner = secret.replace("\n", "\\n") if "JSON" in wrap else secret
        scan = Scan("keys")
        cleaned = scan.clean(WRAPS[wrap].format(inner), "x")
        kinds = {finding.kind for finding in scan.findings} & KEYS
        if _secret_part(inner) in cleaned or kind not in kinds:
            missed[name] = (kinds, cleaned[:80])
    assert not missed


@pytest.mark.parametrize("hiding", HIDINGS)
def test_a_known_shape_is_found_however_it_is_encoded_or_split(hiding: str) -> None:
    hide = HIDINGS[hiding]
    missed = {}
    for name, (_, secret) in SHAPES.items():
        if len(secret) > 5_000 or "://" in secret or "=" in secret or "\n" in secret:
            continue
        written = hide(secret)
        cleaned = Scan("keys").clean(written, "x")
        gone = len(written) - len(re.sub(r"\[redacted: [\w ]+\]", "", cleaned))
        if secret[-12:] in cleaned or gone < 0.9 * len(secret):
            missed[name] = cleaned[:120]
    assert not missed


@pytest.mark.parametrize("around", LINES)
@pytest.mark.parametrize("part", ["complete", "first lines", "last lines"])
def test_no_line_of_a_private_key_stays_whatever_is_around_each_line(around: str, part: str) -> None:
    lines = SHAPES["pem"][1].split("\n")
    lines = {"complete": lines, "first lines": lines[:4], "last lines": lines[-4:]}[part]
    listed = "\n".join(LINES[around].format(number=number, line=line) for number, line in enumerate(lines, 1))
    for text in (f"see\n{listed}\nand more", json.dumps({"output": listed})):
        cleaned = Scan("keys").clean(text, "x")
        assert not [line for line in lines if "KEY" not in line and line in cleaned]


@pytest.mark.parametrize("around", ["numbered", "numbered with an arrow", "added", "removed", "found by grep", "cited"])
def test_what_gives_a_secret_away_does_so_in_a_file_with_line_numbers_or_signs(around: str) -> None:
    left = {}
    for name, (text, secret) in CONTEXTS.items():
        lines = text.format(secret).split("\n")
        listed = "\n".join(LINES[around].format(number=number, line=line) for number, line in enumerate(lines, 1))
        cleaned = Scan("keys").clean(listed, "x")
        if any(part in cleaned for part in secret.split("\n")):
            left[name] = cleaned[:120]
    assert not left


@pytest.mark.parametrize(
    "hide",
    [
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(json.dumps({"a": text}).encode()).decode(),
        lambda text: quote(text, safe=""),
        lambda text: json.dumps({"a": json.dumps({"b": text})}),
        lambda text: json.dumps({"url": f"/search?page=2&q={quote(text, safe='')}"}),
    ],
    ids=["base64", "base64 of JSON", "URL", "JSON in JSON", "address in JSON"],
)
def test_what_gives_a_secret_away_may_be_encoded_together_with_it(hide: Callable[[str], str]) -> None:
    left = {}
    for name, (around, secret) in CONTEXTS.items():
        cleaned = Scan("keys").clean(hidden := hide(around.format(secret)), "x")
        if cleaned == hidden or any(quote(part, safe="") in cleaned for part in secret.split("\n")):
            left[name] = cleaned[:120]
    assert not left


def test_the_first_and_last_line_of_a_key_in_a_sentence_are_no_key() -> None:
    text = f"It begins with {'-' * 5}BEGIN PRIVATE KEY{'-' * 5}, has base64 and ends with {'-' * 5}END PRIVATE KEY{'-' * 5}."
    assert find_secrets(text) == []


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_one_finding_of_its_kind(name: str) -> None:
    kind, secret = SHAPES[name]
    assert [found for _, _, found in find_secrets(f"x {secret} y")] == [kind]


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("escaped", [False, True], ids=["plain", "as JSON text"])
def test_what_is_before_a_secret_gives_it_away_and_the_rest_stays(name: str, escaped: bool) -> None:
    around, secret = CONTEXTS[name]
    text = around.format(secret)
    if escaped:
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        secret = secret.replace("\n", "\\n")
    cleaned = Scan("keys").clean(text, "x")
    assert not any(part in cleaned for part in secret.split("\\n")) and "[redacted: " in cleaned
    assert cleaned.startswith(text[: text.index(secret[:8])][:8]), "what is not secret stays"


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_code_placeholders_and_words_are_left_alone(text: str) -> None:
    assert [(kind, text[start:end]) for start, end, kind in find_secrets(text)] == []


def test_what_looks_random_is_listed_as_possible_and_replaced_only_with_everything() -> None:
    unknown = "zq9" + made(40)
    for choice, replaced in (("keys", False), ("all", True)):
        scan = Scan(choice)  # type: ignore[arg-type]
        cleaned = scan.clean(f"the value {unknown} was set", "x")
        assert [finding.kind for finding in scan.findings] == ["possible key"]
        assert (unknown not in cleaned) is replaced and summary(scan.findings)[0]["redacted"] is replaced


def test_decoded_values_are_judged_by_the_names_they_have_in_the_object() -> None:
    word = "correct-horse9"
    value = {
        "password": word,
        "env": [{"name": "DB_PASSWORD", "value": word}],
        "argv": ["tool", "--password", word, "x"],
        "arguments": '{"password": "' + word + '"}',
        "nested": {"api_key": word, "token": "None", "password_hint": "the street", "tokens": "12 or 13"},
    }
    scan = Scan("keys")
    cleaned = scan.walk(value)
    assert word not in repr(cleaned) and len(scan.findings) == 5
    assert cleaned["nested"]["token"] == "None" and cleaned["nested"]["password_hint"] == "the street"
    assert cleaned["argv"][0] == "tool" and cleaned["argv"][3] == "x"


def test_only_the_secret_is_replaced_and_the_escapes_around_it_stay() -> None:
    kind, secret = SHAPES["github"]
    assert Scan("keys").clean(f"a\\n\x1b[32m{secret}\x1b[0m\\n", "x") == f"a\\n\x1b[32m[redacted: {kind} 1]\x1b[0m\\n"


def test_a_key_with_a_colour_inside_it_is_replaced_as_one() -> None:
    _, secret = SHAPES["github"]
    cleaned = Scan("keys").clean(f"x {secret[:12]}\x1b[1m{secret[12:]}\x1b[0m y", "x")
    assert secret[12:] not in cleaned and secret[:12] not in cleaned


def test_own_keys_are_found_behind_escapes_too() -> None:
    assert "plain words" not in Scan("keys", ("plain/words",)).clean('{\\"x\\": \\"plain\\/words\\"}', "x").replace("\\/", " ")


def test_lines_of_findings_are_counted_once() -> None:
    """Linear in findings: the lines between two findings are counted, not those from the beginning."""

    class Counted(str):
        spent = 0

        def count(self, what: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
            Counted.spent += (len(self) if end is None else end) - start
            return super().count(what, start, len(self) if end is None else end)

    text = Counted("a@example.org\n" * 2_000)
    scan = Scan("none")
    scan.clean(text, "x")
    assert [finding.place for finding in scan.findings[-1:]] == ["x, line 2000"] and Counted.spent <= len(text)
