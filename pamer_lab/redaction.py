"""Finds secrets before an export: keys, tokens, private keys, e-mail addresses, home folders.

Every export goes through a `Scan`: reports, runs, the audit, and the downloads of pages. `detection` finds known shapes and telling
contexts, and lists what merely looks random as possible; a short key of an unknown shape cannot be found, and exports say so.
Invariant: a finding never carries the secret itself, equal secrets get equal numbers, and redacted text says so in place.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from pamer_lab.counts import counted
from pamer_lab.detection import KEYS, PERSONAL, Kind, Known, Place, find_secrets, is_secret_value, with_known
from pamer_lab.detection.echoes import without_values

_NAME = re.compile(r"(?i)(?:api_?key|token|secret|passw(?:or)?d|access_key(?:_id)?|account_key|storage_key)$")
LEAST_VALUE = 8
"""Minimum characters of a value to search for; shorter ones are not keys, and would be found everywhere."""
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
    """The text with every own key cut out, however it is spelled."""
    return without_values(text, own_keys(), "[key]")


Redaction = Literal["all", "keys", "none"]
"""`all`: everything the scan finds. `keys`: keys, tokens, passwords and private-key blocks, while e-mail addresses, home
folders and possible keys stay. `none`: nothing; the findings are still listed in the file, masked."""
POSSIBLE: frozenset[Kind] = frozenset({"possible key"})
"""Looks random, and nobody knows what it is: always listed, replaced only by `all`."""
FINDINGS_KEPT = 500
"""Findings listed in a file; the counts are always complete."""


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
    _known: Known = field(default_factory=Known)
    _places: dict[str, list[Place]] = field(default_factory=dict)
    """What `learn` found in each text, so that no text is searched twice."""
    _keep: bool = False
    """This scan only learns."""

    @property
    def replaces(self) -> frozenset[Kind]:
        return {"all": KEYS | PERSONAL | POSSIBLE, "keys": KEYS, "none": frozenset[Kind]()}[self.choice]

    def clean(self, text: str, place: str) -> str:
        """The text, with what the choice names replaced by `[redacted: API key 1]`."""
        if len(text) < LEAST_VALUE:
            return text
        pieces, done, line, counted = [], 0, 1, 0
        if self._keep and text not in self._places:
            self._places[text] = find_secrets(text, self.own)
        places = self._places[text] if text in self._places else find_secrets(text, self.own)
        for start, end, kind in with_known(text, places, self._known):
            line, counted = line + text.count("\n", counted, start), start
            words = self._found(kind, text[start:end], f"{place}, line {line}")
            if words:
                pieces += [text[done:start], words]
                done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def learn(self, *values: Any) -> None:
        """Search everything that is exported before any of it is cleaned: a secret that one text reveals is then found in all."""
        shadow = Scan("none", self.own, _known=self._known, _places=self._places)
        shadow._keep = True
        for value in values:
            shadow.walk(value)

    def _found(self, kind: Kind, secret: str, place: str) -> str:
        """Records the finding; returns the words that replace the secret, or an empty string if it stays."""
        if self._keep:
            if kind in KEYS:
                self._known.add(secret, kind)
            return ""
        number = self._number(kind, secret)
        redacted = kind in self.replaces
        self.findings.append(Finding(kind, place, masked(secret), number, redacted))
        return f"[redacted: {kind} {number}]" if redacted else ""

    def walk(self, value: Any, place: str = "") -> Any:
        """A JSON value with every string in it cleaned, keys included."""
        match value:
            case str():
                return self.clean(value, place or "report")
            case dict():
                names = {key: str(key) for key in value}
                if isinstance(value.get("value"), str):  # {"name": "DB_PASSWORD", "value": "…"}
                    names["value"] = next((value[key] for key in ("name", "key", "Name") if isinstance(value.get(key), str)), "value")
                return {self.clean(str(key), place): self._under(names[key], item, _inside(place, str(key))) for key, item in value.items()}
            case list() | tuple():
                before = [
                    "",
                    *(item if isinstance(item, str) and item.startswith("-") else "" for item in value[:-1]),
                ]  # ["--password", "…"]
                return [self._under(before[number], item, _numbered(place, number)) for number, item in enumerate(value)]
            case _:
                return value

    def _under(self, name: str, value: Any, place: str) -> Any:
        """A value with its name, which may say that the value is a secret."""
        if not isinstance(value, str):
            return self.walk(value, place)
        known = len(self.findings)
        cleaned = self.clean(value, place or "report")
        kind = is_secret_value(value, name) if name else None
        if kind is None or any(finding.kind in KEYS for finding in self.findings[known:]):
            return cleaned
        return self._found(kind, value, place or "report") or value

    def _number(self, kind: Kind, secret: str) -> int:
        if (kind, secret) not in self._numbers:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[kind, secret] = self._counts[kind]
        return self._numbers[kind, secret]


def own_scan(choice: Redaction) -> Scan:
    """A scan that also knows the keys of this process."""
    return Scan(choice, own_keys())


def clean_text(text: str) -> str:
    """A text that is saved, without keys, tokens and passwords."""
    return own_scan("keys").clean(text, "download")


def without_secrets(text: str) -> str:
    """A short text of someone else's (a program's last output, a command line) without own keys and whatever the scan knows as one."""
    return Scan("keys").clean(without_keys(text), "")


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
    words = [
        f"{row['different']} {row['kind']} in {counted(row['places'], 'place')} {'redacted' if row['redacted'] else 'left in'}"
        for row in rows
    ]
    return f"A scan for secrets found: {', '.join(words)}."


def statement(scan: Scan) -> dict[str, Any]:
    """What a file says about the scan it went through: the choice, the counts, and the findings with their places, masked."""
    shown = [vars(finding) for finding in scan.findings[:FINDINGS_KEPT]]
    return {"choice": scan.choice, "summary": summary(scan.findings), "findings": shown, "more": len(scan.findings) - len(shown)}


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
