"""What an arena plays: agent, tasks, policies, and the source of the tasks."""

from dataclasses import dataclass

from pamer_lab.arena.agents import Agent, parse_agent
from pamer_lab.arena.command import TIME_LIMIT, CommandAgent
from pamer_lab.arena.world import Level
from pamer_lab.errors import InputError
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.registry import parse_policy
from pamer_lab.prices import DEFAULT

DEFAULT_POLICIES = (
    "base sliding-window:5 sliding-window:10 periodic-summary:5 observation-masking:5 masking-summary:10:m=5 acon lre:4096 "
    "selfcompact-rules:5 truncate-results:200"
).split()
"""Policies played by default: none needs a model, and each acts within a task's length."""


@dataclass(frozen=True)
class Plan:
    """What to play."""

    tasks: int = 20
    seed: int = 1
    agent: str = "reader"
    level: str = Level().name
    policies: tuple[str, ...] = tuple(DEFAULT_POLICIES)
    profile: str = "embedded"
    device: str = "auto"
    heads: str = ""
    prices: str = DEFAULT
    processes: int = -1
    """Number of workers. 0: none, everything runs in this process. -1: one per core for the reader under policies without models, none
    for the rest; on a cluster as many as fit."""
    fresh: bool = False
    """Whether to replay existing episodes."""
    suite: str = ""
    """A folder of tasks for an agent program; empty: the arena's own worlds."""
    grader: str = ""
    """The command that grades a suite's tasks; empty: each task's own."""
    time_limit: float = TIME_LIMIT
    """Seconds that an agent program may take for a task."""

    def named(self) -> tuple[str, ...]:
        """The policies in canonical form, base first, the two bounds last; `InputError` for one that cannot act on a running agent.

        An agent program gets no bounds, because what it needs is not known.
        """
        bounds = () if self.agent.startswith("command:") else tuple(BOUNDS)
        found = dict.fromkeys(["base", *(parse_policy(text).name for text in self.policies), *bounds])
        for name in found:
            if not parse_policy(name).acts_live:
                raise InputError(f"policy {name!r} replays what a trace recorded and cannot act on a running agent")
        return tuple(name for name in found if name not in bounds) + bounds


def made_agent(plan: Plan) -> Agent | CommandAgent:
    """The agent that a plan names."""
    name, _, rest = plan.agent.partition(":")
    if name == "command":
        return CommandAgent.parse(rest, plan.time_limit)
    if plan.suite:
        raise InputError("--suite needs an agent program: --agent command:PROGRAM")
    return parse_agent(plan.agent, plan.time_limit)
