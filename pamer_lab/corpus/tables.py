"""The word tables in `data/*.json`, read once and typed. Every sentence form of a table keeps its slots."""

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

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
    """As a description that can stand for the value: `the founder of {e}`."""
    forms: tuple[str, ...]
    """Sentences that state it of `{e}` with the value `{v}`."""
    when: Literal["begin", "end", ""] = ""
    """Which end of the entity's years a `year` is, so that what is told of it falls between."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of entity: how it is named, what is told of it and what can be asked about it."""

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


IDENTIFIER = re.compile(r"[a-z0-9]+[-_./]\w")


def fill(form: str, **slots: str) -> str:
    """The form with its slots filled; a slot written large begins with a capital, and so does the text."""
    large = {name.upper(): capital(text) for name, text in slots.items()}
    return capital(form.format(**slots, **large))


def capital(text: str) -> str:
    """The text with a capital, unless it begins with an identifier such as `ledger-sync`."""
    return text if IDENTIFIER.match(text) else text[:1].upper() + text[1:]


def _data(name: str) -> bytes:
    return (files("pamer_lab.corpus") / "data" / f"{name}.json").read_bytes()
