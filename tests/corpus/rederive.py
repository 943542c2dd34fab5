"""Labels worked out again from the world's record, the messages and the published sentence tables, without the plan.

A goal is settled by the first result that states its value of its entity and does not take it back afterwards; a settled fact is in
sight in every block whose text holds both name and value; a result's last word on where to look is its last sentence of a `back` or
`onward` form. Values belong to one entity of a world, so text search is enough.
"""

import re
from collections.abc import Sequence

from pamer_lab.blocks import cut
from pamer_lab.corpus.tables import turns
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
        settles = aim.entity.name not in settled and _states(result, aim) and not _taken_back(world, result, aim.value)
        if settles:
            settled[aim.entity.name] = number
        derived[t, "compression"] = (settles and t >= 3, ())
        if any(block_number <= t - 3 for block_number in settled.values()):
            lead = _last_lead(world, result)
            needed = tuple(
                settled[goal.entity.name]
                for goal in world.goals
                if settled.get(goal.entity.name, t) <= t - 3
                and goal.entity.name == lead
                and not any(_states("\n".join(message.content for message in recent), goal) for recent in blocks[t - 2 : t])
            )
            derived[t, "recall"] = (bool(needed), needed)
    return derived


def _states(text: str, goal: Goal) -> bool:
    return holds(text, goal.entity.name) and holds(text, goal.value)


def _pattern(world: World, forms: Sequence[str]) -> re.Pattern[str]:
    """Any of the forms with any agent; `{g}` becomes a group."""
    agents = "|".join(re.escape(agent) for agent in turns(world.domain.tools).agents)
    texts = [re.escape(form).replace(r"\{agent\}", f"(?:{agents})").replace(r"\{g\}", "(?P<g>.+?)") for form in forms]
    names = [text.replace("?P<g>", f"?P<g{number}>") for number, text in enumerate(texts)]
    return re.compile("|".join(names), re.IGNORECASE)


def _taken_back(world: World, result: str, value: str) -> bool:
    after = result[result.rfind(value) :]
    return _pattern(world, turns(world.domain.tools).struck).search(after) is not None


def _last_lead(world: World, result: str) -> str:
    table = turns(world.domain.tools)
    found = [next(group for group in match.groups() if group) for match in _pattern(world, (*table.back, *table.onward)).finditer(result)]
    return found[-1]


def _aim(world: World, said: str) -> Goal:
    """The goal that a message ends with: its entity is the last one named."""
    return max(world.goals, key=lambda goal: said.lower().rfind(goal.entity.name.lower()))
