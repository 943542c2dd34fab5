"""`python -m pamer_lab.arena.tool LEVEL SEED NUMBER NAME ARGUMENTS`: one call of a task's tools, for agent programs."""

import sys

from pamer_lab.arena.world import Level, Task
from pamer_lab.trajectory.values import ToolCall

if __name__ == "__main__":
    level, seed, number, name, arguments = sys.argv[1:6]
    print(Task(int(seed), int(number), Level.parse(level)).answer(ToolCall("c", name, arguments)).content)
