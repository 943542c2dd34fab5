"""What happens in a trace, before a word of it is written: sub-goals in order, one exhibit per step.

Knows the world and chance, not wording or labels. What always holds: each step shows one exhibit (a document, or a result
list that holds it); a sub-goal ends with the exhibit that states its fact (the last one may stay open); what an exhibit
says is true in the world, except what it withdraws; the form of an exhibit (layout, length, tool) is drawn without looking
at its outcome.
"""

from dataclasses import dataclass, replace
from typing import Literal

from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.world import Entity, Goal, World

Outcome = Literal["settles", "withdrawn", "outsider", "other"]
"""`settles`: states the sub-goal's fact, or that it is lost, as its last word. `withdrawn`: states a wrong value for it and then
takes it back. `outsider`: speaks of another entity. `other`: speaks of another attribute of the right entity."""


@dataclass(frozen=True)
class Step:
    """One block: a tool call for the sub-goal, and what came back."""

    goal: Goal
    outcome: Outcome
    subject: Entity
    attribute: str
    value: str
    """What the exhibit states of `subject`'s `attribute`; differs from the world only where it is withdrawn."""
    lost: bool
    """It states that nothing was recorded; `value` is then the number of that statement."""
    stands: bool
    """The statement is the exhibit's last word; otherwise it is taken back after it was made."""
    onward: Entity
    """A new entity that the exhibit sends its reader on to."""
    back: Entity | None
    """A settled entity that the exhibit sends its reader back to, where there is one."""
    back_last: bool
    """It sends back after it sent on, so that going back is its last word."""
    need: Entity | None
    """The entity whose fact is needed next and is out of sight."""
    repeats: bool = False
    """The same call as the step before, with the same result."""


@dataclass(frozen=True)
class Pace:
    """How long a trace gets and how its parts are mixed; all rates in percent."""

    goals: tuple[int, int] = (4, 6)
    """Least and most sub-goals."""
    steps: tuple[int, int] = (10, 15)
    """Least and most steps: shorter plans are drawn again, longer ones end where the agent's budget ends."""
    settle: tuple[int, int] = (36, 36)
    """Chance that a step settles its sub-goal: at the first step, and from `ramp` steps on."""
    back_last: tuple[int, int] = (18, 52)
    """Chance that an exhibit's last word sends its reader back: at the first step, and from `ramp` steps on."""
    ramp: int = 14
    finish: bool = False
    """The asked sub-goal must be settled within `steps`: other plans are drawn again."""
    recent_back: int = 12
    """Chance that it sends back to a fact still in sight although there is one out of sight."""
    outsider: int = 22
    other: int = 8
    """Shares of these outcomes among the steps that do not settle; the rest are withdrawn."""
    stands: int = 35
    """Chance that a statement beside the point stands."""
    repeat: int = 5


def make_plan(draw: Draw, world: World, pace: Pace | None = None) -> tuple[Step, ...]:
    """The steps of one run over the world's sub-goals; the asked one comes last."""
    pace = pace or Pace()
    while True:
        count = min(draw.between(*pace.goals), len(world.goals))
        goals = [*draw.some(world.goals[:-1], count - 1), world.goals[-1]]
        steps = _Planner(draw, world, pace).run(goals)
        least, most = pace.steps
        if pace.finish and least <= len(steps) <= most:
            return tuple(steps)
        if not pace.finish and len(steps) >= least:
            return tuple(steps[: draw.between(least, most)])


class _Planner:
    def __init__(self, draw: Draw, world: World, pace: Pace) -> None:
        self.draw, self.world, self.pace = draw, world, pace
        self.steps: list[Step] = []
        self.shown: dict[str, int] = {}
        """Main entity -> the newest block that shows its fact, in a result or restated by the agent."""
        self.settled: list[Entity] = []
        self.met: set[str] = set()
        """Outsiders shown so far: each comes once while there are fresh ones."""

    def run(self, goals: list[Goal]) -> list[Step]:
        for goal in goals:
            while self._step(goal) != "settles":
                pass
        return self.steps

    def _step(self, goal: Goal) -> Outcome:
        before = self.steps[-1] if self.steps else None
        if before and before.goal is goal and not before.back and self.draw.chance(self.pace.repeat):
            self.steps.append(replace(before, repeats=True))
            return before.outcome
        number = len(self.steps)
        outcome = self._outcome()
        subject, attribute, value, lost = self._content(goal, outcome)
        stands = outcome == "settles" or (outcome != "withdrawn" and self.draw.chance(self.pace.stands))
        onward = self._stranger(subject)
        back, out_of_sight = self._back(subject)
        back_last = back is not None and self.draw.chance(_ramp(self.pace.back_last, number, self.pace.ramp))
        need = back if back_last and out_of_sight else None
        self.steps.append(Step(goal, outcome, subject, attribute, value, lost, stands, onward, back, back_last, need))
        if outcome == "settles":
            self.settled.append(subject)
        for entity in (subject if outcome == "settles" else None, need):
            if entity:
                self.shown[entity.name] = number + 1  # the agent's next message says the value again
        return outcome

    def _outcome(self) -> Outcome:
        if self.draw.chance(_ramp(self.pace.settle, len(self.steps), self.pace.ramp)):
            return "settles"
        roll = self.draw.below(100)
        if roll < self.pace.outsider:
            return "outsider"
        return "other" if roll < self.pace.outsider + self.pace.other else "withdrawn"

    def _content(self, goal: Goal, outcome: Outcome) -> tuple[Entity, str, str, bool]:
        entity, attribute = goal.entity, goal.attribute
        if outcome == "settles":
            return entity, attribute, goal.value, goal.dead
        if outcome == "other":
            attribute = self.draw.pick([name for name in entity.facts if name != attribute])
            return entity, attribute, entity.facts[attribute], attribute in entity.lost
        alike = [stranger for stranger in self.world.outsiders if attribute in stranger.facts]
        stranger = self.draw.pick([stranger for stranger in alike if stranger.name not in self.met] or alike)
        self.met.add(stranger.name)
        return stranger if outcome == "outsider" else entity, attribute, stranger.facts[attribute], attribute in stranger.lost

    def _back(self, subject: Entity) -> tuple[Entity | None, bool]:
        """A settled entity to go back to, and whether its fact is out of sight at the next decision point."""
        number = len(self.steps)
        known = [entity for entity in self.settled if entity is not subject]
        old = [entity for entity in known if self.shown[entity.name] <= number - 2]
        recent = [entity for entity in known if entity not in old]
        if old and not (recent and self.draw.chance(self.pace.recent_back)):
            return self.draw.pick(old), True
        return (self.draw.pick(recent), False) if recent else (None, False)

    def _stranger(self, subject: Entity) -> Entity:
        others = [entity for entity in self.world.outsiders if entity is not subject]
        linked = self.draw.pick([entity for entity in others if entity.name not in self.met] or others)
        self.met.add(linked.name)
        return linked


def _ramp(ends: tuple[int, int], number: int, length: int) -> int:
    low, high = ends
    return low + (high - low) * min(number, length) // length
