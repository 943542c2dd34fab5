"""A known value is cut out of a text however a server or a tool spells it."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pamer_lab.detection.echoes import repeats, without_values

KEYS = {
    "long": "sk-ant-api03-" + "Zk3_v9Qd-X7pT2mW" * 6,
    "letters": "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi",
    "signs": "p@ss/w0rd+xyz=12",
    "umlauts": "schl\u00fcssel-\u00e4-12345678",
}
WORDS = "[key]"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": _base64,
    "base64 behind a name": lambda key: _base64(f"user:{key}"),
    "base64 inside JSON": lambda key: _base64(json.dumps({"key": key}, ensure_ascii=False)),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"xx{key}tail".encode()).decode().rstrip("="),
    "base64 in lines": lambda key: base64.encodebytes(f"somebody-with-a-rather-long-name:{key}".encode()).decode(),
    "base64 in lines in JSON": lambda key: json.dumps(base64.encodebytes(f"{'q' * 40}{key}".encode()).decode()),
    "base64 in an address": lambda key: quote(_base64(key), safe=""),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal capitals": lambda key: key.encode().hex().upper(),
    "address": lambda key: quote(key, safe=""),
    "address twice": lambda key: quote(quote(key, safe=""), safe=""),
    "JSON in JSON": lambda key: json.dumps(json.dumps({"a": key})),
    "escaped slash": lambda key: json.dumps(key).replace("/", "\\/"),
    "every letter in JSON": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "every letter in an address": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "every letter in HTML": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "HTML": html.escape,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("around", ["{}", "before {} after", 'the server said "{}".'], ids=["alone", "in a text", "quoted"])
def test_a_known_value_is_found_in_each_spelling(spelling: str, key: str, around: str) -> None:
    value = KEYS[key]
    cleaned = without_values(around.replace("{}", SPELLINGS[spelling](value)), [value], WORDS)
    rest = "".join(letter for letter in cleaned.replace(WORDS, "") if letter.isalnum())
    assert WORDS in cleaned
    for seen in (value, _base64(value), value.encode().hex()):
        pieces = [seen[at : at + 10] for at in range(0, len(seen) - 10, 5)]
        assert not any("".join(filter(str.isalnum, piece)) in rest for piece in pieces if piece.isalnum())


def test_other_values_stay() -> None:
    values = list(KEYS.values())
    text = f"{_base64('another key that is long enough')} %41%42 &#65; \\u0041 {'ab' * 40}"
    assert repeats(text, values) == [] and without_values(text, values, WORDS) == text


def test_spans_of_two_values_are_in_order_and_apart() -> None:
    first, second = KEYS["long"], KEYS["signs"]
    text = f"{second} and {_base64(first)} and {first}{second}"
    assert without_values(text, [first, second], WORDS) == f"{WORDS} and {WORDS} and {WORDS}{WORDS}"
