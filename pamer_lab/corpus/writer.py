"""Questions -> traces in our native format, the same bytes for the same seed; and three long demo traces with planted needs.

Question `n` does not depend on how many questions follow; replicas of a question share its world, task and tools, and differ in plan and
words. The museum demo has the shape of the paper's case study (Appendix E.2): 94 turns, 81 searches, 16 document retrievals, four
compressions and two memory queries, at the turns that the paper prints; everything in it is generated. Events never change messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
from msgspec import structs

from pamer_lab.corpus.plan import Pace, Step, make_labels, make_plan
from pamer_lab.corpus.tables import DOMAINS, Draw
from pamer_lab.corpus.wording import Wording
from pamer_lab.corpus.world import Entity, World, make_world
from pamer_lab.trajectory.formats.native import VERSION, NativeTrace
from pamer_lab.trajectory.values import Event, Label, Message, Tool, ToolCall

GENERATOR_VERSION = 4
"""Raised whenever the same seed starts to give different bytes."""


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


@dataclass(frozen=True)
class Demo:
    """The shape of one demo trace."""

    name: str
    domain: str
    turns: int
    """Assistant messages, including the final answer."""
    mains: int
    """Entities of the world, one sub-goal each."""
    documents: int = 0
    """Turns that read a document, the others searching; 0 leaves the mix of tools to chance."""
    double_searches: int = 0
    """Turns that make a second search in parallel."""
    compressions: tuple[int, ...] = ()
    """Turns of the recorded compressions; empty: at every fourth settled sub-goal."""
    queries: tuple[int, ...] = ()
    """Turns of the recorded memory queries; empty: at every fifth recall need."""


DEMOS = (
    Demo("museum-case", "museum", 94, 26, documents=16, double_searches=4, compressions=(19, 28, 47, 71), queries=(36, 80)),
    Demo("service-handover", "services", 68, 18),
    Demo("polar-stations", "expeditions", 112, 30),
)


def write_demos(seed: int) -> Iterator[NativeTrace]:
    """The demo traces in order."""
    taken: set[str] = set()
    for demo in DEMOS:
        world = make_world(Draw(seed, "demo", demo.name), f"demo-{demo.name}", demo.domain, taken, mains=demo.mains, outsiders=130)
        yield _write(seed, demo, world)


def _write(seed: int, demo: Demo, world: World) -> NativeTrace:
    length = demo.turns - 1
    pace = Pace(
        goals=(demo.mains, demo.mains),
        steps=(length, length),
        settle=(30, 26),
        early=30,
        detour=(26, 26),
        repeat=0 if demo.documents else 5,
        fail=0 if demo.documents else 3,
        finish=True,
    )
    steps = plan_of(seed, world, 0, pace)
    deck = ["get_document"] * demo.documents + ["search"] * (length - demo.documents - 1) if demo.documents else []
    draw = Draw(seed, "demo-words", demo.name)
    wording = Wording(draw, world, tools=[*draw.shuffled(deck), "search"] if deck else ())
    messages = [Message("system", wording.system()), Message("user", wording.task()), *write_blocks(wording, steps)]
    for number in sorted(draw.some(range(length), demo.double_searches), reverse=True):
        _double(messages, number, wording, steps[number])
    labels = make_labels(steps)
    return NativeTrace(
        pamer_lab=VERSION,
        messages=tuple(messages),
        question_id=world.question_id,
        task_id=demo.name,
        tools=TOOLS[world.domain.tools],
        labels=tuple(labels),
        events=tuple(_events(demo, messages, labels)),
        meta={"generator": GENERATOR_VERSION, "seed": seed, "domain": world.domain.name, "answer": world.goals[-1].value},
    )


def _double(messages: list[Message], number: int, wording: Wording, step: Step) -> None:
    """Give turn `number` a second, parallel search."""
    start = _message_of(messages, number)
    turn = wording.side_search(step)
    call = ToolCall(f"call_{number}b", turn.tool, orjson.dumps(turn.arguments).decode())
    messages[start] = structs.replace(messages[start], tool_calls=(*messages[start].tool_calls, call))
    messages.insert(start + 2, Message("tool", turn.result, tool_call_id=call.id, name=turn.tool))


def _message_of(messages: Sequence[Message], turn: int) -> int:
    return [index for index, message in enumerate(messages) if message.role == "assistant"][turn]


def _events(demo: Demo, messages: Sequence[Message], labels: Sequence[Label]) -> list[Event]:
    """The memory operations a baseline agent recorded, in order."""
    settled = [label.t for label in labels if label.target == "compression" and label.value]
    needs = [label.t for label in labels if label.target == "recall" and label.value]
    compressions = demo.compressions or tuple(settled[3::4])
    queries = demo.queries or tuple(needs[4::5])
    events: list[Event] = []
    covered, memory = _message_of(messages, 0), 0
    for turn in sorted({*compressions, *queries}):
        before = _message_of(messages, turn)
        if turn in compressions:
            memory += 1
            text = f"{before - covered} messages are summarised into memory {memory}."
            events.append(
                Event(
                    "compaction",
                    before,
                    text,
                    data={"turn": turn, "operation": "manage_context", "memory": memory, "messages": before - covered},
                )
            )
            covered = before
        elif memory:
            text = f"The agent requests memory {memory}."
            events.append(Event("memory_read", before, text, data={"turn": turn, "operation": "query_memory", "memory": memory}))
    return events
