"""What happens in a trace, before any text is written: sub-goals in order, one exhibit per step; and the labels that follow from it.

Knows the world and chance, not wording. Each step shows one exhibit (a document, or a list that ends with it); a sub-goal ends with the
exhibit that states its fact (the last one may stay open). Labels follow two rules (`docs/corpus.md`). Invariants: what an exhibit says is
true in the world, except the values it calls disputed; a positive recall label names blocks older than the two most recent ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pamer_lab.corpus.tables import Draw
from pamer_lab.corpus.world import Entity, Goal, World
from pamer_lab.trajectory.values import Label

Outcome = Literal["settles", "disputed", "aside", "kin", "alien", "detour", "failed"]
"""`settles`: states the sub-goal's fact, or that it is lost. `disputed`: gives two values for it, neither of them right. `aside`: another
attribute of the right entity. `kin`: the same attribute of a stranger of the same kind. `alien`: a stranger of another kind.
`detour`: an entity whose fact was settled long ago, with a remark that ties that fact to the sub-goal.
`failed`: the tool gives no answer, and the agent calls again."""


@dataclass(frozen=True)
class Link:
    """A remark that ties one entity's fact to another entity without giving the fact."""

    about: Entity
    by: Entity
    attribute: str


@dataclass(frozen=True)
class Step:
    """One block: a tool call for the sub-goal, and what came back."""

    goal: Goal
    outcome: Outcome
    subject: Entity
    attribute: str
    values: tuple[str, ...]
    """What the exhibit states of `subject`'s `attribute`: one value, none where it is lost, two where it is disputed."""
    link: Link | None
    need: Entity | None
    """The entity whose fact is needed next and is out of sight."""
    repeats: bool = False
    """The same call as the step before, with the same result."""


@dataclass(frozen=True)
class Pace:
    """How long a trace gets and how its parts are mixed; all rates in percent."""

    goals: tuple[int, int] = (5, 7)
    """Minimum and maximum number of sub-goals."""
    steps: tuple[int, int] = (10, 13)
    """Minimum and maximum number of steps: shorter plans are drawn again, longer ones end where the agent's budget ends."""
    settle: tuple[int, int] = (34, 46)
    """Chance that a step settles its sub-goal: at the third step, and from `ramp` steps on."""
    early: int = 36
    """The same chance at the first two steps, which have no older history."""
    detour: tuple[int, int] = (30, 40)
    """Chance that a step leads back to a fact out of sight, where there is one: at the third step, and from `ramp` steps on."""
    ramp: int = 12
    finish: bool = False
    """The asked sub-goal must be settled within `steps`: other plans are drawn again."""
    misses: tuple[Outcome, ...] = ("kin", "kin", "kin", "alien", "alien", "alien", "aside", "disputed")
    """Outcomes of the other steps; drawn evenly."""
    tied: int = 70
    """Chance that an exhibit carries a remark; a stranger's ties its own fact to the sub-goal, as a detour's does."""
    repeat: int = 4
    fail: int = 3
    """Chance that the tool fails."""
    led: int = 12
    """What a detour adds to the chance that the next step settles: it gave the agent a lead."""


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
        """Settled entity -> the newest block that shows its fact, in a result or restated by the agent."""
        self.settled: list[Entity] = []
        self.met: set[str] = set()
        """Outsiders shown so far: each is used once while there are unused ones."""

    def run(self, goals: list[Goal]) -> list[Step]:
        for goal in goals:
            while self._step(goal) != "settles":
                pass
        return self.steps

    def _step(self, goal: Goal) -> Outcome:
        before = self.steps[-1] if self.steps else None
        if before and self._can_repeat(before) and self.draw.chance(self.pace.repeat):
            self.steps.append(replace(before, repeats=True))
            return before.outcome
        if self.draw.chance(self.pace.fail) and not (before and before.outcome == "failed"):
            self.steps.append(Step(goal, "failed", goal.entity, goal.attribute, (), None, None))
            return "failed"
        number = len(self.steps)
        found = [entity for entity in self.settled if not self.world.goal_of(entity).dead]
        old = [entity for entity in found if self.shown[entity.name] <= number - 2]
        back = old and self.draw.chance(self._ramp(self.pace.detour))
        step = self._detour(goal, old) if back else self._plain(goal, old)
        self.steps.append(step)
        if step.outcome == "settles":
            self.settled.append(step.subject)
        for entity in (step.subject if step.outcome == "settles" else None, step.need):
            if entity:
                self.shown[entity.name] = number + 1  # the agent's next message says the value again
        return step.outcome

    def _can_repeat(self, before: Step) -> bool:
        """Whether a result may come twice; not if it mentions another main entity, which may be out of sight by then."""
        return before.outcome in ("kin", "alien", "aside") and not (before.link and before.link.by in self.world.mains)

    def _detour(self, goal: Goal, old: Sequence[Entity]) -> Step:
        subject = self.draw.pick(old)
        known = self.world.goal_of(subject).attribute
        attribute = self.draw.pick([name for name in sorted(subject.facts) if name != known])
        link = Link(goal.entity, subject, known)
        return Step(goal, "detour", subject, attribute, _stated(subject, attribute), link, subject)

    def _plain(self, goal: Goal, old: Sequence[Entity]) -> Step:
        outcome: Outcome = "settles" if self.draw.chance(self._settle()) else self.draw.pick(self.pace.misses)
        subject, attribute = goal.entity, goal.attribute
        values = _stated(subject, attribute)
        match outcome:
            case "kin":
                subject = self._stranger([goal.entity.kind])
                values = _stated(subject, attribute)
            case "alien":
                subject = self._stranger([kind for kind in self.world.domain.kinds if kind != goal.entity.kind])
                attribute = self.draw.pick(sorted(subject.facts))
                values = _stated(subject, attribute)
            case "aside":
                attribute = self.draw.pick([name for name in sorted(subject.facts) if name != attribute])
                values = _stated(subject, attribute)
            case "disputed":
                values = (self._stranger([subject.kind]).facts[attribute], self._stranger([subject.kind]).facts[attribute])
        return Step(goal, outcome, subject, attribute, values, self._link(goal, subject, old), None)

    def _settle(self) -> int:
        if len(self.steps) < 2:
            return self.pace.early
        return self._ramp(self.pace.settle) + (self.pace.led if self.steps[-1].outcome == "detour" else 0)

    def _ramp(self, ends: tuple[int, int]) -> int:
        first, last = ends
        return first + (last - first) * min(max(len(self.steps) - 2, 0), self.pace.ramp) // self.pace.ramp

    def _link(self, goal: Goal, subject: Entity, old: Sequence[Entity]) -> Link | None:
        """A remark in the form of a detour's, which needs nothing that is out of sight."""
        if not self.draw.chance(self.pace.tied):
            return None
        if subject is not goal.entity:
            return Link(goal.entity, subject, self.draw.pick(sorted(subject.facts)))
        near = [goal.entity for goal in self.world.goals if goal.entity not in (subject, *old) and not goal.dead]
        by = self.draw.pick(near) if near and self.draw.chance(40) else self._stranger(sorted(self.world.domain.kinds))
        known = by in self.world.mains
        return Link(subject, by, self.world.goal_of(by).attribute if known else self.draw.pick(sorted(by.facts)))

    def _stranger(self, kinds: Sequence[str]) -> Entity:
        others = [entity for entity in self.world.outsiders if entity.kind in kinds]
        found = self.draw.pick([entity for entity in others if entity.name not in self.met] or others)
        self.met.add(found.name)
        return found


def _stated(subject: Entity, attribute: str) -> tuple[str, ...]:
    return () if attribute in subject.lost else (subject.facts[attribute],)


ORIGIN = "generator"
FIRST_OLD = 3
"""At `t` the blocks up to `t - 3` are older than Recent2, so this is the first decision point that has one."""


def make_labels(steps: Sequence[Step]) -> list[Label]:
    """Labels for the decision points 1 to `len(steps)`."""
    labels: list[Label] = []
    settled_at: dict[str, int] = {}
    for number, step in enumerate(steps):
        t = number + 1
        if step.outcome == "settles":
            settled_at[step.subject.name] = number
        labels.append(Label(t, "compression", step.outcome == "settles" and t >= FIRST_OLD, ORIGIN))
        if any(block <= t - FIRST_OLD for block in settled_at.values()):
            needed = (settled_at[step.need.name],) if step.need else ()
            labels.append(Label(t, "recall", bool(needed), ORIGIN, steps=needed))
    return labels
