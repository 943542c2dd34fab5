"""The world behind a question: entities with names and facts, made before any trace is written.

Knows nothing of turns or wording. What always holds: an entity's name is used once over all the worlds made with one `taken`
set; within a world every value is stated of one entity only, so that a value in a text says whose fact was shown.
"""

from dataclasses import dataclass

from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import Domain, domain, name_parts

MAINS = 8
"""Entities the task turns on."""
OUTSIDERS = 56
"""Entities that only documents name."""
LOST_PERCENT = 15
"""Share of facts of which only a statement of loss exists, for mains and outsiders alike."""
PATIENCE = 40
"""Draws before a name gets a number."""


@dataclass(frozen=True)
class Entity:
    """A person, place, institution or service, with what is true of it."""

    name: str
    kind: str
    facts: dict[str, str]
    """Attribute -> value. For a lost attribute the value is the number of the statement that says so."""
    lost: frozenset[str]
    """Attributes of which the world keeps only the statement that nothing was recorded."""


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


def make_world(draw: Draw, question_id: str, domain_name: str, taken: set[str], *, mains: int = MAINS, outsiders: int = OUTSIDERS) -> World:
    """A consistent world; its names are added to `taken`."""
    table = domain(domain_name)
    maker = _Maker(draw, table, taken)
    named = [maker.name() for _ in range(mains + outsiders)]
    entities = [maker.entity(kind, name) for kind, name in named]
    goals = tuple(Goal(entity, draw.pick(table.kinds[entity.kind].attributes)) for entity in entities[:mains])
    return World(question_id, table, tuple(entities[:mains]), tuple(entities[mains:]), goals)


class _Maker:
    """Names first, then facts, so that no value is also a word of a name."""

    def __init__(self, draw: Draw, table: Domain, taken: set[str]) -> None:
        self.draw, self.table, self.taken = draw, table, taken
        self.used: set[str] = set()
        """Values, and the words of this world's names."""

    def name(self) -> tuple[str, str]:
        """A kind and a name that no world has yet; when the tables run dry a number is added."""
        kind_name = self.draw.pick(sorted(self.table.kinds))
        kind = self.table.kinds[kind_name]
        name, tries = "", 0
        while not name or name in self.taken:
            tries += 1
            name = make_name(self.draw, kind.pattern, kind.suffixes)
            if tries > PATIENCE:
                name += f"{'-' if kind.pattern == 'service' else ' '}{self.draw.between(2, 9999)}"
        self.taken.add(name)
        self.used.update((name, *name.split()))
        return kind_name, name

    def entity(self, kind_name: str, name: str) -> Entity:
        attributes = self.table.kinds[kind_name].attributes
        lost = frozenset(attribute for attribute in attributes if self.draw.chance(LOST_PERCENT))
        values = {attribute: "code" if attribute in lost else self.table.attributes[attribute].value for attribute in attributes}
        return Entity(name, kind_name, {attribute: self._value(kind) for attribute, kind in values.items()}, lost)

    def _value(self, kind: str) -> str:
        value = ""
        while not value or value in self.used:
            value = make_value(self.draw, kind)
        self.used.add(value)
        return value


def make_name(draw: Draw, pattern: str, suffixes: tuple[str, ...] = ()) -> str:
    """A name of the given pattern."""
    parts = name_parts()

    match pattern:
        case "person":
            return f"{draw.pick(parts['first'])} {draw.pick(parts['surname'])}"
        case "person-last":
            return f"{draw.pick(parts['surname'])} {draw.pick(suffixes)}"
        case "the-place":
            return f"the {draw.pick(parts['place'])} {draw.pick(suffixes)}"
        case "service":
            return f"{draw.pick(parts['service_first'])}-{draw.pick(parts['service_second'])}"
        case _:
            return f"{draw.pick(parts['place'])} {draw.pick(suffixes)}" if suffixes else draw.pick(parts["place"])


def make_value(draw: Draw, kind: str) -> str:
    """A value of the given kind."""
    parts = name_parts()
    letters = "ABCDEFGHJKLMNPRSTVW"
    match kind:
        case "person":
            return make_name(draw, kind)
        case "place":
            return draw.pick(parts["place_before"]) + make_name(draw, kind)
        case "year":
            return str(draw.between(1741, 1968))
        case "ship":
            return f"{draw.pick(parts['first'])} {draw.pick(parts['surname'])}"
        case "team":
            return f"team-{draw.pick(parts['service_first'])}{draw.between(2, 99)}"
        case "host":
            return f"{draw.pick(parts['service_first'])[:4]}{draw.between(10, 99)}.{draw.pick(('east', 'west', 'north'))}"
        case "version":
            return f"{draw.between(1, 9)}.{draw.between(0, 30)}.{draw.between(0, 30)}"
        case "port":
            return str(draw.between(2000, 9999))
        case "ticket":
            return f"INC-{draw.between(10000, 99999)}"
        case "flag":
            return f"{draw.pick(parts['service_first'])}.{draw.pick(parts['service_second'])}_v{draw.between(2, 99)}"
        case _:
            return f"{draw.pick(letters)}{draw.pick(letters)} {draw.between(10, 99)}/{draw.between(100, 999)}"
