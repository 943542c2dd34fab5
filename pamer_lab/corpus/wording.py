"""Steps -> what the agent says and asks its tools.

Knows an agent's way of talking, not labels; `documents` writes the results. The message after a result says what the agent made of it
(a settled fact and a needed one with their values) and ends with the next sub-goal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pamer_lab.corpus.documents import Documents, Page
from pamer_lab.corpus.plan import Outcome, Step
from pamer_lab.corpus.tables import Draw, fill, habits
from pamer_lab.corpus.world import Entity, Goal, World

NAMED_IN_TASK = 7
"""Maximum number of names in the task besides the one it asks about."""
NOTE_PERCENT = 6
"""Chance that the agent lists what it has found."""
SEARCHED: dict[Outcome, int] = {"settles": 38, "disputed": 55, "aside": 55, "kin": 55, "alien": 60, "detour": 88, "failed": 60}
"""Chance in percent that a result came from a search rather than from reading a document: a search strays more often."""


@dataclass(frozen=True)
class Turn:
    """One block in words."""

    text: str
    tool: str
    arguments: dict[str, str]
    result: str
    page: Page | None
    """What was read; None for a search."""
    query: str


class Wording:
    """The voice of one trace."""

    def __init__(self, draw: Draw, world: World, *, tools: Sequence[str] = ()) -> None:
        self.draw, self.world = draw, world
        self.documents = Documents(draw, world)
        self._tools = list(tools)
        """Tools of the coming turns, last first; when empty, chance decides."""
        self._habit = draw.pick(habits())
        self._last: Turn | None = None

    def system(self) -> str:
        return self.documents.form("systems")

    def task(self) -> str:
        """The task: what is asked, and the names it starts from."""
        goal = self.world.goals[-1]
        others = self.draw.some([entity for entity in self.world.mains if entity is not goal.entity], NAMED_IN_TASK)
        return fill(self.documents.form("tasks"), ask=self._ask(goal), list=listed([f"{other.name} ({other.noun})" for other in others]))

    def turn(self, step: Step, before: Step | None, done: list[Entity]) -> Turn:
        """The block of a step: reaction to the result before, aim, call, result."""
        text = " ".join([*self.reaction(before, done), self._say("aim", ask=self._ask(step.goal))])
        again = self._last if before and before.outcome == "failed" else None
        if step.repeats and self._last:
            self._last = replace(self._last, text=text)
        else:
            extra = self.world.goal_of(before.need).value if before and before.need else ""
            self._last = self._call(step, text, extra, again)
        return self._last

    def reaction(self, before: Step | None, done: list[Entity]) -> list[str]:
        """What the agent makes of the last result."""
        if before is None:
            return []
        goal, subject = before.goal, before.subject
        slots = {"ask": self._ask(goal), "d": self.world.describe(goal.entity, goal.attribute), "e": goal.entity.name, "s": subject.name}
        parts: list[str] = []
        match before.outcome:
            case "settles" if goal.dead:
                parts.append(self._say("dead", **slots))
            case "settles":
                parts.append(self._say("yes", v=goal.value, **slots))
            case "detour":
                known = self.world.goal_of(subject)
                parts.append(self._say("recall", rd=self.world.describe(subject, known.attribute), rv=known.value))
            case "kin" | "alien":
                parts.append(self._say("no", **slots))
            case other:
                parts.append(self._say(other, **slots))
        if len(done) > 1 and self.draw.chance(NOTE_PERCENT):
            parts.append(fill(self.documents.form("notes"), list=listed([entity.name for entity in done])))
        return parts

    def final(self, last: Step, done: list[Entity]) -> str:
        """The answer, or the admission that the budget ran out first."""
        goal = self.world.goals[-1]
        slots = {"ask": self._ask(goal), "d": self.world.describe(goal.entity, goal.attribute), "v": goal.value}
        if last.outcome == "settles" and last.goal is goal:
            return fill(self.documents.form("finals_dead" if goal.dead else "finals"), **slots)
        return " ".join([*self.reaction(last, done), fill(self.documents.form("finals_open"), **slots)])

    def side_search(self, step: Step) -> Turn:
        """A second search of the same turn, which finds strangers only."""
        query = self._query(step, "")
        return Turn("", "search", {"query": query}, self.documents.side_hits(step), None, query)

    def _say(self, habit: str, **slots: str) -> str:
        return fill(self.draw.pick(self._habit[habit]), **slots)

    def _ask(self, goal: Goal) -> str:
        return self.world.attribute(goal.entity, goal.attribute).ask.format(e=goal.entity.name)

    def _call(self, step: Step, text: str, extra: str, again: Turn | None) -> Turn:
        """The call of a step, or the failed one again, with what comes back."""
        page, query = (again.page, again.query) if again else (self._page(step), "")
        query = query or ("" if page else self._query(step, extra))
        tool, arguments = self._request(page, query)
        if step.outcome == "failed":
            result = self.documents.failure()
        elif page:
            result = self.documents.document(step, page)
        else:
            result = self.documents.lines(step) if self.documents.shell else self.documents.hits(step)
        return Turn(text, tool, arguments, result, page, query)

    def _page(self, step: Step) -> Page | None:
        """The page to read, or none for a search: a search strays more often, and is the only choice while no list has named a page."""
        searches = self._tools.pop() == "search" if self._tools else self.draw.chance(SEARCHED[step.outcome])
        return None if searches else self.documents.take()

    def _request(self, page: Page | None, query: str) -> tuple[str, dict[str, str]]:
        if self.documents.shell:
            return ("read_file", {"path": page.ref}) if page else ("run_command", {"command": f"kb find '{query}'"})
        return ("get_document", {"document_id": page.ref}) if page else ("search", {"query": query})

    def _query(self, step: Step, extra: str) -> str:
        words = self.world.attribute(step.goal.entity, step.goal.attribute).words
        form = self.documents.form("queries")
        return " ".join(filter(None, (form.format(e=step.goal.entity.name, w=words), extra)))


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
