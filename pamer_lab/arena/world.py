"""One task: a world made by the corpus generator, its tools, and the grader.

A task asks for several facts. A file is found by its entity's name, or is kept under another fact that has to be found first; later
questions need facts of earlier ones again. Tools answer from the world alone. Invariants: seed, number and level determine everything; the
same call gets the same answer; a value belongs to one entity, so it cannot be guessed from the wording.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pamer_lab.corpus.documents import Documents
from pamer_lab.corpus.language import KEPT_UNDER, Wanted
from pamer_lab.corpus.tables import DOMAINS, Draw, fill, phrases
from pamer_lab.corpus.world import Entity, World, make_world
from pamer_lab.corpus.writer import TOOLS
from pamer_lab.counts import whole_number
from pamer_lab.errors import InputError
from pamer_lab.trajectory.values import Message, Tool, ToolCall

VERSION = 1
"""Incremented whenever the same seed, number and level would give a different task."""
OUTSIDERS = 48
_WORD = re.compile(r"\w+")
RULES = (
    "Find out each of the following. When you have all of them, answer in one line: ANSWER: first; second; ... in this order, "
    "with `unknown` for what you could not find.\n{list}\n"
    "Some files cannot be found by name alone: the search then says what a file is kept under. Find that out first, and "
    "search again with the name and what you found."
)


@dataclass(frozen=True)
class Level:
    """The difficulty of a task."""

    facts: int = 4
    """Facts that the answer needs."""
    distance: int = 2
    """Files on the way to each fact: each has to be read before the next can be found."""
    noise: int = 4
    """Distractors in each list and document, in the same form as the relevant entry."""

    def __post_init__(self) -> None:
        if not (1 <= self.facts <= 12 and 0 <= self.distance <= 8 and 0 <= self.noise <= 30):
            raise InputError("a level has 1 to 12 facts, a distance of 0 to 8 and a noise of 0 to 30")

    @property
    def name(self) -> str:
        return f"{self.facts}-{self.distance}-{self.noise}"

    @classmethod
    def parse(cls, text: str) -> "Level":
        """`4-2-4`: facts, distance and noise."""
        parts = text.split("-")
        numbers = [number for part in parts if (number := whole_number(part)) is not None]
        if len(parts) != 3 or len(numbers) != 3:
            raise InputError(f"a level is FACTS-DISTANCE-NOISE, such as 4-2-4, not {text[:40]!r}")
        return cls(*numbers)


@dataclass(frozen=True, eq=False)
class File:
    """The document about one entity."""

    entity: Entity
    attribute: str
    ref: str
    key: "File | None" = None
    """The file whose fact this one is kept under."""

    @property
    def value(self) -> str:
        return self.entity.facts[self.attribute]


@dataclass(frozen=True)
class Grade:
    """The grade of an answer."""

    right: tuple[bool, ...]
    """For each fact, in the task's order."""

    @property
    def reward(self) -> float:
        """1 if every fact is right, else 0."""
        return float(all(self.right))

    @property
    def share(self) -> float:
        return sum(self.right) / len(self.right)


@dataclass(frozen=True)
class Task:
    """One task with its world."""

    seed: int
    number: int
    level: Level = field(default_factory=Level)

    @property
    def task_id(self) -> str:
        return f"arena-{self.level.name}-s{self.seed}-{self.number:04d}"

    @cached_property
    def world(self) -> World:
        mains = self.level.facts * (self.level.distance + 1)
        name = DOMAINS[self.number % len(DOMAINS)]
        return make_world(self._draw("world"), self.task_id, name, set(), mains=mains, outsiders=OUTSIDERS)

    @property
    def shell(self) -> bool:
        return self.world.domain.tools == "shell"

    @property
    def tools(self) -> tuple[Tool, ...]:
        return TOOLS[self.world.domain.tools]

    @cached_property
    def _chains(self) -> tuple[tuple[File, ...], ...]:
        """For each question, the files on the way to its fact; the last one contains the fact."""
        draw, length = self._draw("files"), self.level.distance + 1
        chains: list[tuple[File, ...]] = []
        refs: set[str] = set()
        for number in range(self.level.facts):
            late = number - (self.level.facts + 1) // 2
            key = chains[late][-1] if late >= 0 else None
            chain: list[File] = []
            for entity in self.world.mains[number * length : (number + 1) * length]:
                known = [name for name in sorted(entity.facts) if name not in entity.lost] or sorted(entity.facts)
                key = File(entity, draw.pick(known), _ref(draw, self.world, refs), key)
                chain.append(key)
            chains.append(tuple(chain))
        return tuple(chains)

    @cached_property
    def files(self) -> dict[str, File]:
        """Every document, by number or path."""
        own = {file.ref: file for chain in self._chains for file in chain}
        draw, refs = self._draw("strangers"), set(own)
        others = [File(entity, draw.pick(sorted(entity.facts)), _ref(draw, self.world, refs)) for entity in self.world.outsiders]
        return own | {file.ref: file for file in others}

    @cached_property
    def asked(self) -> tuple[File, ...]:
        return tuple(chain[-1] for chain in self._chains)

    @property
    def needed(self) -> tuple[File, ...]:
        """Every file that has to be read."""
        return tuple(file for chain in self._chains for file in chain)

    def wanted(self, file: File) -> Wanted:
        return Wanted(file.entity.name, self.world.attribute(file.entity, file.attribute).desc)

    @cached_property
    def questions(self) -> tuple[Wanted, ...]:
        return tuple(self.wanted(file) for file in self.asked)

    @property
    def least_turns(self) -> int:
        """Turns of an agent that forgets nothing: per file a search (two if it is kept under a fact) and a read; then the answer."""
        return sum(2 + (file.key is not None) for file in self.needed) + 1

    @property
    def budget(self) -> int:
        """Maximum number of turns: 2.5 times `least_turns`."""
        return self.least_turns * 5 // 2

    def opening(self) -> list[Message]:
        """The system message and the task."""
        system = self._draw("system").pick(phrases()["systems_shell" if self.shell else "systems"])
        listed = "\n".join(f"{number}. {wanted.text}" for number, wanted in enumerate(self.questions, start=1))
        return [Message("system", system), Message("user", RULES.format(list=listed))]

    def answer(self, call: ToolCall) -> Message:
        """The result of a call, or an error that explains why it cannot be answered."""
        try:
            given = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            given = None
        name = "command" if call.name == "run_command" else next(iter(self._argument(call.name)), "")
        if not name:
            return self._failed(call, f"there is no tool {call.name[:60]!r}; the tools are {', '.join(tool.name for tool in self.tools)}")
        if not isinstance(given, dict) or not isinstance(given.get(name), str):
            return self._failed(call, f"{call.name} takes a JSON object with the text {name!r}")
        text = self._read(given[name]) if call.name in ("get_document", "read_file") else self._search(_query(given[name]))
        return Message("tool", text, tool_call_id=call.id, name=call.name)

    def _argument(self, tool: str) -> dict[str, Any]:
        return next((entry.parameters["properties"] for entry in self.tools if entry.name == tool), {})

    def _failed(self, call: ToolCall, reason: str) -> Message:
        return Message("tool", f"Error: {reason}", tool_call_id=call.id, name=call.name, error=True)

    def _read(self, ref: str) -> str:
        file = self.files.get(ref.strip())
        if file is None:
            return f"There is no document {ref.strip()[:80]}."
        draw = self._draw("document", file.ref)
        writer = Documents(draw, self.world)
        parts = [f"{_heading(other)}\n{self._about(draw, writer, other, file)}" for other in self._others(draw, file)]
        own = f"{_heading(file.entity)}\n{self._intro(writer, file.entity)} {self._told(draw, file)} {self._statement(writer, file)}"
        return f"{file.ref}\n" + "\n\n".join([*parts, own])

    def _search(self, query: str) -> str:
        file = self._best(query)
        if file is None:
            return "0 entries. Search with the name of a person, place, work or service."
        draw = self._draw("list", file.ref)
        writer = Documents(draw, self.world)
        entries = [(other, self._about(draw, writer, other, file)) for other in self._others(draw, file)]
        open_ = file.key is None or file.key.value.casefold() in query.casefold()
        own = f"{self._intro(writer, file.entity)} {self._told(draw, file)}"
        if not open_ and file.key:
            own += " " + KEPT_UNDER.format(e=file.entity.name, d=self.wanted(file.key).text)
        refs = {entry.entity.name: entry.ref for entry in self.files.values()}
        lines = [f"{len(entries) + 1} entries"]
        for number, (entity, text) in enumerate([*entries, (file.entity, own)], start=1):
            shown = f" [{refs[entity.name]}]" if entity is not file.entity or open_ else ""
            lines.append(f"{number}. {_heading(entity)}{shown}\n   {text}")
        return "\n".join(lines)

    def _best(self, query: str) -> File | None:
        """The file whose entity name matches the query best; None if no name matches well enough."""
        asked = set(_WORD.findall(query.casefold()))
        scored = []
        for file in self.files.values():
            words = [word for word in _WORD.findall(file.entity.name.casefold()) if word not in ("the", "at", "in", "of", "over")]
            share = sum(word in asked for word in words) / len(words)
            exact = file.entity.name.casefold() in query.casefold()
            scored.append((exact, share, len(words), file.ref, file))
        exact, share, _, _, file = max(scored, key=lambda entry: entry[:4])
        return file if exact or share > 0.5 else None

    def _others(self, draw: Draw, file: File) -> list[Entity]:
        """Unrelated entities, those of the same kind first: statements about them have the same form."""
        kin = [entity for entity in self.world.outsiders if entity.kind == file.entity.kind and entity is not file.entity]
        rest = [entity for entity in self.world.outsiders if entity not in kin and entity is not file.entity]
        return [*draw.some(kin, (self.level.noise + 1) // 2), *draw.some(rest, self.level.noise)][: self.level.noise]

    def _about(self, draw: Draw, writer: Documents, entity: Entity, file: File) -> str:
        attribute = file.attribute if file.attribute in entity.facts else draw.pick(sorted(entity.facts))
        values = () if attribute in entity.lost else (entity.facts[attribute],)
        return f"{' '.join(draw.some(entity.told, 2))} {writer.statement(entity, attribute, values)}"

    def _intro(self, writer: Documents, entity: Entity) -> str:
        return fill(writer.form("intro"), e=entity.name, n=entity.noun, h=entity.home)

    def _told(self, draw: Draw, file: File) -> str:
        return " ".join(draw.some(file.entity.told, 2))

    def _statement(self, writer: Documents, file: File) -> str:
        return writer.statement(file.entity, file.attribute, (file.value,))

    def grade(self, answer: str) -> Grade:
        """Compare the answer line, or the complete text if there is none, with the facts."""
        lines = re.findall(r"ANSWER:\s*(.+)", answer, re.IGNORECASE)
        given = lines[-1] if lines else answer
        parts = [part.strip().strip("`*\"'.").casefold() for part in given.split(";")]
        values = [file.value.casefold() for file in self.asked]
        if len(parts) == len(values):
            return Grade(tuple(part == value or _has(part, value) for part, value in zip(parts, values, strict=True)))
        return Grade(tuple(_has(given.casefold(), value) for value in values))

    def _draw(self, *words: object) -> Draw:
        return Draw(VERSION, self.seed, "arena", self.task_id, *words)


def _has(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def _heading(entity: Entity) -> str:
    return entity.name[:1].upper() + entity.name[1:]


def _query(text: str) -> str:
    """The search terms; for a shell command, its quoted words."""
    quoted = re.findall(r"['\"](.+?)['\"]", text)
    return " ".join(quoted) if quoted else text.removeprefix("kb find ")


def _ref(draw: Draw, world: World, taken: set[str]) -> str:
    ref = ""
    while not ref or ref in taken:
        number = draw.between(10000, 99999)
        ref = f"{draw.pick(world.domain.sources)}/{number:05d}.md" if world.domain.tools == "shell" else f"D{number}"
    taken.add(ref)
    return ref
