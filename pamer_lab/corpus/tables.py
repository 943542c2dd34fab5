"""The word tables in `data/*.json`, read once and typed.

Knows the files, not what is made of them. What always holds: every sentence form of a table keeps its slots.
"""

from functools import cache, lru_cache
from importlib.resources import files

import msgspec


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of entity: how it is named and what can be asked about it."""

    pattern: str
    """How names are made: `person`, `person-last`, `place`, `the-place` or `service`."""
    attributes: tuple[str, ...]
    referents: tuple[str, ...]
    """What a text calls such an entity where it does not repeat the name."""
    suffixes: tuple[str, ...] = ()


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that can be asked about an entity, with the sentence forms that state it."""

    value: str
    forms: tuple[str, ...]


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of research with its entities, sentence forms and fillers."""

    name: str
    tools: str
    """`archive`: search and get_document. `shell`: read_file and run_command."""
    kinds: dict[str, Kind]
    attributes: dict[str, Attribute]
    titles: tuple[str, ...]
    bare_titles: tuple[str, ...]
    """Titles of documents that name their subject elsewhere."""
    sources: tuple[str, ...]
    fillers: dict[str, tuple[str, ...]]


class Turns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences whose order decides: the later of two governs."""

    agents: tuple[str, ...]
    """Who acts, in any of the sentences below."""
    upheld: tuple[str, ...]
    """A fact is stated and stands."""
    struck: tuple[str, ...]
    """What was stated is taken back."""
    back: tuple[str, ...]
    """The reader is sent back to something read before."""
    onward: tuple[str, ...]
    """The reader is sent on to something new."""


DOMAINS = ("biography", "buildings", "expeditions", "services")


@cache
def domain(name: str) -> Domain:
    return msgspec.json.decode(_data(name), type=Domain)


@cache
def turns(tools: str) -> Turns:
    """The turning sentences for documents of a kind of tools."""
    return msgspec.json.decode(_data(f"turns_{tools}"), type=Turns)


@lru_cache(maxsize=1)
def phrases() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(_data("phrases"), type=dict[str, tuple[str, ...]])


@lru_cache(maxsize=1)
def name_parts() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(_data("names"), type=dict[str, tuple[str, ...]])


def _data(name: str) -> bytes:
    return (files("pamer_lab.corpus") / "data" / f"{name}.json").read_bytes()
