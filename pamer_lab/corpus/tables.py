"""The word tables in `data/*.json`, random choices that are the same on every machine and Python version, and names drawn with both.

A draw is a counter hashed with SHA-256: `random.Random` keeps its floats stable between versions but not its `choice` and `shuffle`.
Invariants: every sentence form of a table keeps its slots; a sequence depends only on the words a `Draw` was made from.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, TypeVar

import msgspec


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that can be asked about an entity."""

    value: str
    """Which kind of value it has: `person`, `place`, `year`, ..."""
    ask: str
    """As a question: `who founded {e}`."""
    words: str
    """As the words of a search: `founder`."""
    desc: str
    """As a description that can replace the value: `the founder of {e}`."""
    forms: tuple[str, ...]
    """Sentences that state it of `{e}` with the value `{v}`."""
    when: Literal["begin", "end", ""] = ""
    """Which end of the entity's years a `year` is, so that its stories happen in between."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of entity: its names, its stories and what can be asked about it."""

    pattern: str
    """How names are made (`world.make_name`)."""
    nouns: tuple[str, ...]
    """What such an entity is, with its article."""
    colour: tuple[str, ...]
    """Sentences that documents about such an entity are made of; they state nothing that is asked."""
    attributes: dict[str, Attribute]
    suffixes: tuple[str, ...] = ()


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of research with its kinds of entities."""

    name: str
    tools: str
    """`archive`: search and get_document. `shell`: read_file and run_command."""
    kinds: dict[str, Kind]
    sources: tuple[str, ...]


DOMAINS = ("museum", "works", "expeditions", "services")


@cache
def domain(name: str) -> Domain:
    return msgspec.json.decode(_data(name), type=Domain)


@lru_cache(maxsize=1)
def phrases() -> dict[str, tuple[str, ...]]:
    """Sentence forms that all domains share: what documents say in passing, and how agents talk."""
    return msgspec.json.decode(_data("phrases"), type=dict[str, tuple[str, ...]])


@lru_cache(maxsize=1)
def habits() -> tuple[dict[str, tuple[str, ...]], ...]:
    """Ways of talking; an agent has one and keeps it through its run."""
    return msgspec.json.decode(_data("habits"), type=tuple[dict[str, tuple[str, ...]], ...])


@lru_cache(maxsize=1)
def name_parts() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(_data("names"), type=dict[str, tuple[str, ...]])


IDENTIFIER = re.compile(r"(?<![a-z0-9])[a-z0-9]+[-_./]\w")


def fill(form: str, **slots: str) -> str:
    """The form with its slots filled; a slot in upper case begins with a capital, and so does the text."""
    large = {name.upper(): capital(text) for name, text in slots.items()}
    return capital(form.format(**slots, **large))


def capital(text: str) -> str:
    """The text with a capital, unless it begins with an identifier such as `ledger-sync`."""
    return text if IDENTIFIER.match(text) else text[:1].upper() + text[1:]


def _data(name: str) -> bytes:
    return (files("pamer_lab.corpus") / "data" / f"{name}.json").read_bytes()


Item = TypeVar("Item")


class Draw:
    """A stream of random choices named by words, such as `Draw(7, "world", 3)`."""

    def __init__(self, *words: object) -> None:
        self._key = "/".join(str(word) for word in words).encode()
        self._count = 0

    def below(self, limit: int) -> int:
        """An integer from 0 to `limit - 1`."""
        self._count += 1
        digest = hashlib.sha256(self._key + b"#" + str(self._count).encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items (or all of them), in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(min(count, len(rest)))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self.some(items, len(items))


def make_name(draw: Draw, pattern: str, suffixes: tuple[str, ...] = ()) -> str:
    """A name of the given pattern."""

    def part(table: str) -> str:
        return draw.pick(name_parts()[table])

    match pattern:
        case "person":
            return f"{part('first')} {part('surname')}"
        case "the-place":
            return f"the {part('place')} {draw.pick(suffixes)}"
        case "the-surname":
            return f"the {part('surname')} {draw.pick(suffixes)}"
        case "ship":
            return f"the {part('first')} {part('surname')}"
        case "peak":
            return f"Mount {part('surname')}" if draw.chance(50) else f"{part('surname')} Horn"
        case "work":
            return f"{part('work')} {part('place')}"
        case "service":
            return f"{part('service_first')}-{part('service_second')}"
        case "database":
            return f"{part('service_first')}_{part('database_second')}_db"
        case "job":
            return f"{part('job_first')}-{part('service_first')}-{part('job_last')}"
        case "queue":
            return f"{part('service_first')}.{part('queue_second')}"
        case _:
            return part("place")


def make_value(draw: Draw, kind: str) -> str:
    """A value of the given kind."""
    parts = name_parts()
    match kind:
        case "person":
            return make_name(draw, "person")
        case "place":
            return draw.pick(parts["place_before"]) + make_name(draw, "place")
        case "team":
            return f"team-{draw.pick(parts['service_first'])}{draw.between(2, 99)}"
        case "host":
            return f"{draw.pick(parts['service_first'])[:4]}{draw.between(10, 99)}.{draw.pick(parts['region'])}"
        case "version":
            return f"{draw.between(1, 9)}.{draw.between(0, 30)}.{draw.between(0, 30)}"
        case "port":
            return str(draw.between(2000, 9999))
        case "ticket":
            return f"INC-{draw.between(10000, 99999)}"
        case _:
            return f"{draw.pick(parts['service_first'])}.{draw.pick(parts['service_second'])}_v{draw.between(2, 99)}"
