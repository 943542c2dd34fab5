"""Steps -> texts: what the agent says, what it asks its tools, and what the tools return.

Knows sentence forms and layouts, not labels: everything here that depends on a step's outcome stands in the message
after the result, never in the result itself. What always holds: a result states `step.value` of `step.subject` once,
and of two turning sentences the one that the step makes its last word comes later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pamer_lab.corpus.plan import Step
from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import phrases, turns
from pamer_lab.corpus.world import Entity, World

SIZES = ((0, 1), (0, 1), (1, 2), (1, 2), (1, 3), (1, 3), (2, 4), (2, 4), (3, 6), (6, 9))
"""Filler sentences of a document, least and most; drawn evenly."""
LONG_PERCENT = 2
LONG = (30, 75)
"""Now and then a document is long: 500 tokens and more."""
NAMED_IN_TASK = 7
"""Names in the task besides the one it asks about, at most."""
NAMED_IN = ("title", "statement", "statement", "footer", "footer")
"""Where a document names its subject; drawn evenly."""


@dataclass(frozen=True)
class Turn:
    """One block in words."""

    text: str
    tool: str
    arguments: dict[str, str]
    result: str


class Wording:
    """The voice of one trace: its words come from one stream of choices."""

    def __init__(self, draw: Draw, world: World, *, tools: Sequence[str] = ()) -> None:
        self.draw, self.world = draw, world
        self._tools = list(tools)
        """Tools of the coming turns, last first; when empty, chance decides."""
        self.shell = world.domain.tools == "shell"
        self._used: dict[str, list[str]] = {}
        self._last: Turn | None = None

    def say(self, table: str, **slots: str) -> str:
        """A form of the table, in turn over a shuffled deck so that forms repeat late."""
        deck = self._used.setdefault(table, [])
        if not deck:
            deck.extend(self.draw.shuffled(phrases()[table]))
        return capital(deck.pop().format(**slots))

    def system(self) -> str:
        return self.say("systems_shell" if self.shell else "systems")

    def task(self) -> str:
        """The task: what is asked, and the names it starts from."""
        goal = self.world.goals[-1]
        names = self.draw.some([entity.name for entity in self.world.mains if entity is not goal.entity], NAMED_IN_TASK)
        return self.say("tasks_shell" if self.shell else "tasks", a=goal.attribute, e=goal.entity.name, list=listed(names))

    def turn(self, step: Step, before: Step | None, done: list[Entity]) -> Turn:
        """The block of a step: reaction to the result before, aim, call, result."""
        aim = self.say("aims", a=step.goal.attribute, e=step.goal.entity.name)
        text = " ".join([*self.reaction(before, done), aim])
        if step.repeats and self._last:
            self._last = replace(self._last, text=text)
        else:
            tool, arguments, result = self._shell(step) if self.shell else self._archive(step)
            self._last = Turn(text, tool, arguments, result)
        return self._last

    def reaction(self, before: Step | None, done: list[Entity]) -> list[str]:
        """What the agent makes of the last result; a settled fact and a recalled one are always said with their value."""
        if before is None:
            return []
        parts: list[str] = []
        slots = {"a": before.goal.attribute, "e": before.goal.entity.name, "v": before.value, "s": before.subject.name}
        match before.outcome:
            case "settles":
                parts.append(self.say("after_dead" if before.lost else "after_settled", **slots))
            case "withdrawn" if self.draw.chance(60):
                parts.append(self.say("after_withdrawn", **slots))
            case "outsider" if self.draw.chance(60):
                parts.append(self.say("after_miss", **slots))
            case "other" if self.draw.chance(60):
                parts.append(self.say("after_other", **slots))
            case _:
                pass
        if before.need:
            goal = next(goal for goal in self.world.goals if goal.entity is before.need)
            parts.append(self.say("recalled", g=goal.entity.name, a=goal.attribute, v=goal.value))
        if len(done) > 1 and self.draw.chance(20):
            parts.append(self.say("notes", list=listed([entity.name for entity in done])))
        return parts

    def final(self, last: Step, done: list[Entity]) -> str:
        """The answer, or the admission that the budget ran out first."""
        goal = self.world.goals[-1]
        slots = {"a": goal.attribute, "e": goal.entity.name, "v": goal.value}
        if last.outcome == "settles" and last.goal is goal:
            return " ".join([*self.reaction(last, done)[1:], self.say("finals_dead" if goal.dead else "finals", **slots)])
        return " ".join([*self.reaction(last, done), self.say("finals_open", **slots)])

    def _archive(self, step: Step) -> tuple[str, dict[str, str], str]:
        tool = self._tools.pop() if self._tools else ("search" if self.draw.chance(55) else "get_document")
        if tool == "search":
            return tool, {"query": self._query(step)}, self._hits(step)
        return tool, {"document_id": f"D{self.draw.between(10000, 99999)}"}, self._document(step)

    def _query(self, step: Step) -> str:
        return self.say("queries", e=step.goal.entity.name, a=step.goal.attribute)

    def side_search(self, step: Step) -> Turn:
        """A second search of the same turn, which finds strangers only."""
        entries = [self._entry(stranger, [fact]) for stranger, fact in self._noise(step, 2, named=False)]
        return Turn("", "search", {"query": self._query(step)}, self._listing(entries))

    def _shell(self, step: Step) -> tuple[str, dict[str, str], str]:
        name, source = step.goal.entity.name, self.draw.pick(self.world.domain.sources)
        if self.draw.chance(50):
            pattern = self.draw.pick((name, step.goal.attribute, name.split("-")[0]))
            return "run_command", {"command": f"grep -rn '{pattern}' {source}/ | head"}, self._grep(step)
        return (
            "read_file",
            {"path": f"{source}/{self.draw.between(100, 999)}-{self.draw.pick(('notes', 'card', 'main'))}.md"},
            self._document(step),
        )

    def statement(self, entity: Entity, attribute: str, value: str, lost: bool, *, named: bool = True) -> str:
        """The sentence that states a fact; the entity is named, or only referred to."""
        forms = phrases()["dead_forms"] if lost else self.world.domain.attributes[attribute].forms
        name = entity.name if named else self.draw.pick(self.world.domain.kinds[entity.kind].referents)
        text = self.draw.pick(forms).format(a=attribute, e=name, v=value)
        return text if self.shell else capital(text)

    def filler(self) -> str:
        table = self.world.domain.fillers
        words = [self.draw.pick(table[part]) for part in ("subject", "verb", "object")]
        return " ".join(words) + self.draw.pick(table["tail"]) + ("" if self.shell else ".")

    def _core(self, step: Step, *, named: bool) -> list[str]:
        """The sentences that carry a step: statement and withdrawal, back and onward, each pair in its order."""
        table = turns(self.world.domain.tools)
        fact = self.statement(step.subject, step.attribute, step.value, step.lost, named=named)
        verdict = [self._act(table.struck), self._act(table.upheld, fact=fact)]
        leads = [self._act(table.onward, g=step.onward.name)]
        if step.back:
            leads.append(self._act(table.back, g=step.back.name))
        if not step.stands:
            verdict.reverse()
        if not step.back_last:
            leads.reverse()
        sentences: list[str] = []
        while verdict or leads:
            take_verdict = not leads or (bool(verdict) and self.draw.chance(50))
            sentences.append((verdict if take_verdict else leads).pop(0))
        return sentences

    def _act(self, forms: Sequence[str], **slots: str) -> str:
        text = self.draw.pick(forms).format(agent=self.draw.pick(turns(self.world.domain.tools).agents), **slots)
        return text if self.shell else capital(text)

    def _mixed(self, core: list[str], fillers: int) -> list[str]:
        """The core sentences in their order, with fillers between and before them, and at most one after."""
        sentences = list(core)
        for number in range(fillers):
            place = self.draw.below(len(sentences) + 1) if number == 0 else self.draw.below(len(sentences))
            sentences.insert(place, self.filler())
        return sentences

    def _document(self, step: Step) -> str:
        """A document that names its subject in one place: the title, the statement or the footer."""
        place = self.draw.pick(NAMED_IN)
        table = self.world.domain
        title = capital(self.draw.pick(table.titles).format(e=step.subject.name)) if place == "title" else self.draw.pick(table.bare_titles)
        size = LONG if self.draw.chance(LONG_PERCENT) else self.draw.pick(SIZES)
        sentences = self._mixed(self._core(step, named=place == "statement"), self.draw.between(*size))
        if self.shell:
            body = "\n".join(f"- {sentence}" for sentence in sentences)
        else:
            body = "\n".join(" ".join(part) for part in self._paragraphs(sentences))
        source = self.draw.pick(table.sources)
        footer = self.say("footers", src=source, s=step.subject.name) if place == "footer" else self.say("bare_footers", src=source)
        return f"{title}\n{body}\n{footer}"

    def _paragraphs(self, sentences: list[str]) -> list[list[str]]:
        parts: list[list[str]] = []
        rest = sentences
        while rest:
            size = self.draw.between(3, 6)
            parts.append(rest[:size])
            rest = rest[size:]
        return parts

    def _hits(self, step: Step) -> str:
        """A result list, oldest entries first: strangers, then the step's exhibit."""
        entries = [self._entry(step.subject, self._mixed(self._core(step, named=False), self.draw.between(0, 1)))]
        for stranger, fact in self._noise(step, self.draw.pick((0, 1, 1, 2)), named=False):
            entries.insert(0, self._entry(stranger, self._mixed([fact], self.draw.between(0, 1))))
        return self._listing(entries)

    def _listing(self, entries: list[str]) -> str:
        lines = [f"{number}. {entry}" for number, entry in enumerate(entries, 1)]
        return "\n".join([f"{self.draw.pick(phrases()['search_heads'])} ({len(entries)})", *lines])

    def _noise(self, step: Step, count: int, *, named: bool) -> list[tuple[Entity, str]]:
        """Statements about strangers."""
        pool = [entity for entity in self.world.outsiders if entity is not step.subject and entity is not step.onward]
        found: list[tuple[Entity, str]] = []
        for stranger in self.draw.some(pool, count):
            attribute = self.draw.pick(sorted(stranger.facts))
            fact = self.statement(stranger, attribute, stranger.facts[attribute], attribute in stranger.lost, named=named)
            found.append((stranger, fact))
        return found

    def _entry(self, entity: Entity, sentences: list[str]) -> str:
        title = capital(self.draw.pick(self.world.domain.titles).format(e=entity.name))
        return f"{title} [D{self.draw.between(10000, 99999)}]\n   {' '.join(sentences)}"

    def _grep(self, step: Step) -> str:
        sentences = self._mixed(self._core(step, named=True), self.draw.between(0, 3))
        for _, fact in self._noise(step, self.draw.between(0, 1), named=True):
            sentences.insert(0, fact)
        folder = self.draw.pick(self.world.domain.sources)
        return "\n".join(f"{folder}/{self.draw.between(100, 999)}.md:{self.draw.between(3, 180)}: {sentence}" for sentence in sentences)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
