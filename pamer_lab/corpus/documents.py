"""Steps -> what the tools return: documents, lists, files and matching lines of one world.

Knows sentence forms and layouts, not labels: the output depends only on the facts a step states, not on its outcome.
Invariant: a document is about one entity (a long one about others first), states `step.values` once near its end, and its remark, if any,
is never the last sentence; what is read by number or path was named by an earlier list.
"""

from dataclasses import dataclass

from pamer_lab.corpus.plan import Link, Step
from pamer_lab.corpus.tables import Draw, fill, phrases
from pamer_lab.corpus.world import Entity, World

SIZES = (1, 2, 2, 3, 3, 4)
"""Numbers of stories about the subject besides its facts; drawn evenly."""
LONG_PERCENT = 3
"""Chance in percent that a result is a long one."""
LONG = (4, 17)
"""Other entries (fewest, most) before the one that counts, in a long result."""
NEIGHBOURS = (0, 0, 0, 0, 1)
"""Other entries in an ordinary list of hits; drawn evenly."""
OFFERED = (1, 2)
"""Pages a list names besides those it quotes."""
TRAILING_PERCENT = 30
"""Chance that another sentence follows the statement."""


@dataclass(frozen=True)
class Page:
    """Something that can be read: its number or path, and what the list says of it."""

    ref: str
    title: str


class Documents:
    """The archive of one world, worded from one stream of choices."""

    def __init__(self, draw: Draw, world: World) -> None:
        self.draw, self.world = draw, world
        self.shell = world.domain.tools == "shell"
        self._offered: list[Page] = []
        """Pages that lists have named and nobody has read, newest last."""
        self._refs: set[str] = set()

    def form(self, table: str) -> str:
        """A form from the table, or from its shell variant if the world has shell tools and the variant exists."""
        shell = f"{table}_shell"
        return self.draw.pick(phrases()[shell if self.shell and shell in phrases() else table])

    def take(self) -> Page | None:
        """A page that a recent list named, to be read now; None if there is none."""
        if not self._offered:
            return None
        newest = min(len(self._offered), 2)
        return self._offered.pop(-1 - self.draw.below(newest))

    def document(self, step: Step, page: Page) -> str:
        """A complete document or file."""
        parts = [self._part(stranger, self._about(stranger)) for stranger in self._strangers(step, self._long())]
        text = "\n\n".join([*parts, self._part(step.subject, self._sentences(step))])
        return text if self.shell else f"{page.ref}. {page.title}\n{text}"

    def hits(self, step: Step) -> str:
        """A list of search results, the one that counts last."""
        strangers = self._strangers(step, self._long() or self.draw.pick(NEIGHBOURS))
        return self._list([*((stranger, self._about(stranger)) for stranger in strangers), (step.subject, self._sentences(step))])

    def lines(self, step: Step) -> str:
        """Matching lines of some files."""
        strangers = self._strangers(step, self._long())
        lines = [f"also: {', '.join(page.ref for page in self._offer())}"]
        for sentences in (*map(self._about, strangers), self._sentences(step)):
            path, number = self._new_ref(), 0
            for sentence in sentences:
                number += self.draw.between(1, 30)
                lines.append(f"{path}:{number}: {sentence}")
        return "\n".join(lines)

    def side_hits(self, step: Step) -> str:
        """A second list of the same turn, with strangers only."""
        return self._list([(stranger, self._about(stranger)) for stranger in self._strangers(step, 2)])

    def failure(self) -> str:
        """What the tool says when it could not answer."""
        number = f"{self.draw.between(1000, 9999)}-{self.draw.between(100, 999)}"
        return fill(self.form("failures"), n=str(self.draw.between(20, 90)), i=number)

    def statement(self, subject: Entity, attribute: str, values: tuple[str, ...]) -> str:
        """The sentence that states a fact, its loss, or two values for it."""
        described = self.world.describe(subject, attribute)
        if not values:
            return fill(self.form("lost"), d=described)
        if len(values) > 1:
            return fill(self.form("disputed"), d=described, v=values[0], w=values[1])
        return fill(self.draw.pick(self.world.attribute(subject, attribute).forms), e=subject.name, v=values[0])

    def _sentences(self, step: Step) -> list[str]:
        told = self.draw.some(step.subject.told, self.draw.pick(SIZES) + 1)
        body = [fill(self.form("intro"), e=step.subject.name, n=step.subject.noun, h=step.subject.home), *told[1:]]
        if step.link:
            body.insert(self.draw.between(max(1, len(body) - 2), len(body)), self._remark(step.link))
        trailing = told[:1] if self.draw.chance(TRAILING_PERCENT) else []
        return [*body, self.statement(step.subject, step.attribute, step.values), *trailing]

    def _remark(self, link: Link) -> str:
        kind = self.world.attribute(link.by, link.attribute).value
        return fill(self.draw.pick(phrases()[f"link_{kind}"]), g=link.about.name, d=self.world.describe(link.by, link.attribute))

    def _long(self) -> int:
        """How many other entries this result begins with: none, unless it is a long one."""
        return self.draw.between(*LONG) if self.draw.chance(LONG_PERCENT) else 0

    def _strangers(self, step: Step, count: int) -> list[Entity]:
        return self.draw.some([entity for entity in self.world.outsiders if entity is not step.subject], count)

    def _about(self, stranger: Entity) -> list[str]:
        attribute = self.draw.pick(sorted(stranger.facts))
        values = () if attribute in stranger.lost else (stranger.facts[attribute],)
        return [*self.draw.some(stranger.told, self.draw.between(1, 2)), self.statement(stranger, attribute, values)]

    def _list(self, found: list[tuple[Entity, list[str]]]) -> str:
        count = f"{len(found)} result{'s, oldest first' if len(found) > 1 else ''}"
        also = "; ".join(f"{page.ref} ({page.title})" for page in self._offer())
        entries = [
            f"{number}. {self._label('titles', subject)} [{self._new_ref()}]\n   {' '.join(sentences)}"
            for number, (subject, sentences) in enumerate(found, start=1)
        ]
        return "\n".join([f"{count}. Also matching: {also}", *entries])

    def _part(self, subject: Entity, sentences: list[str]) -> str:
        foot = f"\n{self._label('feet', subject)}" if self.draw.chance(50) else ""
        return f"{self._label('headings', subject)}\n{' '.join(sentences)}{foot}"

    def _label(self, table: str, subject: Entity) -> str:
        source = self.draw.pick(self.world.domain.sources)
        return fill(self.form(table), e=subject.name, h=subject.home, src=source, p=str(self.draw.between(3, 480)))

    def _offer(self) -> list[Page]:
        pages = [Page(self._new_ref(), self._title()) for _ in range(self.draw.between(*OFFERED))]
        self._offered.extend(pages)
        return pages

    def _title(self) -> str:
        return f"{self.draw.pick(self.world.domain.sources)}, p. {self.draw.between(3, 480)}"

    def _new_ref(self) -> str:
        """A number or path that nothing in this trace has yet."""
        ref = ""
        while not ref or ref in self._refs:
            number = self.draw.between(10000, 99999)
            ref = f"{self.draw.pick(self.world.domain.sources)}/{number % 2000:04d}.md" if self.shell else f"D{number}"
        self._refs.add(ref)
        return ref
