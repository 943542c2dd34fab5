"""A text as it was before it was escaped: JSON and URL escapes decoded, terminal colours and hidden characters taken out.

Tool arguments are JSON inside JSON, and terminals colour what they print, so that a key may follow an escaped line break or a colour.
Each view is made of the one before and knows where its characters came from. Invariant: making a view takes time that grows like the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_VIEWS = 5
"""The text itself, and four levels of escapes."""
AROUND = 3_000
"""Characters before and after a decoded escape that are looked at again."""
MOST_STRETCHES = 50
"""More stretches than this, and the view is looked at from end to end."""
SPACE = re.compile(r"\s")
ESCAPE = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours and cursor moves
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\^_()#]"  # titles and links, other sequences
    r"|\^\[\[[0-9;]{0,32}[A-Za-z]|\u241b\[[0-9;]{0,32}[A-Za-z]|\[[0-9;]{1,16}m"  # the same, made visible or with a lost escape
    r"|[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
    r"|\\(?P<code>u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|0[0-7]{2}|[nrtfve\"'`/\\$])"
    r"|%(?P<percent>[2-7][0-9A-Fa-f])|&(?P<entity>quot|apos|amp|lt|gt|#34|#39|#x27|#x22);"
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "e": "\x1b"}
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "#34": '"', "#39": "'", "#x27": "'", "#x22": '"'}


@dataclass(frozen=True)
class View:
    """A text, and how its places lead back to the text it was made of."""

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
        """Stretches, in order, that hold everything which this view may show and the one before may not."""
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
        return [(self._edge(begin), self._edge(end)) for begin, end in stretches]

    def _edge(self, at: int) -> int:
        """The next blank, so that no key is cut; the ends of the text count as blanks."""
        space = SPACE.search(self.text, at) if at > 0 else None
        return space.start() if space else len(self.text) if at > 0 else 0

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


def _decoded(view: View) -> View | None:
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

    for match in ESCAPE.finditer(text):
        add(text[done : match.start()], done, -1)
        add(_meant(match), match.start(), match.end())
        done = match.end()
    if not done:
        return None
    add(text[done:], done, -1)
    return View("".join(pieces), view, starts, origins) if pieces else None


def _meant(match: re.Match[str]) -> str:
    """What an escape stands for; nothing for colours and hidden characters."""
    if code := match["code"]:
        if code[0] == "0":
            return chr(int(code, 8))
        return chr(int(code[1:], 16)) if len(code) > 1 else _LETTERS.get(code, code)
    if percent := match["percent"]:
        return chr(int(percent, 16))
    return _ENTITIES.get(match["entity"] or "", "")
