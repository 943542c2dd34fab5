"""Questions -> traces in our native format, the same bytes for the same seed.

Combines world, plan, wording and labels. Question `n` does not depend on how many questions follow; replicas of a question share its
world, task and tools, and differ in plan and words.
"""

from collections.abc import Iterator, Sequence

import orjson

from pamer_lab.corpus.labels import make_labels
from pamer_lab.corpus.plan import Pace, Step, make_plan
from pamer_lab.corpus.rng import Draw
from pamer_lab.corpus.tables import DOMAINS
from pamer_lab.corpus.wording import Wording
from pamer_lab.corpus.world import Entity, World, make_world
from pamer_lab.trajectory.formats.native import VERSION, NativeTrace
from pamer_lab.trajectory.values import Message, Tool, ToolCall

GENERATOR_VERSION = 4
"""Raised whenever the same seed gives other bytes."""


def _tool(name: str, description: str, argument: str) -> Tool:
    return Tool(name, description, {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]})


TOOLS = {
    "archive": (
        _tool("search", "Search the archive; returns short entries.", "query"),
        _tool("get_document", "Read one document of the archive.", "document_id"),
    ),
    "shell": (
        _tool("read_file", "Read a text file of the repository.", "path"),
        _tool("run_command", "Run a read-only shell command; `kb find` searches the notes by meaning.", "command"),
    ),
}


def make_worlds(seed: int, questions: int) -> Iterator[World]:
    """The worlds of a corpus, in order; no two share a name."""
    taken: set[str] = set()
    for number in range(questions):
        yield make_world(Draw(seed, "world", number), f"q{number:03d}", DOMAINS[number % len(DOMAINS)], taken)


def write_corpus(seed: int, questions: int, replicas: int) -> Iterator[NativeTrace]:
    """All traces of a corpus, question by question."""
    for world in make_worlds(seed, questions):
        for replica in range(replicas):
            yield write_trace(seed, world, replica)


def write_trace(seed: int, world: World, replica: int, pace: Pace | None = None) -> NativeTrace:
    """One run over a world."""
    steps = plan_of(seed, world, replica, pace)
    task = Wording(Draw(seed, "task", world.question_id), world)
    wording = Wording(Draw(seed, "words", world.question_id, replica), world)
    return NativeTrace(
        pamer_lab=VERSION,
        messages=(Message("system", task.system()), Message("user", task.task()), *write_blocks(wording, steps)),
        question_id=world.question_id,
        task_id=f"{world.question_id}-r{replica}",
        tools=TOOLS[world.domain.tools],
        labels=tuple(make_labels(steps)),
        meta={"generator": GENERATOR_VERSION, "seed": seed, "replica": replica, "domain": world.domain.name},
    )


def plan_of(seed: int, world: World, replica: int, pace: Pace | None = None) -> tuple[Step, ...]:
    """The plan behind a trace, for checks and for the demo."""
    return make_plan(Draw(seed, "plan", world.question_id, replica), world, pace)


def write_blocks(wording: Wording, steps: Sequence[Step]) -> list[Message]:
    """The messages of a plan, after the task and up to the final answer."""
    messages: list[Message] = []
    done: list[Entity] = []
    for number, step in enumerate(steps):
        before = steps[number - 1] if number else None
        if before and before.outcome == "settles":
            done.append(before.subject)
        turn = wording.turn(step, before, done)
        call = ToolCall(f"call_{number}", turn.tool, orjson.dumps(turn.arguments).decode())
        messages.append(Message("assistant", turn.text, (call,)))
        messages.append(Message("tool", turn.result, tool_call_id=call.id, name=turn.tool))
    messages.append(Message("assistant", wording.final(steps[-1], done)))
    return messages
