"""Secrets that are recognised by what is written before them: a name and a sign, a header, a flag, the parts of a URL.

A name alone says little (`token: None`), so each value is judged: code, types and placeholders are left alone, and after a weak name only
what mixes letters and digits counts. Invariant: every repetition is bounded or possessive, so that time grows like the text.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Literal

from pamer_lab.detection.shapes import Kind

_QUOTED = r"\"(?P<double>[^\"\r\n]{4,8000})|'(?P<single>[^'\r\n]{4,8000})|`(?P<back>[^`\r\n]{4,8000})"
_BARE = r"(?P<bare>(?:(?!&\w{1,40}=)(?:[^\s\x00-\x1f\"'`,;<>|\\]|\\(?![nrtux0\"'\\/]))){4,400})"
_REST = re.compile(r"[A-Za-z0-9+/=_.\-]*+")
"""The rest of a bare value that is longer than a pattern looks."""
_PASSWORD = r"passw(?:or)?ds?|passwd|passphrase|pwd|pass"  # noqa: S105 - a pattern
CORE = re.compile(r"pass|pwd|key|token|secret|auth|credential")
"""Where a telling name may be, in lower case."""
NAMED = re.compile(
    rf"(?i:(?P<password>{_PASSWORD})|(?P<key>key(?:[_\-]?id)?)|(?P<token>token)|(?P<secret>secret(?:[_\-]?(?:access[_\-]?)?key)?)"
    r"|(?P<weak>credentials?|auth(?:orization)?))"
    r"(?i:[_\-]?(?:value|string|hash|b64|base64|prod|dev|test|live|old|new|[0-9]{1,3}))?[\"'`\])]{0,2}"
    r"(?P<sign>\s{0,3}(?:=>|:=|==?|:(?!:))\s{0,3})"
    rf"(?:[urbf]?(?:{_QUOTED})|{_BARE})"
)
"""`api_key = "…"`, `"password": "…"`, `PGPASSWORD=…`, `token: …`, from the telling word on."""
_STRONG = {
    "key": re.compile(
        r"(?i)(?:api|access|secret|private|encryption|signing|account|sharedaccess|shared[_\-]access|master|auth|service|storage|subscription"
        r"|admin|app|application|consumer|license|functions|host)[_\-]?\Z"
    ),
    "secret": re.compile(r"(?i)(?:client|app|consumer|oauth|webhook|signing|shared|jwt|session|cookie|hmac|api)[_\-]?\Z"),
    "token": re.compile(
        r"(?i)(?:auth|access|refresh|session|security|bearer|id|bot|api|oauth|personal|private|csrf|xsrf|identity|registration|deploy"
        r"|device|push|user|app|login|jwt|service|account)[_\-]?\Z"
    ),
}
"""What before a word makes it the name of a secret."""
_LONGEST = 24
"""Characters before a word that are looked at."""
FLAG = re.compile(
    r"--?(?i:(?:[a-z]{1,20}-){0,3}(?P<password>password|passwd|passphrase|pass|pwd|token|secret|api-?key|secret-key|access-key|client-secret"
    rf"|auth-token|access-token))(?:=|\s{{1,3}})(?:(?:{_QUOTED})|{_BARE})"
)
"""`--password …`"""
_PLACES: tuple[tuple[Kind, str, str], ...] = (
    (
        "password",
        "://",
        r"://[^\s/:@'\"<>\\]{0,200}:(?!\d{1,5}(?:[/?#]|$))(?P<found>[^\s'\"<>\\]{3,200})@(?=[\w.\-\[]{1,200}(?:[:/?#\s'\"\\,;)\]]|$))",
    ),
    ("token", "bearer", r"(?i:\bbearer)(?:\s|\+|:|=){1,3}[\"']?(?P<found>(?=[A-Za-z._~+/\-]{0,200}[0-9])[A-Za-z0-9._~+/\-]{16,}+=*)"),
    ("password", "basic", r"(?i:\bbasic)\s{1,3}(?P<encoded>[A-Za-z0-9+/_\-]{8,}+={0,2})"),
    ("password", "auth", r"(?i:\"auth\"|'auth'|_auth|\bauth)\s{0,3}[:=]\s{0,3}[\"']?(?P<encoded>[A-Za-z0-9+/_\-]{8,}+={0,2})"),
    (
        "token",
        "authorization",
        r"(?i:authorization)[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:[A-Za-z][A-Za-z0-9\-]{0,20}\s{1,3})?(?P<found>(?=[A-Za-z._~+/\-]{0,200}[0-9])[A-Za-z0-9._~+/:\-]{12,}+=*)",
    ),
    (
        "token",
        "key",
        r"(?i:\bx-(?:[a-z]{1,20}-){0,3}(?:api-)?(?:key|token)|\bprivate-token|\bapi-key)[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?P<found>[A-Za-z0-9._~+/=\-]{8,}+)",
    ),
    (
        "token",
        "token",
        r"(?i:\bx-(?:[a-z]{1,20}-){0,3}token|\bprivate-token)[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?P<found>[A-Za-z0-9._~+/=\-]{8,}+)",
    ),
    ("token", "cookie", r"(?i:\b(?:set-)?cookie)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<found>[A-Za-z0-9_.\-]{1,100}=(?:[^\r\n\"'\\]{8,8000}))"),
    (
        "token",
        "s",
        r"(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|sessionid|laravel_session|_gitlab_session|csrftoken|session|li_at|sid)"
        r"=(?P<found>(?=[A-Za-z%._:\-]{0,60}[0-9])[A-Za-z0-9%._:~+/\-]{20,}+)",
    ),
    (
        "password",
        "login",
        r"(?i:\blogin)\s{1,20}\S{1,200}\s{1,20}(?:account\s{1,20}\S{1,200}\s{1,20})?(?i:password)\s{1,20}(?P<found>\S{3,200})",
    ),
    (
        "password",
        "-u",
        r"\b(?:curl|wget|http|https|xh)\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user|-U|--auth|-a)[ =]?"
        r"[\"']?[^\s:\"'=]{1,100}:(?P<found>[^\s\"']{3,200})",
    ),
    (
        "password",
        "-",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?\s-p(?P<found>[^\s\"'\-][^\s\"']{3,200}|(?<=-p)[\"'][^\"'\n]{4,200})",
    ),
    (
        "password",
        "-",
        r"\b(?:sshpass|docker login|redis-cli|podman login|7z|unzip|zip)\b[^\n]{0,200}?\s-(?:p|a|P)\s?"
        r"[\"']?(?P<found>[^\s\"'\-][^\s\"']{4,200})",
    ),
    ("password", "pass:", r"-pass(?:in|out)?\s{1,3}[\"']?pass:(?P<found>[^\s\"']{3,200})"),
    ("password", ":", r"(?m:^)[\w.*\-]{1,100}:(?:[0-9]{2,5}|\*):[\w.*\-]{1,60}:[\w.*\-]{1,60}:(?P<found>[^\s:]{4,200})(?m:$)"),
)
PLACES: tuple[tuple[Kind, str, re.Pattern[str]], ...] = tuple((kind, keyword, re.compile(pattern)) for kind, keyword, pattern in _PLACES)
NAME = re.compile(
    rf"(?i)[\w.\-]{{0,60}}?(?:(?P<password>{_PASSWORD})|(?P<key>key(?:[_\-]?id)?)|(?P<token>token)|(?P<secret>secret(?:[_\-]?(?:access[_\-]?)?key)?)"
    r"|(?P<weak>credentials?|auth(?:orization)?|cookie))"
)
"""A name that ends with a telling word: the key of a JSON object, a variable, a flag."""
_HARMLESS = re.compile(
    r"(?i)(?:x{3,}|\*{2,}|\.{3,}|•{2,}|your[_\- ].*|my[_\-](?:api|secret|token|key|pass).*|<.*|example.*|change[_\-]?(?:me|this).*"
    r"|placeholder.*|dummy.*|insert.*|replace.*|todo.*|n/?a|none|null|nil|true|false|undefined|unknown|empty|hidden|masked|\[?(?:redacted|secret|filtered).*"
    r"|\$\{?\{?[\w.]{1,80}\}?\}?.{0,20}|\$\(.*|\{\{?.*|%[\w]{1,60}%.*|%\(?.{0,30}s|@\w+@|process\.env.*|os\.(?:environ|getenv).*|env\..*"
    r"|str|string|int|integer|bool|boolean|bytes|optional.*|any|text|object|number|required|required\..*|\[key\].*|(?:sk|pk)-(?:\.|x|your|\*).*)"
)
_CODE = re.compile(
    r"[A-Za-z_]\w{0,60}(?:\??\.[A-Za-z_]\w{0,60}){1,8}(?:[(\[].*)?|[A-Za-z_][\w.]{0,60}[(\[].*|[(\[{].*|=.*|[\-+*/!]=?", re.DOTALL
)
"""Names with dots, calls and look-ups, where nothing is quoted."""
_WORDY = re.compile(r"(?i)pass|key|token|secret|pwd|cred|auth|value|name|string|user|input|field|param|config|prompt")
_CLOSERS = ")]}>.,:;!?"
_OPENERS = re.compile(r"[(\[{]")


def context_spans(text: str, lower: str) -> Iterator[tuple[int, int, Kind]]:
    """Places of what a name, header, flag or URL gives away; `lower` is the text in lower case."""
    if len(lower) == len(text):  # a few letters grow in lower case, and then places differ
        yield from _named_spans(text, lower)
    else:
        yield from _named_spans(text, text)
    if "-" in text:
        for match in FLAG.finditer(text):
            yield from _named(match, "flag")
    for kind, keyword, pattern in PLACES:
        if keyword in lower:
            group = "encoded" if "encoded" in pattern.groupindex else "found"
            for match in pattern.finditer(text):
                if not _HARMLESS.fullmatch(match[group]) and (group == "found" or _is_pair(match[group])):
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
"""How much a name says: it names a secret; it may; it is an option, whose value is never code."""


def _strength(match: re.Match[str], before: str) -> Strength | None:
    if match["password"]:
        return "strong" if len(match["password"]) > 4 or match["password"].lower() == "pwd" or before[-1:] in ("_", "-") else None
    word = next((name for name in _STRONG if match[name]), "weak")
    if word != "weak" and _STRONG[word].search(before):
        return "strong"
    capitals = before[-1:] == "_" and match[word].isupper() and "=" in match["sign"]
    if word == "key":
        return "weak" if capitals else "strong" if match["key"].lower() != "key" and before[-1:] in ("_", "-") else None
    if word == "weak" and before[-1:].isalnum():
        return None
    return "strong" if capitals else "weak"


def secret_name(name: str) -> tuple[Kind, Strength] | None:
    """What the value under a name is, where the name says that it is a secret."""
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
    """The kind of a value under a telling name, where it is more than a placeholder, a word or a sentence."""
    found = secret_name(name)
    return found[0] if found and _plausible(value, weak=found[1] == "weak", loose=False, password=found[0] == "password") else None


def _named(match: re.Match[str], strength: Strength) -> Iterator[tuple[int, int, Kind]]:
    group = next(name for name in ("double", "single", "back", "bare") if match[name])
    value, start = match[group], match.start(group)
    if group == "bare":
        if not _OPENERS.search(value):
            value = value.rstrip(_CLOSERS)
        if _CODE.fullmatch(value) and not (strength == "flag" and any(char.isdigit() for char in value)):
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
