"""Plays the tasks of an arena under several policies: what is played already is kept, the rest runs in processes where no model is needed.

Invariants: every policy gets the same worlds, seeds and tools; an episode that fails counts as failed and the others go on; stopping keeps
every finished episode.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context

from pamer_lab.arena.agents import Agent, parse_agent
from pamer_lab.arena.episode import Episode, play
from pamer_lab.arena.store import ArenaInfo, ArenaStore
from pamer_lab.arena.world import Level, Task
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.factory import Factory
from pamer_lab.jobs import Progress, Say
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import is_light, why_not
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.registry import parse_policy
from pamer_lab.prices import DEFAULT, find_prices
from pamer_lab.workspace import Workspace

DEFAULT_POLICIES = (
    "base sliding-window:5 sliding-window:10 periodic-summary:5 observation-masking:5 masking-summary:10:m=5 acon lre:4096 "
    "selfcompact-rules:5 truncate-results:200"
).split()
"""What is played where no policy is named: each needs no model and acts at a task's length."""
AT_ONCE = 4
"""Episodes from which processes are worth their start."""


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
    processes: int = 0
    """0: one per core, at most 8."""
    fresh: bool = False
    """Play again what was played before."""

    def named(self) -> tuple[str, ...]:
        """The policies in their canonical form, base first, the two bounds last; one that cannot act on a running agent is refused."""
        found = dict.fromkeys(["base", *(parse_policy(text).name for text in self.policies), *BOUNDS])
        for name in found:
            if not parse_policy(name).acts_live:
                raise InputError(f"policy {name!r} replays what a trace recorded and cannot act on a running agent")
        return tuple(name for name in found if name not in BOUNDS) + tuple(BOUNDS)


@dataclass(frozen=True)
class _Job:
    task: Task
    policy: str
    plan: Plan
    workspace: str


def play_arena(
    plan: Plan,
    workspace: Workspace,
    say: Say = lambda what: None,
    cancelled: Callable[[], bool] = lambda: False,
    agent: Agent | None = None,
) -> ArenaInfo:
    """Play what is missing; `agent`: one that is made already, in place of the one that the plan names."""
    if not 1 <= plan.tasks <= 10_000:
        raise InputError("an arena has 1 to 10,000 tasks")
    player = agent or parse_agent(plan.agent)
    factory = Factory(load_profile(plan.profile, workspace.path), workspace, plan.device, plan.heads)
    for name in plan.named():
        if reason := why_not(parse_policy(name), factory):
            raise InputError(f"policy {name!r} cannot run here: {reason}")
    info = ArenaInfo(
        player.name, plan.seed, Level.parse(plan.level).name, plan.profile, factory.tokens.counter.name, player.simulated, plan.heads
    )
    store = ArenaStore(workspace)
    store.open(info)
    with store.lock(info.arena_id):
        known = {
            (episode.task, episode.policy) for episode in store.episodes(info.arena_id) if plan.prices in episode.cost and not plan.fresh
        }
        jobs = [
            _Job(info.task(number), name, plan, str(workspace.path))
            for number in range(plan.tasks)
            for name in plan.named()
            if (number, name) not in known
        ]
        done = plan.tasks * len(plan.named()) - len(jobs)
        total = done + len(jobs)
        say(Progress(done=done, total=total, what="episodes"))
        for episode in _played(jobs, player, factory, apart=agent is None and player.simulated, cancelled=cancelled):
            store.add(info.arena_id, episode)
            done += 1
            say(Progress(done=done, total=total, what="episodes"))
    return info


def _played(jobs: Sequence[_Job], agent: Agent, factory: Factory, *, apart: bool, cancelled: Callable[[], bool]) -> Iterator[Episode]:
    """Episodes as they end: those without models in processes, then the others here, where they share the models' states."""
    light = [job for job in jobs if apart and is_light(parse_policy(job.policy), factory)]
    if len(light) >= AT_ONCE:
        yield from _in_processes(light, cancelled)
    else:
        light = []
    apart_done = {id(job) for job in light}
    for job in jobs:
        if id(job) not in apart_done:
            yield _play(job, agent, factory, cancelled)


def _in_processes(jobs: Sequence[_Job], cancelled: Callable[[], bool]) -> Iterator[Episode]:
    count = jobs[0].plan.processes or min(os.cpu_count() or 1, 8)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[Episode]] = set()
        rest = iter(jobs)
        try:
            while True:
                while len(waiting) < 2 * count and (job := next(rest, None)) is not None:
                    waiting.add(pool.submit(_play_apart, job))
                if not waiting:
                    return
                if cancelled():
                    raise Cancelled("stopped; finished tasks are kept, and the same command goes on from there")
                ended, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ended)
        finally:
            for future in waiting:
                future.cancel()


_FACTORIES: dict[tuple[str, str, str, str], Factory] = {}


def _play_apart(job: _Job) -> Episode:
    plan = job.plan
    key = (plan.profile, plan.device, plan.heads, job.workspace)
    if key not in _FACTORIES:
        workspace = Workspace(job.workspace)
        _FACTORIES[key] = Factory(load_profile(plan.profile, workspace.path), workspace, plan.device, plan.heads)
    return _play(job, parse_agent(plan.agent), _FACTORIES[key], lambda: False)


def _play(job: _Job, agent: Agent, factory: Factory, cancelled: Callable[[], bool]) -> Episode:
    return play(job.task, agent, parse_policy(job.policy), factory, [find_prices(job.plan.prices, factory.workspace.path)], cancelled)
