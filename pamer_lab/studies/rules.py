"""Three rule triggers that agents use in practice, as yes-or-no signals at each decision point.

`similar queries`: three similar ones among the last ten. `short results`: four in a row. `visited again`: the newest opened page or
document was opened before.
Invariant: a trigger at `t` depends only on blocks before `t`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from pamer_lab.blocks import cut
from pamer_lab.trajectory.values import Message, Trace

RULES = ("three similar queries in ten", "four short results in a row", "a URL visited again")

SIMILAR = 0.5
"""Two queries are similar when they share at least this part of their words (Jaccard)."""
QUERIES_SEEN, QUERIES_ALIKE = 10, 3
SHORT_CHARACTERS = 200
"""A result shorter than this is short."""
SHORT_IN_A_ROW = 4
QUERY_KEYS = ("query", "q", "queries", "search", "search_query", "keywords", "pattern")
PLACE_KEYS = ("url", "uri", "href", "docid", "doc_id", "document_id", "document", "page", "path", "file", "file_path")

_WORD = re.compile(r"\w+")


@dataclass
class _Seen:
    """What the rules remember while a trace goes by."""

    queries: list[frozenset[str]]
    places: set[str]
    short: int
    again: bool


def triggers(trace: Trace) -> list[tuple[bool, ...]]:
    """Per decision point (0 included) one value per rule, in the order of `RULES`."""
    seen = _Seen([], set(), 0, False)
    rows: list[tuple[bool, ...]] = [(False,) * len(RULES)]
    for block in cut(trace.messages).blocks:
        _see(seen, block.of(trace.messages))
        rows.append((_alike(seen.queries[-QUERIES_SEEN:]), seen.short >= SHORT_IN_A_ROW, seen.again))
    return rows[: trace.turns]


def _see(seen: _Seen, messages: Sequence[Message]) -> None:
    opened = False
    for key, text in _arguments(messages[0]):
        if key in QUERY_KEYS:
            seen.queries.append(frozenset(_WORD.findall(text.lower())))
        elif key in PLACE_KEYS:
            place = text.strip().lower().rstrip("/")
            seen.again = place in seen.places or (opened and seen.again)
            seen.places.add(place)
            opened = True
    if not opened:
        seen.again = False
    for message in messages[1:]:
        if message.role == "tool":
            seen.short = seen.short + 1 if len(message.content) < SHORT_CHARACTERS else 0


def _arguments(message: Message) -> Iterator[tuple[str, str]]:
    for call in message.tool_calls:
        try:
            given = orjson.loads(call.arguments)
        except orjson.JSONDecodeError:
            continue
        for key, value in given.items() if isinstance(given, dict) else ():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield key.lower(), text


def _alike(queries: Sequence[frozenset[str]]) -> bool:
    """Whether some query has enough similar ones, itself included."""
    return any(sum(_similar(one, other) for other in queries) >= QUERIES_ALIKE for one in queries)


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    union = len(one | other)
    return union == 0 or len(one & other) >= SIMILAR * union
