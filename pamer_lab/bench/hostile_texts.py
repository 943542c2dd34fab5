"""Every compiled pattern of the package, and texts that make a bad one slow.

Texts are made from the pattern itself: its literals and one character of each class, alone, in pairs and after its beginning, repeated.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from itertools import chain, permutations
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import pamer_lab

FUNCTIONS = {"sub", "subn", "match", "search", "findall", "finditer", "split", "fullmatch"}
MOST_PIECES = 8
"""Maximum number of distinct characters to combine; a bad pattern needs fewer to go wrong."""


def package_patterns() -> dict[str, re.Pattern[Any]]:
    """Location -> pattern: those stored in modules and classes, also inside tuples and dicts, and those written inline in functions."""
    found: dict[str, re.Pattern[Any]] = {}
    for info in pkgutil.walk_packages(pamer_lab.__path__, "pamer_lab."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, pattern in chain(_kept(module), _written(module)):
            found.setdefault(f"{info.name}.{name}", pattern)
    unique = {(pattern.pattern, pattern.flags): name for name, pattern in reversed(found.items())}
    return {name: found[name] for name in sorted(unique.values())}


def _kept(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from _inside(value, name)


def _inside(value: Any, name: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, tuple | list | frozenset):
        for number, item in enumerate(value):
            yield from _inside(item, f"{name}.{number}")
    elif isinstance(value, dict) and len(value) < 1_000:
        for key, item in value.items():
            yield from _inside(item, f"{name}.{key}")
    elif isinstance(value, type) and value.__module__.startswith("pamer_lab"):
        for key, item in vars(value).items():
            if isinstance(item, re.Pattern):
                yield f"{name}.{key}", item


def _written(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Patterns given as text to `re.sub` and similar functions."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS and node.args:
            owner, given = node.func.value, node.args[0]
            if isinstance(owner, ast.Name) and owner.id == "re" and isinstance(given, ast.Constant):
                yield f"line {node.lineno}", re.compile(given.value)


def hostile_texts(pattern: re.Pattern[Any], length: int) -> dict[str, Any]:
    """Piece -> text of about this length, with an ending that nothing matches."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = _parser.parse(text, pattern.flags & ~re.DEBUG)
    letters = list(dict.fromkeys(_letters(parsed)))[:MOST_PIECES]
    begin = _beginning(parsed)
    pieces = [*letters, *("".join(pair) for pair in permutations(letters, 2)), "a1B_", "a@", "a.b/", "1,"]
    texts = {piece: piece * (length // len(piece)) for piece in pieces}
    if begin:
        texts[f"{begin} repeated"] = begin * (length // len(begin))
        texts |= {f"{begin} + {piece}": begin + piece * (length // len(piece)) for piece in letters}
        texts |= {f"({begin} {piece})": (begin + piece * 3) * (length // (len(begin) + 3 * len(piece))) for piece in letters}
    texts = {name: value + "\n\x00" for name, value in texts.items()}
    return texts if isinstance(pattern.pattern, str) else {name: value.encode() for name, value in texts.items()}


def _beginning(parsed: Any) -> str:
    """The shortest text the first items match, up to the first repetition without an upper limit."""
    out = ""
    for op, value in parsed:
        if op is sre.LITERAL:
            out += chr(value)
        elif op is sre.IN:
            out += _of_class(value)
        elif op is sre.SUBPATTERN:
            out += _beginning(value[3])
        elif op is sre.BRANCH:
            out += _beginning(value[1][0])
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, inner = value
            if high is sre.MAXREPEAT or high > 50:
                return out + _beginning(inner) * int(min(low, 50))
            out += _beginning(inner) * low
        elif op is sre.ATOMIC_GROUP:
            out += _beginning(value)
    return out[:200]


def _letters(parsed: Any) -> Iterator[str]:
    for op, value in parsed:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from _letters(value[2])
        elif op is sre.IN:
            yield _of_class(value)
        elif op is sre.NOT_LITERAL or op is sre.ANY:
            yield "a"
        elif op is sre.SUBPATTERN:
            yield from _letters(value[3])
        elif op is sre.BRANCH:
            for branch in value[1]:
                yield from _letters(branch)
        elif op is sre.ATOMIC_GROUP:
            yield from _letters(value)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _letters(value[1])
        elif op is sre.LITERAL:
            yield chr(value)


_SAMPLES = "aA1_-./:@ ,'\"=+%#\\\n~!xà\u200b\x1b<|["


def _of_class(items: Any) -> str:
    return next((char for char in _SAMPLES if _in_class(items, char)), "a")


def _in_class(items: Any, char: str) -> bool:
    negated = bool(items) and items[0][0] is sre.NEGATE
    inside = False
    for op, value in items:
        if op is sre.LITERAL:
            inside |= ord(char) == value
        elif op is sre.RANGE:
            inside |= value[0] <= ord(char) <= value[1]
        elif op is sre.CATEGORY:
            name = str(value)
            hit = char.isspace() if "SPACE" in name else char.isdigit() if "DIGIT" in name else char.isalnum() or char == "_"
            inside |= hit != ("NOT" in name)
    return inside != negated
