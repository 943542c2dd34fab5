"""A text as it was before it was escaped: JSON and URL escapes decoded, terminal colours and hidden characters taken out.

Tool arguments are JSON inside JSON, and terminals colour what they print, so that a key may follow an escaped line break or a colour.
Each view is made from the one before and knows where its characters came from. Invariant: making a view takes linear time.
"""

import base64
import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from unicodedata import normalize

MOST_VIEWS = 9
"""The text itself, and eight levels of escapes."""
AROUND = 3_000
"""Characters before and after a decoded escape that are looked at again."""
MOST_STRETCHES = 50
"""With more stretches than this, the complete view is looked at."""
SPACE = re.compile(r"\s")
ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours and cursor moves
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # titles and links
    r"|\x1b[PX^_][^\x07\x1b\x9c]{0,4096}\x1b\\|\x1b[ -/]{0,4}[0-~]"  # strings for devices, other sequences
    r"|\^\[\[[0-9;]{0,32}[A-Za-z]|\u241b\[[0-9;]{0,32}[A-Za-z]"  # the same, made visible
    r"|(?<!1[bB])(?<!1[bB]\})(?<!033)(?<!\\e)(?<!27;)(?<!1[bB];)\[[0-9;]{1,16}m"  # with a lost escape, not with a written one (\x1b)
    r"|_\x08|\x08[^\x00-\x1f_]|[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]"  # overstruck letters, control characters (UTF-16 read as bytes)
    r"|[\u00ad\u0300-\u036f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
    r"|(?P<alike>[\u2010-\u2015\u2212\uff01-\uff5e\U0001d400-\U0001d7ff])"
    r"|</?(?:wbr|span|em|mark|strong|font|b|i)(?:\s[^<>]{0,200})?/?>"  # what a page marks or colours inside a word
    r"|\\\r?\n|=\r?\n"  # a line that continues: shell, quoted-printable
    r"|\\(?P<code>u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,5}\}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[4-7][0-7](?![0-9])"
    r"|[nrtfve\"'`/\\$_.+=~@:#*&%!\-])"
    r"|%(?P<percent>[2-7][0-9A-Fa-f]|0[9ADad])|(?P<letters>(?:%[89A-Fa-f][0-9A-Fa-f]){2,400}+)|=(?P<quoted>3[DA]|5F|2[BDEF])"
    r"|&(?P<entity>quot|apos|amp|lt|gt|nbsp|colon|equals|lowbar|hyphen|sol|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5});"
)
WRAP = re.compile(r"(?<=[A-Za-z0-9+/_\-.=])(?: ?[|\u2502\u2503\u2551])?\r?\n(?:[|\u2502\u2503\u2551] ?)?(?=[A-Za-z0-9+/_\-.=])")
"""Where a line ends in what may be a key and the next line continues it, with the frame that terminals draw around a text."""
JOINT = re.compile(
    r"(?<=[A-Za-z0-9+/_\-.=])(?P<quotes>[\"'`]\s{0,3}"
    r"(?:(?:[+.&]|\|\||<>|\+\+)(?: _)?[^\S\n]{0,3}(?:\r?\n[^\S\n]{0,40})?|\\?\r?\n[^\S\n]{0,40})[fbru]?[\"'`])(?=[A-Za-z0-9+/_\-.=])"
    r"|(?<=[A-Za-z0-9+/_\-.=]{16})(?:[\u21b5\u23ce]\r?\n[^\S\n]{0,40}|\r?\n[^\S\n]{1,40})(?=[A-Za-z0-9+/_\-.=]{6})"
)
"""What separates two string literals that code concatenates, or a long word from its continuation on an indented line."""
RANDOM = re.compile(r"(?=[A-Za-z]{0,30}[0-9])(?=[a-z0-9]{0,30}[A-Z])(?=[A-Z0-9]{0,30}[a-z])[A-Za-z0-9+/_\-]{12,}")
"""The rest of a key on the next line; ordinary names mix cases and digits less."""
COLOURED = re.compile(r"(?<=[A-Za-z0-9])(?:\x1b\[[0-9;:]{0,32}m){1,8}+(?=[A-Za-z0-9])")
"""A colour that begins in a word: it may also end the word."""
MARGIN = re.compile(
    r"(?m)^(?:[^\S\n]{0,8}[0-9]{1,6}(?:\t|\u2192|[:|\u2502] ?)|[\w./\-]{1,200}+:[0-9]{1,6}[:\-]|[+\-](?![+\-])|>{1,3} ?)"
    r"|(?<=[\"'`])(?:[^\S\n]{0,8}[0-9]{1,6}(?:\t|\u2192)|[+\-](?![+\-]))"
    r"|(?P<query>[?&][\w.\-]{1,40}=)"
)
"""What a tool has put before a line of a file, or of a quoted text: its number, its file and line, the sign of a diff; or the name of
a URL parameter (`?q=`)."""
LEAST_LINE, LONGEST_LINE = 20, 400
"""Characters of a line that may have been broken."""
WIDTHS = frozenset({60, 64, 70, 72, 76, 78, 79, 80, 100, 120, 132, 160, 200})
"""Line lengths at which terminals, mailers and formatters wrap."""
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "e": "\x1b"}
_ENTITIES = dict(zip("quot apos amp lt gt nbsp colon equals lowbar hyphen sol".split(), "\"'&<> :=_-/", strict=True))


@dataclass(frozen=True)
class View:
    """A text, and how its places map back to the text it was made from."""

    text: str
    made_of: "View | None" = None
    starts: list[int] = field(default_factory=list)
    """Where each piece begins here."""
    origins: list[tuple[int, int]] = field(default_factory=list)
    """Where each piece begins in `made_of`, and the end there of a piece that is one decoded character (else -1)."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The span in the first text; `end` is behind the last character, so that nothing removed after it is included."""
        if self.made_of is None:
            return start, end
        return self.made_of.place(self._back(start)[0], self._back(end - 1)[1])

    def changed(self) -> list[tuple[int, int]]:
        """Stretches, in order, that contain everything that is new in this view."""
        if self.made_of is None:
            return [(0, len(self.text))]
        stretches: list[list[int]] = []
        for start in self.starts[1 if self.origins[0] == (0, -1) else 0 :]:
            if stretches and start - AROUND <= stretches[-1][1]:
                stretches[-1][1] = start + AROUND
            else:
                stretches.append([start - AROUND, start + AROUND])
        if not stretches or len(stretches) > MOST_STRETCHES:
            return [(0, len(self.text))]
        edges: list[tuple[int, int]] = []
        for begin, end in ((self._blank_before(begin), self._blank_after(end)) for begin, end in stretches):
            if edges and begin <= edges[-1][1]:
                edges[-1] = (edges[-1][0], end)
            else:
                edges.append((begin, end))
        return edges

    def _blank_before(self, at: int) -> int:
        """The place after the last blank before `at`, so that no key is cut; the start of the text counts as a blank."""
        return 1 + max(self.text.rfind(blank, 0, max(at, 0)) for blank in " \n\t")

    def _blank_after(self, at: int) -> int:
        space = SPACE.search(self.text, at)
        return space.start() if space else len(self.text)

    def _back(self, at: int) -> tuple[int, int]:
        piece = bisect_right(self.starts, at) - 1
        begin, end = self.origins[piece]
        moved = begin + at - self.starts[piece]
        return moved, moved + 1 if end < 0 else end


def views(text: str) -> Iterator[View]:
    """The text, and what each further level of decoding makes of it."""
    view: View | None = View(text)
    for _ in range(MOST_VIEWS):
        if view is None:
            return
        yield view
        view = _decoded(view)


def unwrapped(view: View, breaks: re.Pattern[str] = WRAP) -> tuple[View, list[int]] | None:
    """The view without the breaks that may be inside a word, and the places of removed breaks that may really have ended the word."""
    matches = [match for match in breaks.finditer(view.text) if _is_quoted(match) or _may_break(view.text, match.start())]
    joined = _replaced(view, matches, lambda match: "")
    if joined is None:
        return None
    gone = accumulate((match.end() - match.start() for match in matches), initial=0)
    return joined, [match.start() - before for match, before in zip(matches, gone, strict=False) if not _is_full(view.text, match)]


def recoloured(view: View) -> View | None:
    """The view with blanks for colours that begin in a word."""
    return _replaced(view, COLOURED.finditer(view.text), lambda match: " ") if "\x1b" in view.text else None


def without_margins(view: View) -> View | None:
    """The view without what a tool has put before each line; None where there is nothing of that kind."""
    return _replaced(view, MARGIN.finditer(view.text), lambda match: "\n" if match["query"] else "")


def _line_length(text: str, end: int) -> int:
    """Length of the line that ends there, capped just above `LONGEST_LINE`."""
    return end - max(text.rfind("\n", max(0, end - LONGEST_LINE - 2), end), end - LONGEST_LINE - 3) - 1


def _may_break(text: str, end: int) -> bool:
    return LEAST_LINE <= _line_length(text, end) <= LONGEST_LINE


def _is_quoted(joint: re.Match[str]) -> bool:
    """Whether code joins two texts there."""
    return bool(joint.groupdict().get("quotes"))


def _is_full(text: str, end: re.Match[str]) -> bool:
    """Whether the word surely goes on: its line is in a frame or in code, has a usual width or that of the line before, or cuts a key."""
    length = _line_length(text, end.start())
    before = end.start() - length - 1
    if end.re is JOINT and RANDOM.match(text, end.end()):
        return True
    return bool(end[0].strip()) or length in WIDTHS or (before > 0 and _line_length(text, before) == length)


def _decoded(view: View) -> View | None:
    return _replaced(view, ESCAPE.finditer(view.text), _meant)


def _replaced(view: View, matches: Iterable[re.Match[str]], meant: Callable[[re.Match[str]], str]) -> View | None:
    text, done, length = view.text, 0, 0
    pieces: list[str] = []
    starts: list[int] = []
    origins: list[tuple[int, int]] = []

    def add(piece: str, begin: int, end: int) -> None:
        nonlocal length
        if piece:
            pieces.append(piece)
            starts.append(length)
            origins.append((begin, end))
            length += len(piece)

    for match in matches:
        add(text[done : match.start()], done, -1)
        add(meant(match), match.start(), match.end())
        done = match.end()
    if not done:
        return None
    add(text[done:], done, -1)
    return View("".join(pieces), view, starts, origins) if pieces else None


def _meant(match: re.Match[str]) -> str:
    """What an escape means; nothing for colours and hidden characters."""
    if code := match["code"]:
        if code.isdigit():
            return chr(int(code, 8))
        return chr(int(code[1:].strip("{}"), 16)) if len(code) > 1 else _LETTERS.get(code, code)
    if hexadecimal := match["percent"] or match["quoted"]:
        return chr(int(hexadecimal, 16))
    if letters := match["letters"]:
        return bytes.fromhex(letters.replace("%", "")).decode(errors="replace")
    if alike := match["alike"]:
        return normalize("NFKC", alike) if alike >= "\uff01" else "-"
    entity = match["entity"] or ""
    if entity.startswith("#"):
        return chr(int(entity[2:], 16) if entity[1] in "xX" else int(entity[1:]))
    return _ENTITIES.get(entity, "")


SAMPLE = 32
"""Characters that are decoded first, to see whether the rest can be text."""
_URL_SAFE = str.maketrans("-_", "+/")
_BREAKS = str.maketrans("\n\r\t\0", "    ")


def _base64(encoded: str) -> bytes:
    """Base64 decoded; a surplus character at the end is dropped."""
    complete = encoded[: len(encoded) - 1] if len(encoded) % 4 == 1 else encoded
    return base64.b64decode(complete.translate(_URL_SAFE) + "=" * (-len(complete) % 4))


def _base32(encoded: str) -> bytes:
    complete = encoded[: len(encoded) - (len(encoded) % 8 in (1, 3, 6))]
    return base64.b32decode(complete + "=" * (-len(complete) % 8))


def _hexadecimal(encoded: str) -> bytes:
    return bytes.fromhex(encoded[: len(encoded) // 2 * 2])


def _numbers(listed: str) -> bytes:
    return bytes(int(number) for number in DIGITS.findall(listed))


def _pairs(listed: str) -> bytes:
    return bytes.fromhex(NO_PAIR.sub("", listed))


DIGITS, NO_PAIR = re.compile(r"[0-9]+"), re.compile(r"0[xX]|[^0-9a-fA-F]")
_LISTED = (_numbers, _pairs)
ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (re.compile(r"[A-Za-z0-9+/_\-]{20,}+"), _base64),
    (re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{32,}+"), _base32),
    (re.compile(r"(?:(?<![A-Za-z0-9])|(?<=0x)|(?<=\\x))[0-9a-fA-F]{32,}+"), _hexadecimal),
    (re.compile(r"(?<![0-9])(?:[0-9]{2,3}(?:,\s{0,40}| )){15,20000}+(?:[0-9]{2,3})?"), _numbers),
    (re.compile(r"(?<![A-Za-z0-9])(?:(?:0[xX])?[0-9a-fA-F]{2}(?:,\s{0,40}|[ :\-])){15,20000}+(?:(?:0[xX])?[0-9a-fA-F]{2})?"), _pairs),
)
"""(pattern, decoder) of each way to write a text in letters or numbers."""
LINES = re.compile(
    r"(?<![A-Za-z0-9+/_\-])(?:[A-Za-z0-9+/_\-]{20,200}+\r?\n[^\S\n]{0,40}){1,5000}+(?P<last>[A-Za-z0-9+/_\-]{2,200}+={0,2})?"
)
"""The same wrapped over several lines; `last` may not belong to it."""


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Runs of base64, base32, hexadecimal digits and numbers that hold plain text: start, end, what they hold."""
    for pattern, decode in ENCODINGS:
        for match in pattern.finditer(text):
            sampled = decode in _LISTED or _plain(match[0][:SAMPLE], decode)
            if sampled and (plain := _plain(match[0], decode)):
                yield match.start(), match.end(), plain
    for match in LINES.finditer(text):
        for end in (match.end(), match.start("last")):
            joined = "".join(text[match.start() : end].split()) if end > match.start() else ""
            for decode in (_base64, _base32, _hexadecimal):
                if joined and (plain := _plain(joined[:SAMPLE], decode) and _plain(joined.rstrip("="), decode)):
                    yield match.start(), end, plain


def _plain(encoded: str, decode: Callable[[str], bytes]) -> str:
    """The decoded text if it is printable, else empty; the last letter may be cut."""
    try:
        decoded = codecs.getincrementaldecoder("utf-8")().decode(decode(encoded))
    except ValueError:
        return ""
    return decoded if decoded.translate(_BREAKS).isprintable() else ""


_DUMP = (
    r"(?:(?m:^)|(?<=[\"'\s]))[0-9a-f]{7,8}(?:: (?P<pairs>(?:[0-9a-f]{2,4} ){1,8}) |  (?P<bytes>(?:[0-9a-f]{2} {1,2}){1,16}) {0,60}\|"
    r"|(?P<plain>(?: [0-9a-f]{2}){1,16}) {0,60}(?=\n|\Z))"
    r"[^\n]{0,70}(?:\n|\Z)"
)
DUMP_LINE = re.compile(_DUMP)
DUMP = re.compile(rf"(?:{re.sub(r'[?]P<[a-z]+>', '?:', _DUMP)}){{1,5000}}+")


def dumped_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """What `xxd`, `hexdump -C` and `od -tx1` show, line by line: an address, bytes, the same as text."""
    for match in DUMP.finditer(text):
        shown = b"".join(bytes.fromhex(line["pairs"] or line["bytes"] or line["plain"]) for line in DUMP_LINE.finditer(match[0]))
        yield *match.span(), shown.decode("latin-1")
