"""Labels worked out again from the world's record and the messages alone, without the plan or the generator's rules.

A goal is settled by the first result that holds both its entity's name and its value; a settled fact is in sight in every block whose
text holds both. Values belong to one entity of a world, so text search is enough.
"""

import re
from collections.abc import Sequence

from pamer_lab.blocks import cut
from pamer_lab.corpus.world import Goal, World
from pamer_lab.trajectory.values import Message

Derived = dict[tuple[int, str], tuple[bool, tuple[int, ...]]]
"""(decision point, target) -> (value, needed blocks)."""


def holds(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(words)}(?![\w-])", text, re.IGNORECASE) is not None


def rederive(world: World, messages: Sequence[Message]) -> Derived:
    blocks = [list(block.of(messages)) for block in cut(messages).blocks][:-1]
    settled: dict[str, int] = {}
    derived: Derived = {}
    for number, block in enumerate(blocks):
        t = number + 1
        said, result = block[0].content, "\n".join(message.content for message in block[1:])
        aim = _aim(world, said)
        settles = aim.entity.name not in settled and _states(result, aim)
        if settles:
            settled[aim.entity.name] = number
        derived[t, "compression"] = (settles and t >= 3, ())
        if any(block_number <= t - 3 for block_number in settled.values()):
            needed = tuple(
                settled[goal.entity.name]
                for goal in world.goals
                if settled.get(goal.entity.name, t) <= t - 3
                and holds(result, goal.entity.name)
                and not any(_states("\n".join(message.content for message in recent), goal) for recent in blocks[t - 2 : t])
            )
            derived[t, "recall"] = (bool(needed), needed)
    return derived


def _states(text: str, goal: Goal) -> bool:
    return holds(text, goal.entity.name) and holds(text, goal.value)


def _aim(world: World, said: str) -> Goal:
    """The goal that a message ends with: its entity is the last one named."""
    return max(world.goals, key=lambda goal: said.lower().rfind(goal.entity.name.lower()))
