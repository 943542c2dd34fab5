"""Secrets recognised by what precedes them: a name and an assignment sign, a header, a flag, the parts of a URL.

A name alone says little (`token: None`), so each value is judged: code, types and placeholders are left alone, and after a weak name only
what mixes letters and digits counts. Invariant: every repetition is bounded or possessive, so that time is linear in the text.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Literal

from pamer_lab.detection.columns import column_spans
from pamer_lab.detection.places import PLACES
from pamer_lab.detection.shapes import Kind

_QUOTED = r"\"(?P<double>[^\"\r\n]{4,8000})|'(?P<single>[^'\r\n]{4,8000})|`(?P<back>[^`\r\n]{4,8000})"
_BARE = r"(?P<bare>(?:(?!&\w{1,40}=)(?:[^\s\x00-\x1f\"'`,;<>|\\]|\\(?![nrtux0\"'\\/]))){4,400})"
_REST = re.compile(r"[A-Za-z0-9+/=_.\-]*+")
"""The rest of a bare value that is longer than the pattern's limit."""
_IN_WORDS = (  # in the languages that most traces are written in
    r"passw(?:or)?ds? passwd pass.?phrase passwort kennwort mot.de.passe contrase\u00f1a senha \u043f\u0430\u0440\u043e\u043b\u044c "
    r"\u5bc6\u7801 \u5bc6\u78bc \u30d1\u30b9\u30ef\u30fc\u30c9 \ube44\ubc00\ubc88\ud638 pwd psk pass"
)
_PASSWORD = "|".join(_IN_WORDS.split())
_TYPES = r"string|String|str|bytes|any|SecretStr|Secret|Optional\[str\]|Final|str \| None|string \| undefined|&'?(?:static )?str"
CORE = re.compile(
    r"pass|pwd|psk|key|token|secret|auth|credential"
    r"|kennwort|mot de p|contrase|senha|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6|\u30d1\u30b9|\ube44\ubc00"
)
"""Where a telling name may be, in lower case."""
NAMED = re.compile(
    rf"(?i:(?P<password>{_PASSWORD})|(?P<key>key(?:[_\-]?id)?)|(?P<token>token)|(?P<secret>secret(?:[_\-]?(?:access[_\-]?)?key)?)"
    r"|(?P<weak>credentials?|auth(?:orization)?))"
    r"(?i:[_\- ]?(?:value|string|hash|b64|base64|base|prod|dev|test|live|old|new|v?[0-9]{1,3}))?[\"'`\])*]{0,4}"
    r"(?i: \[[^\[\]\n]{0,24}\]| for (?:(?:key|user) )?[\"']?[^\s:\"']{1,80}[\"']?)?"
    rf"(?P<sign>\s{{0,16}}(?:=>|:=|==?|: ?(?:{_TYPES}) ?=|:(?!:)|\uff1a|(?i: is:?)(?=\s)"
    r"|(?P<arrow>-{1,2}>|[\u2192\u2014])|(?P<call>\((?=[\"'`]))))\*{0,2}"
    r"(?P<block>[^\S\n]{0,4}(?:[|>][+\-]?|<<[\-~]?[\"']?\w{1,20}[\"']?)\n[^\S\n]{0,40})?"
    r"(?:[^\S\n]{0,4}(?:!!?\w{1,12}|&\w{1,40})(?=[^\S\n]))?"
    r"(?:\s{0,40}(?:\[\s{0,40}|\{\s{0,40}[\"'](?:[Vv]alue|S|string(?:Value)?)[\"']\s{0,3}:\s{0,3})?"
    r"(?:(?:Some|Ok|Just|Secret|SecretStr|SecretString|String::from|str|quote)\(|string\([0-9]{1,5}\) )?"
    rf"[urbf]?(?:''|\"\")?(?:{_QUOTED})"
    rf"|[^\S\n]{{0,24}}{_BARE})"
)
"""`api_key = "…"`, `"password": "…"`, `PGPASSWORD=…`, `token: …`, from the telling word on."""
_STRONG = {
    "key": re.compile(
        r"(?i)(?:api|access|secret|private|encryption|signing|account|sharedaccess|shared[_\-]access|master|auth|service|storage|subscription"
        r"|admin|app|application|consumer|license|functions|host|pre-?shared|hmac|unseal)[_\- ]?\Z"
        r"|(?:api|access|secret|private|encryption|signing)\.\Z"
    ),
    "secret": re.compile(r"(?i)(?:client|app|consumer|oauth|webhook|signing|shared|jwt|session|cookie|hmac|api)[_\- ]?\Z"),
    "token": re.compile(
        r"(?i)(?:auth|access|refresh|session|security|bearer|id|bot|api|oauth|personal|private|csrf|xsrf|identity|registration|deploy"
        r"|device|push|user|app|login|jwt|service|account|root)[_\- ]?\Z"
    ),
}
"""What must precede a word to make it the name of a secret."""
_LONGEST = 24
"""Characters before a word that are looked at."""
FLAG = re.compile(
    r"(?<![A-Za-z0-9.])--?(?i:(?:[a-z]{1,20}-){0,3}(?P<password>password|passwd|passphrase|(?:require|store|key)?pass|pwd|token|secret|api-?key|secret-key|access-key"
    r"|client-secret|auth-token|access-token))(?:[\"']?=|[\"'],\s{1,40}(?=[\"'])|[^\S\n]{1,3}|(?<=\\)\n\s{0,20})"
    rf"(?:(?:{_QUOTED})|(?!--?[a-z]){_BARE})"
)
"""`--password …`"""
NAME = re.compile(
    rf"(?i)[\w.\-]{{0,60}}?(?:(?P<password>{_PASSWORD})|(?P<key>key(?:[_\-]?id)?)|(?P<token>token)|(?P<secret>secret(?:[_\-]?(?:access[_\-]?)?key)?)"
    r"|(?P<weak>credentials?|auth(?:orization)?|cookie))"
)
"""A name that ends with a telling word: the key of a JSON object, a variable, a flag."""
_HARMLESS = re.compile(
    r"(?i)(?:x{3,}|\*{2,}|\.{3,}|•{2,}|your[_\- ].*|my[_\-](?:api|secret|token|key|pass).*|<.*|example.*|change[_\-]?(?:me|this).*"
    r"|placeholder.*|dummy.*|insert.*|replace.*|todo.*|n/?a|none|null|nil|true|false|undefined|unknown|empty|hidden|masked|\[?(?:redacted|secret|filtered).*"
    r"|\$\{?\{?[\w.]{1,80}\}?\}?.{0,20}|\$\(.*|\{(?!AQAA).*|%[\w]{1,60}%.*|%\(?.{0,30}s|@\w+@|process\.env.*|os\.(?:environ|getenv).*|env\..*"
    r"|str|string|int|integer|bool|boolean|bytes|optional.*|any|text|object|number|required|required\..*|\[key\].*|(?:sk|pk)-(?:\.|x|your|\*).*|(?:ssh|ecdsa)-[a-z0-9\-]+)"
)
_CODE = re.compile(
    r"[A-Za-z_]\w{0,60}(?:(?:\??\.|::)[A-Za-z_]\w{0,60}){1,8}(?:[(\[)=].*)?|[A-Za-z_][\w.]{0,60}[(\[].*|[(\[{].*|=.*|[\-+*/!]=?", re.DOTALL
)
"""Dotted names, calls and subscripts, in an unquoted value."""
_WORDY = re.compile(r"(?i)pass|key|token|secret|pwd|cred|auth|value|name|string|user|input|field|param|config|prompt")
_RANDOM = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]{0,40}[0-9][A-Za-z]{0,40}[0-9])(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{20,}+(?![(\[.])")
"""A random-looking part of a dotted name: then the name is a token with dots."""
_FOLDER = re.compile(r"(?:/|~|[A-Za-z]:\\|\.).*")
_CLOSERS = ")]}>.,:;!?"
_OPENERS = re.compile(r"[(\[{]")


def context_spans(text: str, lower: str) -> Iterator[tuple[int, int, Kind]]:
    """Places of what a name, header, flag or URL gives away; `lower` is the text in lower case."""
    same = lower if len(lower) == len(text) else text  # a few letters become longer in lower case, which would shift the places
    yield from _named_spans(text, same)
    yield from column_spans(text, same, _of_column)
    if "-" in text:
        for match in FLAG.finditer(text):
            yield from _named(match, "flag")
    for kind, keyword, pattern in PLACES:
        if keyword in lower:
            group = next(name for name in pattern.groupindex if name in _JUDGED)
            for match in pattern.finditer(text):
                if not _HARMLESS.fullmatch(match[group]) and _JUDGED[group](match[group]):
                    yield match.start(group), match.end(group), kind


def _named_spans(text: str, lower: str) -> Iterator[tuple[int, int, Kind]]:
    done = 0
    for core in CORE.finditer(lower):
        if core.start() < done or not (match := NAMED.match(text, core.start())):
            continue
        if how := _strength(match, text[max(0, core.start() - _LONGEST) : core.start()]):
            for start, end, kind in _named(match, how):
                yield start, end, kind
                done = end


Strength = Literal["strong", "weak", "flag"]
"""What a name says. `strong`: it names a secret. `weak`: it may. `flag`: it is an option, whose value is rarely code."""


def _strength(match: re.Match[str], before: str) -> Strength | None:
    if match["password"]:
        return _password_strength(match, before)
    word = next((name for name in _STRONG if match[name]), "weak")
    if match["call"]:
        return "weak" if word != "weak" and (word != "key" or _STRONG[word].search(before)) else None
    if match["arrow"]:
        return "weak" if word in ("token", "secret") or (word == "key" and _STRONG[word].search(before)) else None
    if match["sign"].strip().lower().startswith("is"):
        return "weak" if word != "weak" and _STRONG[word].search(before) else None
    if word != "weak" and _STRONG[word].search(before):
        return "strong"
    capitals = before[-1:] == "_" and match[word].isupper() and "=" in match["sign"]
    if word == "key":
        return "weak" if capitals else "strong" if match["key"].lower() != "key" and before[-1:] in ("_", "-") else None
    if word == "weak" and before[-1:].isalnum():
        return None
    return "strong" if capitals else "weak"


def _password_strength(match: re.Match[str], before: str) -> Strength | None:
    word, sign = match["password"], match["sign"].strip()
    if word == "PWD" and before[-3:] in ("", "OLD") and match["bare"] and _FOLDER.match(match["bare"]):
        return None
    if sign.lower().startswith("is") or match["arrow"] or match["call"]:
        return "weak"
    if word.lower() == "pass" and before[-1:] not in ("_", "-", "."):
        if word == "PASS" and before[-1:].isupper() and sign == "=":
            return "weak"
        if not before.rstrip(" \t")[-1:].strip() and sign == "=":
            return "strong"
        return "weak" if match["sign"] == "=" and before[-1:] in (" ", ",", "&") else None
    return "strong"


def secret_name(name: str) -> tuple[Kind, Strength] | None:
    """The kind of secret that a name announces, and how strongly; None if it announces none."""
    name = name[:200].lstrip("-")
    match = NAME.fullmatch(name)
    if match is None:
        return None
    word = next(group for group in ("password", "key", "token", "secret", "weak") if match[group])
    before = name[: match.start(word)]
    if word == "password":
        return ("password", "strong") if match[word].lower() != "pass" or not before[-1:].isalnum() else None
    strong = word in _STRONG and bool(_STRONG[word].search(before))
    if word == "key" and not strong:
        return None
    return _kind(match), "strong" if strong else "weak"


def is_secret_value(value: str, name: str) -> Kind | None:
    """The kind of a value under a telling name; None if it is a placeholder, a word or a sentence."""
    found = secret_name(name)
    return found[0] if found and _plausible(value, weak=found[1] == "weak", loose=False, password=found[0] == "password") else None


def _named(match: re.Match[str], strength: Strength) -> Iterator[tuple[int, int, Kind]]:
    group = next(name for name in ("double", "single", "back", "bare") if match[name])
    value, start = match[group], match.start(group)
    if group == "bare":
        if not _OPENERS.search(value):
            value = value.rstrip(_CLOSERS)
        if _CODE.fullmatch(value) and not (_RANDOM.search(value) or (strength == "flag" and any(char.isdigit() for char in value))):
            return
    if _plausible(value, weak=strength == "weak", loose=group == "bare", password=bool(match["password"])):
        end = start + len(value)
        rest = _REST.match(match.string, end) if end == match.end() else None
        yield start, rest.end() if rest else end, _kind(match)


def _kind(match: re.Match[str]) -> Kind:
    groups = match.groupdict()
    return "password" if groups["password"] else "API key" if groups.get("key") else "token"


def _plausible(value: str, *, weak: bool, loose: bool, password: bool) -> bool:
    """`weak`: the name says little; `loose`: the value is not quoted, so that it may be code."""
    if _HARMLESS.fullmatch(value) or len(set(value)) < 3:
        return False
    digit = any(char.isdigit() for char in value)
    letter = any(char.isalpha() for char in value)
    spaces = len(value.split()) > 1
    if spaces:
        return password and digit and len(value.split()) < 6
    if weak:
        return digit and letter and len(value) >= 10
    if not digit and value.isidentifier() and (_WORDY.search(value) or (loose and len(value) < 8)):
        return False
    return len(value) >= (6 if password and (digit or not value.isalpha()) else 8)


def _is_pair(encoded: str) -> bool:
    """Whether base64 holds `user:password`."""
    try:
        plain = base64.b64decode(
            encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4), altchars=b"-_" if "-" in encoded or "_" in encoded else None
        )
    except (binascii.Error, ValueError):
        return False
    return b":" in plain[1:] and plain.isascii() and plain.decode().isprintable()


def _is_mixed(value: str) -> bool:
    return _plausible(value, weak=True, loose=False, password=False)


def _is_written(value: str) -> bool:
    """Whether a value that a name or a header announces is neither a word nor code."""
    return _plausible(value, weak=False, loose=True, password=True) and not (_CODE.fullmatch(value) and not _RANDOM.search(value))


def _of_column(value: str, name: str) -> Kind | None:
    """The kind of a value under a column header; headers name many things, so only what mixes letters and digits counts."""
    found = secret_name(name)
    least = 16 if found and found[1] == "weak" else 8
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value) and not any(char.isspace() for char in value)
    return found[0] if found and mixed and len(value) >= least and not _HARMLESS.fullmatch(value) else None


_JUDGED: dict[str, Callable[[str], bool]] = {"found": bool, "encoded": _is_pair, "written": _is_written, "mixed": _is_mixed}
"""What a value must be, by the name of its group in `PLACES`: anything; a pair in base64; no code and no word; letters and digits."""
