"""Finds secrets before an export: keys, tokens, private keys, e-mail addresses, home folders.

Every export goes through a `Scan`: reports, runs, the audit, and the downloads of pages. Patterns match known shapes and avoid hashes,
which traces are full of; a key of an unknown shape without a telling context cannot be found; exports say so.
Invariant: a finding never carries the secret itself, equal secrets get equal numbers, and redacted text says so in place.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

_NAME = re.compile(r"(?i)(?:api_?key|token|secret|passw(?:or)?d)$")
LEAST_VALUE = 8
"""Characters that a value must have to be looked for; shorter ones are no keys, and would be found everywhere."""
NO_KEY = "none"
"""Sent to servers that ask for no key."""


def api_key(variable: str) -> str:
    """The key in an environment variable."""
    return os.environ.get(variable) or NO_KEY


def own_keys() -> tuple[str, ...]:
    """Values of all variables that are named like keys, longest first."""
    values = {value.strip() for name, value in os.environ.items() if _NAME.search(name)}
    return tuple(sorted((value for value in values if len(value) >= LEAST_VALUE), key=lambda value: (-len(value), value)))


def without_keys(text: str) -> str:
    """The text with every own key cut out."""
    for value in own_keys():
        text = text.replace(value, "[key]")
    return text


Redaction = Literal["all", "keys", "none"]
"""`all`: everything the scan finds. `keys`: keys, tokens, passwords and private-key blocks, while e-mail addresses and home
folders stay. `none`: nothing; the findings are still listed in the file, masked."""
Kind = Literal["private key", "API key", "token", "password", "e-mail address", "home folder"]

KEYS: frozenset[Kind] = frozenset({"private key", "API key", "token", "password"})
"""What the choice `keys` replaces."""
PERSONAL: frozenset[Kind] = frozenset({"e-mail address", "home folder"})
"""What only `all` replaces."""
FINDINGS_KEPT = 500
"""Findings listed in a file; the counts are always complete."""

_WORD = r"(?<![A-Za-z0-9_\-])"
_END = r"(?![A-Za-z0-9_\-])"
PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(r"-----BEGIN (?P<name>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----[\s\S]{0,8000}?(?:-----END (?P=name)-----|\Z)"),
    ),
    ("password", re.compile(r"(?<=://)[^\s/:@'\"<>]{1,200}:(?P<secret>[^\s/@'\"<>]{3,200})(?=@)")),
    (
        "API key",
        re.compile(
            _WORD + r"(?:sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_\-]{16,200}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_\-]{35}"
            r"|hf_[A-Za-z0-9]{20,80}|gsk_[A-Za-z0-9]{20,100}|r8_[A-Za-z0-9]{30,60}|SG\.[A-Za-z0-9_\-]{16,40}\.[A-Za-z0-9_\-]{16,60}"
            r"|[rsp]k_(?:live|test)_[A-Za-z0-9]{16,100}|pplx-[A-Za-z0-9]{32,80}|xai-[A-Za-z0-9]{32,100}|nvapi-[A-Za-z0-9_\-]{32,100})"
            + _END
        ),
    ),
    (
        "token",
        re.compile(
            _WORD + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255}|glpat-[A-Za-z0-9_\-]{20,100}"
            r"|xox[abeoprs]-[A-Za-z0-9\-]{10,250}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_\-]{50,300}|dop_v1_[a-f0-9]{64}"
            r"|eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,4000}\.[A-Za-z0-9_\-]{10,1000})" + _END
        ),
    ),
    ("token", re.compile(r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/\-]{16,2000}=*)")),
    (
        "password",
        re.compile(
            r"(?i)(?:\b|_)(?:api[_\-]?key|apikey|access[_\-]?key(?:[_\-]id)?|secret(?:[_\-]?(?:access[_\-]?)?key)?|client[_\-]?secret"
            r"|auth[_\-]?token|access[_\-]?token|refresh[_\-]?token|passw(?:or)?d|passwd|pwd)[\"']?\s{0,3}(?:=|:|=>)\s{0,3}"
            r"\\?[\"']?(?P<secret>[^\s\"'\\,;<>(){}\[\]$*]{8,400})"
        ),
    ),
    (
        "e-mail address",
        re.compile(r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9\-])"),
    ),
    (
        "home folder",
        re.compile(r"(?:(?<![\w.~/\-])/(?:home|Users)/|(?<![A-Za-z0-9])[A-Za-z]:\\{1,2}Users\\{1,2})(?P<secret>[^\s/\\:'\"<>|*?,;]{1,64})"),
    ),
    ("home folder", re.compile(r"(?<![\w.~/\-])/(?P<secret>root)(?=/)")),
)
_PLACEHOLDER = re.compile(
    r"(?i)^(?:x{3,}|\*{3,}|\.{3,}|your[_\-].*|<.*>|example.*|changeme.*|placeholder.*|none|null|true|false|undefined|\[redacted.*)$"
)


@dataclass(frozen=True)
class Finding:
    """One place where something was found."""

    kind: Kind
    place: str
    """In words a reader of the report understands."""
    shown: str
    """The beginning and the length, never all of it."""
    number: int
    """Equal secrets of a kind have equal numbers, from 1."""
    redacted: bool


@dataclass
class Scan:
    """A scan under way: numbers secrets as they come, and replaces those that the choice names."""

    choice: Redaction
    own: tuple[str, ...] = ()
    """Values of this process's own keys, found anywhere."""
    findings: list[Finding] = field(default_factory=list)
    _numbers: dict[tuple[Kind, str], int] = field(default_factory=dict)
    _counts: dict[Kind, int] = field(default_factory=dict)

    @property
    def replaces(self) -> frozenset[Kind]:
        return {"all": KEYS | PERSONAL, "keys": KEYS, "none": frozenset[Kind]()}[self.choice]

    def clean(self, text: str, place: str) -> str:
        """The text, with what the choice names replaced by `[redacted: API key 1]`."""
        if len(text) < LEAST_VALUE:
            return text
        pieces, done = [], 0
        for start, end, kind in _spans(text, self.own):
            secret = text[start:end]
            redacted = kind in self.replaces
            number = self._number(kind, secret)
            self.findings.append(Finding(kind, f"{place}, line {text.count(chr(10), 0, start) + 1}", masked(secret), number, redacted))
            if redacted:
                pieces += [text[done:start], f"[redacted: {kind} {number}]"]
                done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def walk(self, value: Any, place: str = "") -> Any:
        """A JSON value with every string in it cleaned, keys included."""
        match value:
            case str():
                return self.clean(value, place or "report")
            case dict():
                return {self.clean(str(key), place): self.walk(item, _inside(place, str(key))) for key, item in value.items()}
            case list() | tuple():
                return [self.walk(item, _numbered(place, number)) for number, item in enumerate(value)]
            case _:
                return value

    def _number(self, kind: Kind, secret: str) -> int:
        if (kind, secret) not in self._numbers:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[kind, secret] = self._counts[kind]
        return self._numbers[kind, secret]


def own_scan(choice: Redaction) -> Scan:
    """A scan that also knows the keys of this process."""
    return Scan(choice, own_keys())


def masked(secret: str) -> str:
    """Enough to recognise one's own secret, too little to use it."""
    head = secret.split("\n", 1)[0]
    head = head[:30] if head.startswith("-----BEGIN") else head[: min(4, len(secret) // 4)]
    return f"{head}… ({len(secret)} characters)"


def summary(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """How many of each kind, how many places, and whether they were replaced."""
    table: dict[tuple[str, bool], set[int]] = {}
    places: dict[tuple[str, bool], int] = {}
    for finding in findings:
        key = (finding.kind, finding.redacted)
        table.setdefault(key, set()).add(finding.number)
        places[key] = places.get(key, 0) + 1
    return [
        {"kind": kind, "redacted": redacted, "different": len(table[kind, redacted]), "places": places[kind, redacted]}
        for kind, redacted in sorted(table)
    ]


def sentence(findings: Iterable[Finding]) -> str:
    """What was found, and what became of it."""
    rows = summary(findings)
    if not rows:
        return "A scan for keys, tokens, private keys, e-mail addresses and home folders found nothing."
    words = [f"{row['different']} {row['kind']} in {row['places']} places {'redacted' if row['redacted'] else 'left in'}" for row in rows]
    return f"A scan for secrets found: {', '.join(words)}."


def statement(scan: Scan) -> dict[str, Any]:
    """What a file says of the scan it went through: the choice, the counts, and the findings with their places, masked."""
    shown = [vars(finding) for finding in scan.findings[:FINDINGS_KEPT]]
    return {"choice": scan.choice, "summary": summary(scan.findings), "findings": shown, "more": len(scan.findings) - len(shown)}


def _spans(text: str, own: tuple[str, ...]) -> list[tuple[int, int, Kind]]:
    """Places of secrets, in order and without overlap; of two that begin together the first pattern's counts."""
    found = enumerate([*_own_spans(text, own), *_pattern_spans(text)])
    taken: list[tuple[int, int, Kind]] = []
    for start, _, end, kind in sorted((start, order, end, kind) for order, (start, end, kind) in found):
        if not taken or start >= taken[-1][1]:
            taken.append((start, end, kind))
    return taken


def _own_spans(text: str, own: tuple[str, ...]) -> Iterator[tuple[int, int, Kind]]:
    for value in own:
        for match in re.finditer(re.escape(value), text):
            yield match.start(), match.end(), "API key"


def _pattern_spans(text: str) -> Iterator[tuple[int, int, Kind]]:
    for kind, pattern in PATTERNS:
        for match in pattern.finditer(text):
            name = "secret" if "secret" in pattern.groupindex else 0
            if not _PLACEHOLDER.match(match[name]):
                yield match.start(name), match.end(name), kind


_WORDS = {
    "sections": "section",
    "blocks": "block",
    "turns": "turn",
    "runs": "run",
    "selections": "selection",
    "reviews": "review",
    "rows": "row",
}


def _inside(place: str, key: str) -> str:
    return f"{place}, {_WORDS.get(key, key)}" if place else _WORDS.get(key, key)


def _numbered(place: str, number: int) -> str:
    return f"{place} {number}"
