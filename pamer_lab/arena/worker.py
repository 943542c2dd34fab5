"""The arena's work on any engine: one task under some policies, one episode at a time.

A worker can be killed at any moment; its parent has every episode that it reported.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from pamer_lab.arena.agents import Agent
from pamer_lab.arena.command import CommandAgent, play_command
from pamer_lab.arena.episode import Episode, play
from pamer_lab.arena.plan import Plan, made_agent
from pamer_lab.arena.suite import SuiteTask, WorldTask, read_suite
from pamer_lab.arena.world import Level, Task
from pamer_lab.errors import Cancelled, StorageError
from pamer_lab.factory import Factory
from pamer_lab.live.policy import LiveOptions
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.prices import DEFAULT, find_prices
from pamer_lab.workspace import Workspace

DEADLINE = 600.0
"""Seconds that a program's request waits for its decision; long, because in the arena every decision must be applied."""


class Job(msgspec.Struct, frozen=True):
    """One task under some policies."""

    workspace: str
    plan: Plan
    task: int
    policies: tuple[str, ...]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message from a worker to its parent."""

    episode: Episode | None = None
    finished: bool = False
    again: str = ""


def work(job: Job, tell: Callable[[Note], Any]) -> None:
    """Play one job and report each episode."""
    agent, factory = _player(job.plan, job.workspace)
    for policy in job.policies:
        try:
            tell(Note(play_one(job.plan, job.task, policy, agent, factory)))
        except StorageError as error:
            tell(Note(again=str(error)))
            return
    tell(Note(finished=True))


@lru_cache(maxsize=2)
def _player(plan: Plan, place: str) -> tuple[Agent | CommandAgent, Factory]:
    workspace = Workspace(place)
    return made_agent(plan), Factory(load_profile(plan.profile, workspace.path), workspace, plan.device, plan.heads)


def play_one(
    plan: Plan, number: int, policy: str, agent: Agent | CommandAgent, factory: Factory, cancelled: Callable[[], bool] = lambda: False
) -> Episode:
    """Play one task under one policy."""
    chosen, prices = parse_policy(policy), find_prices(plan.prices, factory.workspace.path)
    if not isinstance(agent, CommandAgent):
        return play(_world(plan, number), agent, chosen, factory, [prices], cancelled)
    if cancelled():
        raise Cancelled("stopped; finished tasks are kept")
    task = _suite_task(plan.suite, plan.grader, number) if plan.suite else WorldTask(_world(plan, number))
    place = factory.workspace.path / "arena" / "programs" / sha256(f"{agent.name}/{task.task_id}".encode()).hexdigest()[:12]
    return play_command(task, agent, chosen, factory.workspace, place, _live(plan, chosen), prices)


@lru_cache(maxsize=4)
def _world(plan: Plan, number: int) -> Task:
    """Cached for the next policies, because generating a world takes a moment."""
    return Task(plan.seed, number, Level.parse(plan.level))


def _suite_task(suite: str, grader: str, number: int) -> SuiteTask:
    return read_suite(suite, grader)[number]


def _live(plan: Plan, policy: Policy) -> LiveOptions:
    """The proxy's options: the policy exactly as named, without the gate and `inject=append` that a proxy adds by default."""
    injects = getattr(policy, "inject", "")
    text = f"{policy.name}:inject={injects}" if injects and "inject=" not in policy.name else policy.name
    prices = "" if plan.prices == DEFAULT else plan.prices
    return LiveOptions(text, plan.profile, plan.device, plan.heads, prices, deadline=DEADLINE, gate=False)
