"""Secrets named by the header of their column: database, CSV and Markdown tables, `INSERT` values, and Kubernetes secret manifests.

Invariant: a line belongs to one table at most and every repetition is bounded, so that time is linear in the text.
"""

import re
from collections.abc import Callable, Iterator

from pamer_lab.detection.shapes import Kind

Judge = Callable[[str, str], Kind | None]
"""(value, name of its column) -> the kind of secret that it is, or None."""
Span = tuple[int, int, Kind]
TELLING = re.compile(r"pass|pwd|secret|token|key")
LONGEST_LINE, MOST_LINES = 2_000, 5_000
NAME = re.compile(r"[\w .\-]{1,40}")
PROPERTY = re.compile(r"\s{0,8}(?P<name>[\w.\-/ ]{1,60}?)(?:\s{2,60}|\s{0,40}\|\s)(?P<value>[^\s|]{8,}+)\s{0,20}")
"""A line with a name and its value, as tools print a list of them."""
EDGES = " \t\r\"'`*|"
INSERT = re.compile(r"(?i:\binsert\s{1,4}into)\s{1,4}[^\s(]{1,100}\s{0,4}\((?P<names>[^()]{1,2000})\)\s{0,8}(?i:values)")
ROW = re.compile(r"[\s,]{0,8}\((?P<cells>(?:[^()']|'(?:[^'\\]|\\.|''){0,400}+'){1,4000}+)\)")
CELL = re.compile(r"(?:[^,']|'(?:[^'\\]|\\.|''){0,200}+')++")
MANIFEST = re.compile(r"(?m:^|(?<=[{,\s]))\"?kind\"?:\s{0,4}\"?Secret\"?(?=[\s,}]|$)")
DATA = re.compile(r"(?P<indent>[^\S\n]{0,40})\"?(?:data|stringData)\"?:\s{0,4}\{?(?=[\s\"])")
PAIR = re.compile(r"(?P<gap>\s{0,60})\"?[\w.\-]{1,100}\"?:[^\S\n]{0,8}(?:[|>][+\-]?\s{1,60})?\"?(?P<value>[^\s\",{}]{4,}+)\"?,?")


def column_spans(text: str, lower: str, judge: Judge) -> Iterator[Span]:
    """Places of values under a telling header; `lower` is the text in lower case, of the same length."""
    yield from _table_spans(text, lower, judge)
    if "insert" in lower:
        for head in INSERT.finditer(text):
            names = [name.strip(EDGES) for name in head["names"].split(",")]
            at = head.end()
            while row := ROW.match(text, at):
                for name, cell in zip(names, CELL.finditer(text, *row.span("cells")), strict=False):
                    yield from _judged(text, *cell.span(), name, judge)
                at = row.end()
    if "secret" in lower and "kind" in lower and MANIFEST.search(text):
        yield from _manifest_spans(text)


def _table_spans(text: str, lower: str, judge: Judge) -> Iterator[Span]:
    done = 0
    for telling in TELLING.finditer(lower):
        if telling.start() < done:
            continue
        start = text.rfind("\n", max(0, telling.start() - LONGEST_LINE), telling.start()) + 1
        end = text.find("\n", telling.end(), telling.end() + LONGEST_LINE)
        done = end if end >= 0 else min(len(text), telling.end() + LONGEST_LINE)
        line = text[start:done]
        if (pair := PROPERTY.fullmatch(line)) and (kind := judge(pair["value"], pair["name"].replace(" ", "_"))):
            yield start + pair.start("value"), start + pair.end("value"), kind
        elif end >= 0 and (head := _head(line)):
            sign, width, names = head
            for _ in range(MOST_LINES):
                cells = list(_cells(text, done + 1, sign))
                if len(cells) != width and not set(text[done + 1 : cells[-1][1]]) <= set("-+=\u2500\u253c|: \r\t"):
                    break
                done = cells[-1][1]
                for number, name in names.items() if len(cells) == width else ():
                    yield from _judged(text, *cells[number], name, judge)
                if done >= len(text):
                    return


def _head(line: str) -> tuple[str, int, dict[int, str]] | None:
    """(separator, number of cells, names of the telling columns by index) of a header line; None if it is not one."""
    line = re.split(r"\": ?\"", line)[-1]  # the first line of a text in JSON
    sign = next((sign for sign in "|\t,;" if sign in line), "")
    cells = [cell.strip(EDGES) for cell in line.split(sign)] if sign else []
    if len(cells) < 2 or not all(NAME.fullmatch(cell) for cell in cells if cell):
        return None
    names = {number: cell.replace(" ", "_") for number, cell in enumerate(cells) if TELLING.search(cell.lower())}
    return (sign, len(cells), names) if names else None


def _cells(text: str, start: int, sign: str) -> Iterator[tuple[int, int]]:
    end = text.find("\n", start, start + LONGEST_LINE)
    line = text[start : end if end >= 0 else start + LONGEST_LINE]
    for cell in line.split(sign):
        yield start, start + len(cell)
        start += len(cell) + len(sign)


def _judged(text: str, start: int, end: int, name: str, judge: Judge) -> Iterator[Span]:
    cell = text[start:end]
    value = cell.strip(EDGES)
    if value and (kind := judge(value, name)):
        start += len(cell) - len(cell.lstrip(EDGES))
        yield start, start + len(value), kind


def _manifest_spans(text: str) -> Iterator[Span]:
    """All values of a Kubernetes secret, whatever their names are."""
    start = 0
    for part in text.split("\n---"):
        if MANIFEST.search(part):
            for data in DATA.finditer(text, start, start + len(part)):
                at = data.end()
                while (pair := PAIR.match(text, at, start + len(part))) and not _leaves(pair["gap"], data["indent"]):
                    yield *pair.span("value"), "password"
                    at = pair.end()
        start += len(part) + len("\n---")


def _leaves(gap: str, indent: str) -> bool:
    """Whether a line is indented no deeper than the one that opened the data."""
    return "\n" in gap and len(gap) - gap.rfind("\n") - 1 <= len(indent)
