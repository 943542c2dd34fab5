"""The world behind a question: entities with names and facts, made before any trace is written.

Knows nothing of turns or wording.
Invariant: an entity's name is used once over all worlds made with one `taken` set; within a world every value belongs to one entity only,
so that a value in a text identifies its fact; the stories of an entity happen within its years.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pamer_lab.corpus.tables import Attribute, Domain, Draw, domain, fill, make_name, make_value, name_parts

MAINS = 8
"""Entities the task turns on; kinds are dealt evenly among them."""
OUTSIDERS = 56
"""Entities that only documents name."""
TOLD = 6
"""Stories kept of each entity."""
BYSTANDERS = 24
"""People and places that only stories name; several stories can name the same one."""
LOST_PERCENT = 12
"""Share of facts for which only a statement of loss exists, for mains and outsiders alike."""
PATIENCE = 40
"""Draws of a name before a number is added to it."""


@dataclass(frozen=True, eq=False)
class Entity:
    """A person, place, institution or service, with what is true of it."""

    name: str
    kind: str
    noun: str
    """What it is, as documents put it."""
    home: str
    """Where it belongs."""
    facts: dict[str, str]
    """Attribute -> value. The value of a lost attribute is never stated."""
    lost: frozenset[str]
    """Attributes for which the world has only a statement that nothing is left."""
    told: tuple[str, ...]
    """Stories about it besides its facts: the same in every document."""


@dataclass(frozen=True)
class Goal:
    """A sub-goal: one attribute of one entity."""

    entity: Entity
    attribute: str

    @property
    def value(self) -> str:
        return self.entity.facts[self.attribute]

    @property
    def dead(self) -> bool:
        """Whether the answer is that there is none."""
        return self.attribute in self.entity.lost


@dataclass(frozen=True)
class World:
    """Everything a question's documents can speak of."""

    question_id: str
    domain: Domain
    mains: tuple[Entity, ...]
    outsiders: tuple[Entity, ...]
    goals: tuple[Goal, ...]
    """One sub-goal for each main entity; the last one is what the task asks for."""

    def attribute(self, entity: Entity, name: str) -> Attribute:
        return self.domain.kinds[entity.kind].attributes[name]

    def describe(self, entity: Entity, name: str) -> str:
        """Words that describe a value without giving it: `the founder of the Dalby Folk Museum`."""
        return self.attribute(entity, name).desc.format(e=entity.name)

    def goal_of(self, entity: Entity) -> Goal:
        return next(goal for goal in self.goals if goal.entity is entity)


def make_world(draw: Draw, question_id: str, domain_name: str, taken: set[str], *, mains: int = MAINS, outsiders: int = OUTSIDERS) -> World:
    """A consistent world; its names are added to `taken`."""
    table = domain(domain_name)
    maker = _Maker(draw, table, taken)
    kinds = sorted(table.kinds)
    dealt = [kind for _ in range(-(-mains // len(kinds))) for kind in draw.shuffled(kinds)][:mains]
    named = [(kind, maker.name(kind)) for kind in [*dealt, *(kinds[number % len(kinds)] for number in range(outsiders))]]
    entities = maker.tell([maker.entity(kind, name) for kind, name in named])
    goals = tuple(Goal(entity, draw.pick(sorted(entity.facts))) for entity in entities[:mains])
    return World(question_id, table, tuple(entities[:mains]), tuple(entities[mains:]), goals)


class _Maker:
    """Names first, then facts, then stories: no value is also a word of a name, and no story gives a value of this world."""

    def __init__(self, draw: Draw, table: Domain, taken: set[str]) -> None:
        self.draw, self.table, self.taken = draw, table, taken
        self.used: set[str] = set()
        """Values, and the words of this world's names."""
        self.years: dict[str, tuple[int, int]] = {}
        """Entity -> its first and last year."""

    def name(self, kind_name: str) -> str:
        """A name that no world has yet; if no unused one is drawn, a number is added."""
        kind = self.table.kinds[kind_name]
        name, tries = "", 0
        while not name or name in self.taken:
            tries += 1
            name = make_name(self.draw, kind.pattern, kind.suffixes)
            if tries > PATIENCE:
                name += f"{'-' if self.table.tools == 'shell' else ' '}{self.draw.between(2, 9999)}"
        self.taken.add(name)
        self.used.update((name, *name.split()))
        return name

    def entity(self, kind_name: str, name: str) -> Entity:
        kind = self.table.kinds[kind_name]
        lost = frozenset(attribute for attribute in kind.attributes if self.draw.chance(LOST_PERCENT))
        home = self.draw.pick(name_parts()["region"]) if self.table.tools == "shell" else self._value("place")
        first = self._year(1741, 1900)
        last = self._year(first + 22, first + 68)
        self.years[name] = (first, last)
        ends = {"begin": str(first), "end": str(last)}
        facts = {key: ends.get(attribute.when) or self._value(attribute.value) for key, attribute in kind.attributes.items()}
        self.used.update(facts.values())
        return Entity(name, kind_name, self.draw.pick(kind.nouns), home, facts, lost, ())

    def tell(self, entities: Sequence[Entity]) -> list[Entity]:
        """The entities with their stories; a form is used again only after all forms of its kind."""
        people, places = ([self._value(kind) for _ in range(BYSTANDERS)] for kind in ("person", "place"))
        decks: dict[str, list[str]] = {kind: [] for kind in self.table.kinds}
        told: list[Entity] = []
        for entity in entities:
            deck, forms = decks[entity.kind], self.table.kinds[entity.kind].colour
            if len(deck) < TOLD:
                deck.extend(self.draw.shuffled([form for form in forms if form not in deck]))
            stories = [
                fill(
                    deck.pop(0),
                    n=str(self.draw.between(3, 90)),
                    y=self._year_within(entity.name),
                    l=self.draw.pick(places),
                    p=self.draw.pick(people),
                )
                for _ in range(TOLD)
            ]
            told.append(replace(entity, told=tuple(stories)))
        return told

    def _value(self, kind: str) -> str:
        value = ""
        while not value or value in self.used:
            value = make_value(self.draw, kind)
        self.used.add(value)
        return value

    def _year(self, low: int, high: int) -> int:
        """A year that is not a value yet, near the span if the span has none left."""
        free = [year for year in range(low, high + 1) if str(year) not in self.used]
        return self.draw.pick(free) if free else self._year(low - 10, high + 10)

    def _year_within(self, name: str) -> str:
        first, last = self.years[name]
        return str(self._year(first + 1, last - 1))
