"""One task under one policy: the agent acts on what the policy shows it until it answers, fails or has no turns left.

Invariants: the agent gets only the rebuilt request; an episode always ends with a reason; it is determined by task, agent and policy, and
all its messages can be rebuilt from the agent's own (`trace_of`), so nothing else has to be stored.
"""

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct, field

from pamer_lab.arena.agents import Agent
from pamer_lab.arena.reader import LAST_TURN, MEMORY
from pamer_lab.arena.world import VERSION, Grade, Task
from pamer_lab.blocks import violations
from pamer_lab.blocks.cut import canonical_arguments
from pamer_lab.corpus.language import KEPT_UNDER, Sight
from pamer_lab.errors import Cancelled, LabError
from pamer_lab.factory import Factory
from pamer_lab.policies.interface import Policy, Resources
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.prices import PriceTable
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.acting import Acting
from pamer_lab.runs.beginning import run_id
from pamer_lab.runs.cost import run_cost
from pamer_lab.runs.timeline import lay_out
from pamer_lab.runs.values import Run, RunInfo
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace
from pamer_lab.workspace.store import TOTALS

ANSWERED = "answered"
"""End of a graded episode; any other value is the reason for a failure."""
OUT_OF_TURNS = "no turns were left"
"""End of an episode whose agent never answered."""
NO_ANSWER = "the agent gave no answer"
BROKE_PROTOCOL = "the agent broke the protocol"
SAME_CALLS = 5
"""Number of identical calls in a row that counts as a loop."""
REPEATED = f"the agent made the same call {SAME_CALLS} times in a row"
UNKNOWN_CALLS = 5
"""Turns in a row that call only unknown tools, after which a task ends."""
NO_SUCH_TOOLS = f"the agent called unknown tools {UNKNOWN_CALLS} times in a row"
MEMORY_TOOL = Tool(
    MEMORY,
    "Look for an earlier fact in this session's own memory.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


class Episode(Struct, frozen=True, omit_defaults=True):
    """The result of one task under one policy."""

    task: int
    policy: str
    ended: str
    """`answered`, or why it ended without an answer."""
    reward: float
    """1 if every fact of the answer is right, else 0."""
    share: float
    """Share of the facts that are right."""
    turns: int
    repeats: int
    """Calls that repeat an earlier call of this task."""
    totals: dict[str, Any]
    """Token totals, as a replay of the trace gives them."""
    answers: tuple[Message, ...]
    """The agent's own messages."""
    lost: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Turn -> needed facts that had been found but were not in the request; only turns at which this changed."""
    missing: tuple[str, ...] = ()
    """Facts that are missing or wrong in the answer."""
    never_found: tuple[str, ...] = ()
    """The `missing` facts that no message ever stated."""
    cost: dict[str, float] = field(default_factory=dict)
    """Price table -> cost of the episode."""
    memory_answers: tuple[str, ...] = ()
    """Answers of the policy's memory to the agent's queries, in order."""
    seconds: float = 0.0
    heads: str = ""
    """Hash of the heads that voted; empty if none did."""
    stored: tuple[str, ...] = ()
    """Ids of the trace and run that the live proxy recorded, if the agent is a program."""


class Running:
    """One episode under way."""

    def __init__(self, task: Task, agent: Agent, policy: Policy, resources: Resources) -> None:
        self.task, self.agent = task, agent
        self.acting = Acting(policy, resources, tools_of(task, policy), task.opening())
        self.memory_answers: list[str] = []
        self.lost: dict[int, tuple[str, ...]] = {}
        self.repeats = 0
        self._seen: set[tuple[str, str]] = set()
        self._row: tuple[tuple[tuple[str, str], ...], int] = ((), 0)
        self._unknown = 0

    def run(self, cancelled: Callable[[], bool] = lambda: False) -> tuple[str, str]:
        """Play to the end; returns why it ended, and the answer."""
        for turn in range(self.task.budget):
            if cancelled():
                raise Cancelled("stopped; finished tasks are kept")
            if turn == self.task.budget - 1:
                self.acting.add([Message("user", LAST_TURN)])
            try:
                act = self.acting.decide()
                self._note_lost(act.messages)
                said = self.agent.act(act.messages, self.acting.growing.tools)
            except LabError as error:
                return str(error), ""
            if fault := _fault(said):
                return fault, ""
            self.acting.add([said])
            if not said.tool_calls:
                return (ANSWERED, said.content) if said.content.strip() else (NO_ANSWER, "")
            self.acting.add([self._result(call) for call in said.tool_calls])
            if fault := self._looping(said):
                return fault, ""
        return OUT_OF_TURNS, ""

    def _result(self, call: ToolCall) -> Message:
        if call.name != MEMORY or MEMORY_TOOL not in self.acting.growing.tools:
            return self.task.answer(call)
        self.memory_answers.append(self.acting.query(call.arguments))
        return Message("tool", self.memory_answers[-1], tool_call_id=call.id, name=call.name)

    def _note_lost(self, seen: Sequence[Message]) -> None:
        """Note needed facts, and the keys that files are kept under, that earlier messages state but the request does not, on change."""
        full = Sight([message.content for message in self.acting.growing.messages if message.content])
        view = Sight([message.content for message in seen if message.content])
        needed = dict.fromkeys(key for wanted in self.task.questions for key in full.way(wanted))
        gone: list[str] = []
        for key in needed:
            if full.value(key) is not None:
                gone += [key.text] if view.value(key) is None else []
            elif (kept := full.kept_under(key)) is not None and view.kept_under(key) is None:
                gone.append(KEPT_UNDER.format(e=key.entity, d=kept.text))
        if tuple(gone) != (next(reversed(self.lost.values())) if self.lost else ()):
            self.lost[self.acting.t] = tuple(gone)

    def _looping(self, said: Message) -> str:
        calls = tuple((call.name, canonical_arguments(call.arguments)) for call in said.tool_calls)
        self.repeats += sum(call in self._seen for call in calls)
        self._seen.update(calls)
        self._row = (calls, self._row[1] + 1 if calls == self._row[0] else 1)
        known = {tool.name for tool in self.acting.growing.tools}
        self._unknown = 0 if any(call.name in known for call in said.tool_calls) else self._unknown + 1
        if self._row[1] >= SAME_CALLS:
            return REPEATED
        return NO_SUCH_TOOLS if self._unknown >= UNKNOWN_CALLS else ""


def _fault(said: Message) -> str:
    """What is wrong with an agent's message; empty if it follows the protocol."""
    if said.role != "assistant":
        return f"{BROKE_PROTOCOL}: a {said.role} message is not an answer"
    found = violations([Message("user", ""), said])
    return f"{BROKE_PROTOCOL}: {found[0].reason}" if found else ""


def trace_id_of(task: Task, agent: str, policy: str) -> str:
    """The trace id; known before the episode, so that its run and memories are named from the start."""
    return "a-" + sha256(f"{VERSION}/{task.task_id}/{agent}/{policy}".encode()).hexdigest()[:16]


def trace_of(task: Task, agent: str, policy: Policy, answers: Sequence[Message], memory_answers: Sequence[str] = (), **facts: Any) -> Trace:
    """An episode as a trace, including the world's answers; replaying it under its policy gives the episode's run."""
    messages, remembered = task.opening(), iter(memory_answers)
    for turn, said in enumerate(answers):
        messages += [Message("user", LAST_TURN)] if turn == task.budget - 1 else []
        messages.append(said)
        for call in said.tool_calls:
            known = call.name == MEMORY and answers_queries(policy)
            text = next(remembered, "") if known else ""
            messages.append(Message("tool", text, tool_call_id=call.id, name=call.name) if known else task.answer(call))
    return Trace(
        trace_id=trace_id_of(task, agent, policy.name),
        question_id=task.task_id,
        format="pamer-lab",
        messages=tuple(messages),
        tools=tools_of(task, policy),
        task_id=task.task_id,
        reward=facts.get("reward"),
        model=agent,
        meta={
            "arena": task.level.name,
            "agent": agent,
            "policy": policy.name,
            **{name: facts[name] for name in ("ended",) if name in facts},
        },
    )


def answers_queries(policy: Policy) -> bool:
    """Whether a policy offers its memory to the agent as a tool."""
    return bool(getattr(policy, "answers_queries", False))


def tools_of(task: Task, policy: Policy) -> tuple[Tool, ...]:
    return (*task.tools, MEMORY_TOOL) if answers_queries(policy) else task.tools


def play(
    task: Task,
    agent: Agent,
    policy: Policy,
    factory: Factory,
    prices: Sequence[PriceTable] = (),
    cancelled: Callable[[], bool] = lambda: False,
) -> Episode:
    """Run one task under one policy, to its end."""
    began = time.perf_counter()
    resources = RunResources(factory_of(policy, factory))
    tokens = resources.tokens
    settings = policy.settings(resources)
    resources.trace_id = trace_id_of(task, agent.name, policy.name)
    resources.session_id = run_id(resources.trace_id, policy.name, settings, tokens.counter.name, 0)
    running = Running(task, agent, policy, resources)
    ended, answer = running.run(cancelled)
    answers = tuple(message for message in running.acting.growing.messages if message.role == "assistant")
    grade = task.grade(answer) if ended == ANSWERED else Grade((False,) * task.level.facts)
    trace = Trace(
        resources.trace_id,
        task.task_id,
        "pamer-lab",
        tuple(running.acting.growing.messages),
        running.acting.growing.tools,
        reward=grade.reward,
    )
    timeline = lay_out(trace, tokens)
    turns = tuple(running.acting.turns[: timeline.turns])
    counted = totals(timeline, turns)
    head = RunInfo(
        resources.session_id,
        trace.trace_id,
        task.task_id,
        task.task_id,
        policy.name,
        factory.profile.name,
        settings,
        tokens.counter.name,
        timeline.kind,
        timeline.turns,
        timeline.turns,
        timeline.prefix_tokens,
        timeline.tools_tokens,
        tuple(timeline.block_tokens),
    )
    missing = [wanted for wanted, right in zip(task.questions, grade.right, strict=True) if not right]
    full = Sight([message.content for message in trace.messages if message.content])
    return Episode(
        task=task.number,
        policy=policy.name,
        ended=ended,
        reward=grade.reward,
        share=grade.share,
        turns=timeline.turns,
        repeats=running.repeats,
        totals={name: counted[name] for name in TOTALS} | {"actions": counted["actions"]},
        answers=answers,
        lost=running.lost,
        missing=tuple(wanted.text for wanted in missing),
        never_found=tuple(wanted.text for wanted in missing if full.value(wanted) is None),
        cost={table.name: run_cost(Run(head, turns), table, timeline, tokens.counter).total for table in prices},
        memory_answers=tuple(running.memory_answers),
        seconds=round(time.perf_counter() - began, 3),
        heads=resources.heads_identity().get("sha256", "") if policy.needs_models else "",
    )
