"""Labels worked out again from the world's record, the messages and the published sentence tables, without the plan.

A goal is settled by the first result that states its value, or its loss, of its entity while the agent is after it; a settled
fact is in sight in every block whose text holds both name and value; a result needs a fact when it describes it (`the founder
of ...`) without giving it. Values belong to one entity of a world, so text search is enough.
"""

import re
from collections.abc import Sequence

from pamer_lab.blocks import cut
from pamer_lab.corpus.tables import fill, name_parts, phrases
from pamer_lab.corpus.world import Goal, World
from pamer_lab.trajectory.values import Message

Derived = dict[tuple[int, str], tuple[bool, tuple[int, ...]]]
"""(decision point, target) -> (value, needed blocks)."""

BEFORE = "".join(rf"(?<!{re.escape(word)})" for word in name_parts()["place_before"] if word)
"""`Upper Alford` is another place than `Alford`."""


def holds(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w.-]){BEFORE}{re.escape(words)}(?![\w-])", text, re.IGNORECASE) is not None


def rederive(world: World, messages: Sequence[Message]) -> Derived:
    blocks = [list(block.of(messages)) for block in cut(messages).blocks][:-1]
    settled: dict[str, int] = {}
    derived: Derived = {}
    for number, block in enumerate(blocks):
        t = number + 1
        said, result = block[0].content, "\n".join(message.content for message in block[1:])
        aim = _aim(world, said)
        settles = aim.entity.name not in settled and _settles(world, result, aim)
        if settles:
            settled[aim.entity.name] = number
        derived[t, "compression"] = (settles and t >= 3, ())
        if any(block_number <= t - 3 for block_number in settled.values()):
            needed = tuple(
                settled[goal.entity.name]
                for goal in world.goals
                if settled.get(goal.entity.name, t) <= t - 3
                and not goal.dead
                and world.describe(goal.entity, goal.attribute).lower() in result.lower()
                and not any(_states("\n".join(message.content for message in recent), goal) for recent in blocks[t - 2 : t])
            )
            derived[t, "recall"] = (bool(needed), needed)
    return derived


def _states(text: str, goal: Goal) -> bool:
    return holds(text, goal.entity.name) and holds(text, goal.value)


def _settles(world: World, result: str, goal: Goal) -> bool:
    if not goal.dead:
        return _states(result, goal)
    described = world.describe(goal.entity, goal.attribute)
    return any(fill(form, d=described) in result for table in ("lost", "lost_shell") for form in phrases()[table])


def _aim(world: World, said: str) -> Goal:
    """The goal that a message ends with: its entity is the last one named."""
    return max(world.goals, key=lambda goal: said.lower().rfind(goal.entity.name.lower()))
