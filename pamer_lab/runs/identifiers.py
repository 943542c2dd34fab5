"""What counts as an identifier in a text, by simple rules.

`url`: http, https, ftp or file addresses, without closing punctuation. `path`: with a slash and a root (`/`, `./`, `../`, `~/`), or
with a slash and a file ending, or a bare file name with a common ending. `id`: e-mail addresses, UUIDs, and words of five
characters or more that mix letters and digits (also joined by `-`, `_`, `#`, `.` or `:`). `quoted`: three to eighty characters of
one line in double or back quotes that hold a letter or digit. `number`: four digits or more, not counting separators and sign. `name`: two
to four capitalised words in a row, without sentence openers such as `The`. Where rules overlap, the first in `_RULES` wins, except that
`quoted` may overlap any; of a text longer than `MAX_CHARACTERS` only beginning and end are searched.
"""

import re
from typing import Literal

IdentifierKind = Literal["url", "path", "id", "quoted", "number", "name"]

MAX_CHARACTERS = 400_000
"""Characters searched per text; of a longer one, half of this at its beginning and half at its end."""

ENDINGS = (
    "py|pyi|ipynb|js|jsx|ts|tsx|json|jsonl|html?|css|c|cc|cpp|h|hpp|java|go|rs|rb|php|sh|sql|md|rst|txt|csv|tsv|xml|ya?ml|"
    "toml|ini|cfg|conf|lock|log|db|patch|diff|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|zip|tar|gz"
)
"""Endings that make a bare word a file name."""
OPENERS = frozenset(
    (
        "The This That These Those There Then They Their It Its If In On At As An And But Or For From With When Where What Which "
        "Who Why How While After Before Because Since Let Now Also However Here He She His Her We Our You Your My Not No Yes Step "
        "Note Please First Second Third Next Finally Based Given Using Found Result Results Error Warning"
    ).split()
)
"""Words that open sentences and are not part of a name."""

_RULES: tuple[tuple[IdentifierKind, re.Pattern[str]], ...] = (
    ("url", re.compile(r"\b(?:https?|ftp|file)://[^\s<>\"'`\\|^{}\[\]]+")),
    ("id", re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b")),
    (
        "path",
        re.compile(r"(?<![\w/.~-])(?:~|\.{1,2})?/[\w.+@-]+(?:/[\w.+@-]+)*/?|(?<![\w/.~+@-])[\w.+@-]+(?:/[\w.+@-]+)*/[\w+@-]+\.\w{1,8}\b"),
    ),
    ("path", re.compile(rf"(?<![\w/.~-])[\w-][\w.-]*\.(?:{ENDINGS})\b(?![\w/])")),
    ("id", re.compile(r"(?<![\w/.#-])#?(?=[\w#:.-]{0,200}\d)(?=[\w#:.-]{0,200}[A-Za-z])\w+(?:[-_#.:]\w+)*")),
    ("number", re.compile(r"(?<![\w.])\d{1,3}(?:[,.]\d{3})+(?:\.\d+)?(?!\w)|(?<![\w.])\d{4,}(?:\.\d+)?(?!\w)")),
    ("name", re.compile(r"\b[A-Z][a-zà-ÿ'’]+(?:[ \t](?:[A-Z][a-zà-ÿ'’]+|[A-Z]\.)){1,3}")),
    ("quoted", re.compile(r"\"([^\"\n]{3,80})\"|`([^`\n]{3,80})`")),
)
LEAST_ID = 5
"""Minimum characters of a mixed word; shorter ones are too common to identify anything (`t1`, `v2.0`)."""


def identifiers(text: str) -> dict[str, IdentifierKind]:
    """The identifiers of a text in order of first appearance, each with its kind."""
    if len(text) > MAX_CHARACTERS:
        half = MAX_CHARACTERS // 2
        text = text[:half] + "\n" + text[-half:]
    found: list[tuple[int, str, IdentifierKind]] = []
    taken = bytearray(len(text))
    for kind, rule in _RULES:
        for match in rule.finditer(text):
            start, value = match.start(), _clean(kind, match)
            if not value or (kind != "quoted" and taken[start]):
                continue
            if kind != "quoted":
                taken[start : match.end()] = b"\1" * (match.end() - start)
            found.append((start, value, kind))
    named: dict[str, IdentifierKind] = {}
    for _, value, kind in sorted(found, key=lambda entry: entry[0]):
        named.setdefault(value, kind)
    return named


def _clean(kind: IdentifierKind, match: re.Match[str]) -> str:
    """The identifier without its surroundings, or nothing if a closer check rejects it."""
    value = match.group()
    match kind:
        case "url":
            value = value.rstrip(".,;:!?)*_")
            return value if len(value) > len("https://") else ""
        case "path":
            value = value.rstrip(".,:;")
            return value if len(value) >= 4 and any(char.isalpha() for char in value) else ""
        case "id":
            value = value.rstrip(".:")
            return value if len(value) >= LEAST_ID and any(char.isdigit() or char == "@" for char in value) else ""
        case "number":
            return value if sum(char.isdigit() for char in value.partition(".")[0]) >= 4 or len(value) >= 5 else ""
        case "name":
            words = value.split()
            while words and words[0] in OPENERS:
                words.pop(0)
            return " ".join(words) if len(words) >= 2 else ""
        case "quoted":
            value = match.group(1) or match.group(2)
            return value if any(char.isalnum() for char in value) else ""


def holds(text: str, value: str) -> bool:
    """The text holds the identifier word for word, and not as a part of a longer word or number."""
    start = text.find(value)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(value) : start + len(value) + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (after.isalnum() and value[-1].isalnum()):
            return True
        start = text.find(value, start + 1)
    return False
