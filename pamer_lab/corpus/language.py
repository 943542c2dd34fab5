"""What a program can read in the texts of an arena task: questions, statements of facts, where a file is, and what it is kept under.

Knows the sentence forms of the word tables and no world: the same text gives the same findings, whoever asks. Values, names and
places are read from texts only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from pamer_lab.corpus.tables import DOMAINS, capital, domain

KEPT_UNDER = "The file on {e} is kept under {d}."
"""Said of a file that cannot be found by its name alone: the search also needs this value."""
NOTED = "Noted: {d} is {v}."
"""How the simulated agent writes down a fact."""
QUESTION = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_VALUE = r"(?P<v>(?!the\b)[^\s:;]+?(?: (?<!\. )[^\s:;]+?){0,3})"
"""Values have at most four words, on one line and in one sentence."""
_WORD = r"(?P<v>\S*\w)(?=\W*(?:\s|$))"
"""A value at the end of a form without a full stop."""
_BEGINS = r"(?:^|(?<=\n)|(?<=[.:]\s)|(?<=   ))"
PARSED = 50_000
"""Answers about texts that each function remembers."""


@dataclass(frozen=True)
class Wanted:
    """One attribute of one entity, such as the founder of a museum."""

    entity: str
    description: str
    """The table's words for it, with `{e}` for the entity."""

    @property
    def text(self) -> str:
        return self.description.format(e=self.entity)

    @property
    def words(self) -> str:
        """Words of a search for it."""
        return _attributes()[self.description][0]


@cache
def _attributes() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Description -> search words and sentence forms, over all domains."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name in DOMAINS:
        for kind in domain(name).kinds.values():
            for attribute in kind.attributes.values():
                words, forms = found.get(attribute.desc, (attribute.words, ()))
                found[attribute.desc] = (words, tuple(dict.fromkeys((*forms, *attribute.forms))))
    return found


@cache
def _descriptions() -> list[tuple[str, re.Pattern[str]]]:
    """Descriptions as patterns, the longest first: one may begin like another."""
    ordered = sorted(_attributes(), key=len, reverse=True)
    return [(text, re.compile(re.escape(text).replace(r"\{e\}", "(.+)"))) for text in ordered]


@lru_cache(maxsize=PARSED)
def described(text: str) -> Wanted | None:
    """What a description asks for; None if the text is not one."""
    for description, pattern in _descriptions():
        if match := pattern.fullmatch(text.strip()):
            return Wanted(match[1], description)
    return None


@lru_cache(maxsize=1_000)
def questions(task: str) -> tuple[Wanted, ...]:
    """The numbered questions of a task, in order."""
    return tuple(wanted for match in QUESTION.finditer(task) if (wanted := described(match[2])))


@lru_cache(maxsize=5_000)
def _statements(wanted: Wanted) -> re.Pattern[str]:
    """Matches every sentence that states it, including the simulated agent's own note."""
    forms = [*_attributes()[wanted.description][1], NOTED]
    patterns = []
    for number, form in enumerate(forms):
        value = (_WORD if form.endswith(("{v}", "{V}")) else _VALUE).replace("<v>", f"<v{number}>")
        pattern = re.escape(form).replace(r"\{e\}", re.escape(wanted.entity)).replace(r"\{E\}", re.escape(capital(wanted.entity)))
        pattern = pattern.replace(r"\{d\}", re.escape(wanted.text)).replace(r"\{v\}", value, 1).replace(r"\{V\}", value, 1)
        begins = _BEGINS if form.startswith(("{v}", "{V}")) else ""
        patterns.append(f"{begins}{pattern}" + (r"(?=\s|$)" if form.endswith(".") else ""))
    return re.compile("|".join(patterns), re.IGNORECASE)


@lru_cache(maxsize=PARSED)
def stated(wanted: Wanted, text: str) -> str | None:
    """The value that a text states, by its last statement; None where it states none."""
    if wanted.entity.casefold() not in text.casefold():
        return None
    value = None
    for match in _statements(wanted).finditer(text):
        value = next(group for group in match.groups() if group is not None)
    return value


@lru_cache(maxsize=PARSED)
def kept_under(wanted: Wanted, text: str) -> Wanted | None:
    """What the file on its entity is kept under, if the text says so."""
    if wanted.entity not in text:
        return None
    opening, closing = KEPT_UNDER.format(e=wanted.entity, d="\0").split("\0")
    found = re.findall(re.escape(opening) + r"([^\n]+?)" + re.escape(closing) + r"(?=\s|$)", text)
    return described(found[-1]) if found else None


@lru_cache(maxsize=PARSED)
def place(wanted: Wanted, text: str) -> str:
    """Number or path of the document on its entity, if a list names it; else empty."""
    if wanted.entity.casefold() not in text.casefold():
        return ""
    found = re.findall(rf"(?<!\w){re.escape(wanted.entity)}(?!\w)[^\n\[\]]*\[([\w./-]+)\]", text, re.IGNORECASE)
    return found[-1] if found else ""


@dataclass(frozen=True)
class Sight:
    """What can be read in some texts, oldest first."""

    texts: Sequence[str]

    def value(self, wanted: Wanted) -> str | None:
        return next((value for text in reversed(self.texts) if (value := stated(wanted, text)) is not None), None)

    def kept_under(self, wanted: Wanted) -> Wanted | None:
        return next((key for text in reversed(self.texts) if (key := kept_under(wanted, text))), None)

    def place(self, wanted: Wanted) -> str:
        return next((found for text in reversed(self.texts) if (found := place(wanted, text))), "")

    def way(self, wanted: Wanted) -> list[Wanted]:
        """What has to be known to find it, itself first: each is kept under the next, as far as the texts say."""
        found = [wanted]
        while (key := self.kept_under(found[-1])) is not None and key not in found:
            found.append(key)
        return found
