"""Steps -> what the tools return: documents, lists, files and matching lines of one world.

Knows sentence forms and layouts, not labels: nothing here depends on a step's outcome but the facts it states. What always
holds: a document is about one entity, states `step.values` of it once near its end, and its remark, where it has one, is
never its last sentence.
"""

import re

from pamer_lab.corpus.plan import Link, Step
from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import phrases
from pamer_lab.corpus.world import Entity, World, make_value

SIZES = (1, 2, 2, 3, 3, 4)
"""Sentences told of the subject beside its facts; drawn evenly."""
LONG_PERCENT = 1
LONG = (6, 26)
"""Now and then a document stands at the end of a folder with this many others."""
NEIGHBOURS = (0, 0, 0, 0, 1)
"""Other entries in a list of hits; drawn evenly."""
TRAILING_PERCENT = 30
"""Chance that another sentence follows the statement."""

IDENTIFIER = re.compile(r"[a-z0-9]+[-_./]\w")


class Documents:
    """The archive of one world, worded from one stream of choices."""

    def __init__(self, draw: Draw, world: World) -> None:
        self.draw, self.world = draw, world
        self.shell = world.domain.tools == "shell"
        entities = (*world.mains, *world.outsiders)
        self._reserved = {value for entity in entities for value in (entity.name, entity.home, *entity.facts.values())}

    def form(self, table: str) -> str:
        """A form of the table; those for shell tools have a table of their own where one exists."""
        shell = f"{table}_shell"
        return self.draw.pick(phrases()[shell if self.shell and shell in phrases() else table])

    def document(self, step: Step) -> str:
        """A whole document or file."""
        page = self._page(step.subject, self._sentences(step))
        if not self.draw.chance(LONG_PERCENT):
            return page
        others = [self._page(stranger, self._about(stranger)) for stranger in self._strangers(step, self.draw.between(*LONG))]
        return "\n\n".join([*others, page])

    def hits(self, step: Step) -> str:
        """A list of search results, the one that counts last."""
        strangers = self._strangers(step, self.draw.pick(NEIGHBOURS))
        found = [*((stranger, self._about(stranger)) for stranger in strangers), (step.subject, self._sentences(step))]
        head = f"{len(found)} result{'s' if len(found) > 1 else ''}{', oldest first' if len(found) > 1 else ''}"
        return "\n".join([head, *(f"{number}. {self._entry(*entry)}" for number, entry in enumerate(found, start=1))])

    def lines(self, step: Step) -> str:
        """Matching lines of some files."""
        path = f"{self.draw.pick(self.world.domain.sources)}/{slug(step.subject.name)}.md"
        numbers = sorted(self.draw.between(1, 180) for _ in range(20))
        return "\n".join(f"{path}:{number}: {sentence}" for number, sentence in zip(numbers, self._sentences(step), strict=False))

    def side_hits(self, step: Step) -> str:
        """A second list of the same turn, with strangers only."""
        found = [self._entry(stranger, self._about(stranger)) for stranger in self._strangers(step, 2)]
        return "\n".join(["2 results, oldest first", *(f"{number}. {entry}" for number, entry in enumerate(found, start=1))])

    def statement(self, subject: Entity, attribute: str, values: tuple[str, ...]) -> str:
        """The sentence that states a fact, its loss, or two values for it."""
        described = self.world.describe(subject, attribute)
        if not values:
            return fill(self.form("lost"), d=described)
        if len(values) > 1:
            return fill(self.form("disputed"), d=described, v=values[0], w=values[1])
        return fill(self.draw.pick(self.world.attribute(subject, attribute).forms), e=subject.name, v=values[0])

    def _sentences(self, step: Step) -> list[str]:
        told = self._colour(step.subject, self.draw.pick(SIZES) + 1)
        body = [fill(self.form("intro"), e=step.subject.name, n=step.subject.noun, h=step.subject.home), *told[1:]]
        if step.link:
            body.insert(self.draw.between(max(1, len(body) - 2), len(body)), self._remark(step.link))
        trailing = told[:1] if self.draw.chance(TRAILING_PERCENT) else []
        return [*body, self.statement(step.subject, step.attribute, step.values), *trailing]

    def _remark(self, link: Link) -> str:
        kind = self.world.attribute(link.by, link.attribute).value
        return fill(self.draw.pick(phrases()[f"link_{kind}"]), g=link.about.name, d=self.world.describe(link.by, link.attribute))

    def _colour(self, subject: Entity, count: int) -> list[str]:
        forms = self.draw.some(self.world.domain.kinds[subject.kind].colour, count)
        return [
            fill(form, n=str(self.draw.between(3, 90)), y=self._free("year"), l=self._free("place"), p=self._free("person"))
            for form in forms
        ]

    def _free(self, kind: str) -> str:
        """A value that is no fact of this world."""
        value = make_value(self.draw, kind)
        while value in self._reserved:
            value = make_value(self.draw, kind)
        return value

    def _strangers(self, step: Step, count: int) -> list[Entity]:
        return self.draw.some([entity for entity in self.world.outsiders if entity is not step.subject], count)

    def _about(self, stranger: Entity) -> list[str]:
        attribute = self.draw.pick(sorted(stranger.facts))
        values = () if attribute in stranger.lost else (stranger.facts[attribute],)
        return [*self._colour(stranger, self.draw.between(1, 2)), self.statement(stranger, attribute, values)]

    def _page(self, subject: Entity, sentences: list[str]) -> str:
        foot = f"\n{self._label('feet', subject)}" if self.draw.chance(50) else ""
        return f"{self._label('titles', subject)}\n{' '.join(sentences)}{foot}"

    def _entry(self, subject: Entity, sentences: list[str]) -> str:
        return f"{self._label('titles', subject).lstrip('# ')} [D{self.draw.between(10000, 99999)}]\n   {' '.join(sentences)}"

    def _label(self, table: str, subject: Entity) -> str:
        source = self.draw.pick(self.world.domain.sources)
        return fill(self.form(table), e=subject.name, h=subject.home, src=source, p=str(self.draw.between(3, 480)))


def fill(form: str, **slots: str) -> str:
    """The form with its slots filled; a slot written large begins with a capital, and so does the text."""
    large = {name.upper(): capital(text) for name, text in slots.items()}
    return capital(form.format(**slots, **large))


def capital(text: str) -> str:
    """The text with a capital, unless it begins with an identifier such as `ledger-sync`."""
    return text if IDENTIFIER.match(text) else text[:1].upper() + text[1:]


def slug(name: str) -> str:
    """A name as it stands in a path."""
    return "-".join(name.lower().replace(".", "-").replace("_", "-").split())
