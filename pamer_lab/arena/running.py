"""Plays the tasks of an arena under several policies: what is played already is kept, the rest runs in processes where no model is needed.

Invariants: every policy gets the same worlds, seeds and tools; an episode that fails counts as failed and the others go on; stopping keeps
every finished episode.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context

from pamer_lab.arena.agents import Agent, parse_agent
from pamer_lab.arena.command import TIME_LIMIT, CommandAgent, play_command
from pamer_lab.arena.episode import Episode, play
from pamer_lab.arena.store import ArenaInfo, ArenaStore
from pamer_lab.arena.suite import SuiteTask, WorldTask, read_suite, suite_name
from pamer_lab.arena.world import Level, Task
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.factory import Factory
from pamer_lab.jobs import Progress, Say
from pamer_lab.live.policy import LiveOptions
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import is_light, why_not
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.prices import DEFAULT, find_prices
from pamer_lab.workspace import Workspace

DEFAULT_POLICIES = (
    "base sliding-window:5 sliding-window:10 periodic-summary:5 observation-masking:5 masking-summary:10:m=5 acon lre:4096 "
    "selfcompact-rules:5 truncate-results:200"
).split()
"""What is played where no policy is named: each needs no model and acts at a task's length."""
DEADLINE = 600.0
"""Seconds that a program's request waits for its decision: in the arena each decision counts, so none may come too late."""
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
    suite: str = ""
    """A folder of tasks for an agent that is a program; empty: the arena's own worlds."""
    grader: str = ""
    """The command that grades a suite's tasks; empty: each task's own."""
    time_limit: float = TIME_LIMIT
    """Seconds that a program may take for a task."""

    def named(self) -> tuple[str, ...]:
        """The policies in their canonical form, base first, the two bounds last; one that cannot act on a running agent is refused.

        An agent that is a program has no bounds: what it needs is not known.
        """
        bounds = () if self.agent.startswith("command:") else tuple(BOUNDS)
        found = dict.fromkeys(["base", *(parse_policy(text).name for text in self.policies), *bounds])
        for name in found:
            if not parse_policy(name).acts_live:
                raise InputError(f"policy {name!r} replays what a trace recorded and cannot act on a running agent")
        return tuple(name for name in found if name not in bounds) + bounds


@dataclass(frozen=True)
class _Job:
    task: Task | SuiteTask
    policy: str
    plan: Plan
    workspace: str


def play_arena(
    plan: Plan,
    workspace: Workspace,
    say: Say = lambda what: None,
    cancelled: Callable[[], bool] = lambda: False,
    agent: Agent | CommandAgent | None = None,
) -> ArenaInfo:
    """Play what is missing; `agent`: one that is made already, in place of the one that the plan names."""
    if not 1 <= plan.tasks <= 10_000:
        raise InputError("an arena has 1 to 10,000 tasks")
    player = agent or made_agent(plan)
    suite = read_suite(plan.suite, plan.grader) if plan.suite else []
    factory = Factory(load_profile(plan.profile, workspace.path), workspace, plan.device, plan.heads)
    for name in plan.named():
        if reason := why_not(parse_policy(name), factory):
            raise InputError(f"policy {name!r} cannot run here: {reason}")
    level = suite_name(suite) if suite else Level.parse(plan.level).name
    info = ArenaInfo(player.name, 0 if suite else plan.seed, level, plan.profile, factory.tokens.counter.name, player.simulated, plan.heads)
    store = ArenaStore(workspace)
    store.open(info)
    count = min(plan.tasks, len(suite)) if suite else plan.tasks
    with store.lock(info.arena_id):
        known = {
            (episode.task, episode.policy) for episode in store.episodes(info.arena_id) if plan.prices in episode.cost and not plan.fresh
        }
        jobs = [
            _Job(suite[number] if suite else info.task(number), name, plan, str(workspace.path))
            for number in range(count)
            for name in plan.named()
            if (number, name) not in known
        ]
        total = count * len(plan.named())
        done = known_before = total - len(jobs)
        say(Progress(done=done, total=total, what="episodes"))
        began = time.monotonic()
        for episode in _played(jobs, player, factory, apart=agent is None and player.simulated, cancelled=cancelled):
            store.add(info.arena_id, episode)
            done += 1
            left = (time.monotonic() - began) / (done - known_before) * (total - done)
            say(Progress(done=done, total=total, what="episodes", seconds_left=left))
    return info


def _played(
    jobs: Sequence[_Job], agent: Agent | CommandAgent, factory: Factory, *, apart: bool, cancelled: Callable[[], bool]
) -> Iterator[Episode]:
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


def _play(job: _Job, agent: Agent | CommandAgent, factory: Factory, cancelled: Callable[[], bool]) -> Episode:
    policy, prices = parse_policy(job.policy), find_prices(job.plan.prices, factory.workspace.path)
    if isinstance(agent, CommandAgent):
        if cancelled():
            raise Cancelled("stopped; finished tasks are kept")
        task = job.task if isinstance(job.task, SuiteTask) else WorldTask(job.task)
        place = factory.workspace.path / "arena" / "programs" / sha256(f"{agent.name}/{task.task_id}".encode()).hexdigest()[:12]
        return play_command(task, agent, policy, factory.workspace, place, _live(job.plan, policy), prices)
    assert isinstance(job.task, Task)
    return play(job.task, agent, policy, factory, [prices], cancelled)


def _live(plan: Plan, policy: Policy) -> LiveOptions:
    """The proxy's options: the policy exactly as it is named, without the gate that a proxy adds by itself."""
    injects = getattr(policy, "inject", "")
    text = f"{policy.name}:inject={injects}" if injects and "inject=" not in policy.name else policy.name
    prices = "" if plan.prices == DEFAULT else plan.prices
    return LiveOptions(text, plan.profile, plan.device, plan.heads, prices, deadline=DEADLINE, gate=False)


def made_agent(plan: Plan) -> Agent | CommandAgent:
    """The agent that a plan names."""
    name, _, rest = plan.agent.partition(":")
    if name == "command":
        return CommandAgent.parse(rest, plan.time_limit)
    if plan.suite:
        raise InputError("a suite of one's own is for agents that are programs: --agent command:PROGRAM")
    return parse_agent(plan.agent)
