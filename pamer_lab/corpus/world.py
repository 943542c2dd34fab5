"""The world behind a question: entities with names and facts, made before any trace is written.

Knows nothing of turns or wording. What always holds: an entity's name is used once over all the worlds made with one `taken`
set; within a world every value is stated of one entity only, so that a value in a text says whose fact was shown.
"""

from dataclasses import dataclass

from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import Attribute, Domain, domain, name_parts

MAINS = 8
"""Entities the task turns on; kinds are dealt evenly among them."""
OUTSIDERS = 56
"""Entities that only documents name."""
LOST_PERCENT = 12
"""Share of facts of which only a statement of loss exists, for mains and outsiders alike."""
PATIENCE = 40
"""Draws before a name gets a number."""


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
    """Attribute -> value. Of a lost attribute nobody states the value."""
    lost: frozenset[str]
    """Attributes of which the world keeps only the statement that nothing is left."""


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
        """The answer is that there is none."""
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
        """Words that stand for a value without giving it: `the founder of the Dalby Folk Museum`."""
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
    entities = [maker.entity(kind, name) for kind, name in named]
    goals = tuple(Goal(entity, draw.pick(sorted(entity.facts))) for entity in entities[:mains])
    return World(question_id, table, tuple(entities[:mains]), tuple(entities[mains:]), goals)


class _Maker:
    """Names first, then facts, so that no value is also a word of a name."""

    def __init__(self, draw: Draw, table: Domain, taken: set[str]) -> None:
        self.draw, self.table, self.taken = draw, table, taken
        self.used: set[str] = set()
        """Values, and the words of this world's names."""

    def name(self, kind_name: str) -> str:
        """A name that no world has yet; when the tables run dry a number is added."""
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
        facts = {name: self._value(attribute.value) for name, attribute in kind.attributes.items()}
        return Entity(name, kind_name, self.draw.pick(kind.nouns), home, facts, lost)

    def _value(self, kind: str) -> str:
        value = ""
        while not value or value in self.used:
            value = make_value(self.draw, kind)
        self.used.add(value)
        return value


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
        case "year":
            return str(draw.between(1741, 1968))
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
