"""Private keys in PEM, found by their first and last line, whatever a tool has put before each line between them.

Line numbers, `+`, `>`, file names and quotes are no part of a key, but nothing of the key may stay between them.
Invariant: what is between two such lines is looked at once, so that time is linear in the text.
"""

import re
from collections.abc import Iterator

EDGE = re.compile(r"-{4,5} ?(?P<edge>BEGIN|END) (?P<name>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?) ?-{4,5}")
BODY = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{30,}+")
"""A line of a key; a sentence has no word of this length."""
ENCODED = re.compile(r"(?=[A-Za-z+/]{0,80}[0-9])[A-Za-z0-9+/]{16,}+")
"""What a real key has between the two lines, unlike a sentence that only mentions them."""
BREAK = re.compile(r"\n|\\n")
LONGEST, LONGEST_LINE, LEAST = 200_000, 300, 8
"""Maximum characters of a key and of its lines, and of a line in a key that is not key text."""


def private_key_spans(text: str) -> Iterator[tuple[int, int]]:
    """Complete keys, keys without their end, and ends of keys."""
    edges = list(EDGE.finditer(text))
    stops = [edge.start() for edge in edges[1:]] + [len(text)]
    before, closed = 0, False
    for number, edge in enumerate(edges):
        after = min(stops[number], edge.end() + LONGEST)
        if edge["edge"] == "BEGIN":
            end = edges[number + 1] if number + 1 < len(edges) else None
            closed = end is not None and end["edge"] == "END" and end.start() == after and bool(ENCODED.search(text, edge.end(), after))
            if closed and end is not None:
                yield edge.start(), end.end()
            elif (last := _forwards(text, edge.end(), after)) > edge.end():
                yield edge.start(), last
        elif not closed and (first := _backwards(text, max(before, edge.start() - LONGEST), edge.start())) < edge.start():
            yield first, edge.end()
        closed = closed and edge["edge"] == "BEGIN"
        before = edge.end()


def _forwards(text: str, start: int, stop: int) -> int:
    """The end of the last line of a key that begins after `start`; headers and empty lines may be before it."""
    last, missed = start, 0
    for line_start, line_end in _lines(text, start, stop):
        line = text[line_start : min(line_end, line_start + LONGEST_LINE)]
        bodies = list(BODY.finditer(line))
        if bodies:
            last, missed = line_start + bodies[-1].end(), 0
        elif (missed := missed + 1) > 6 or (last > start and missed > 1):
            break
    return last


def _backwards(text: str, start: int, stop: int) -> int:
    """The beginning of the first line of a key that ends before `stop`."""
    first = stop
    lines = list(_lines(text, start, stop))
    for number, (line_start, line_end) in enumerate(reversed(lines)):
        body = BODY.search(text, line_start, min(line_end, line_start + LONGEST_LINE))
        if body:
            first = body.start()
        elif number > 1 and line_end - line_start > LEAST:  # the last line of a key may be short
            break
    return first


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    for found in BREAK.finditer(text, start, stop):
        yield start, found.start()
        start = found.end()
    yield start, stop
