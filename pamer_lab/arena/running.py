"""Plays the tasks of an arena under several policies: existing episodes are kept, missing ones go to the workers of an engine.

Invariants: every policy gets the same worlds, seeds and tools; an episode that fails counts as failed and the others continue; stopping
keeps every finished episode.
"""

import threading
import time
from collections.abc import Callable, Sequence

from pamer_lab.arena.agents import Agent
from pamer_lab.arena.command import CommandAgent
from pamer_lab.arena.episode import Episode
from pamer_lab.arena.plan import Plan, made_agent
from pamer_lab.arena.store import ArenaInfo, ArenaStore
from pamer_lab.arena.suite import read_suite, suite_name
from pamer_lab.arena.worker import Job, Note, play_one
from pamer_lab.arena.world import Level
from pamer_lab.engines import Engine, LocalEngine
from pamer_lab.engines.crew import Crew
from pamer_lab.errors import InputError, LabError
from pamer_lab.factory import Factory
from pamer_lab.jobs import Progress, Say
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import is_light, why_not
from pamer_lab.policies.registry import parse_policy
from pamer_lab.workspace import Workspace

MOST_WORKERS = 8
"""Maximum number of workers on this machine if none is given."""
AT_ONCE = 4
"""Number of episodes from which starting workers pays off if no number of workers is given."""
STOPPED = "stopped; finished tasks are kept, and the same command continues from there"


def play_arena(
    plan: Plan,
    workspace: Workspace,
    say: Say = lambda what: None,
    cancelled: Callable[[], bool] = lambda: False,
    agent: Agent | CommandAgent | None = None,
    engine: Engine | None = None,
) -> ArenaInfo:
    """Play what is missing; `agent`: an existing agent that replaces the plan's and plays in this process.

    Tasks that no worker could play are listed in a `LabError` after all others are done.
    """
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
    tasks = range(min(plan.tasks, len(suite)) if suite else plan.tasks)
    with store.lock(info.arena_id):
        known = {
            (episode.task, episode.policy) for episode in store.episodes(info.arena_id) if plan.prices in episode.cost and not plan.fresh
        }
        missing = {(number, name) for number in tasks for name in plan.named()} - known
        table = _Table(store, info.arena_id, missing, len(tasks) * len(plan.named()), say)
        apart, here = _divided(plan, tasks, missing, factory, engine or LocalEngine(), own=agent is not None, simulated=player.simulated)
        for jobs, workers in apart:
            place = engine or LocalEngine()
            # An episode reports nothing until it ends; agent programs have their own time limit.
            crew = Crew(place, "pamer_lab.arena.worker", Note, table.told, table.lost, cancelled=cancelled, stopped=STOPPED, silent=True)
            crew.run([Job(workspace.address, plan, number, names) for number, names in jobs], workers)
        for number, names in here:
            for name in names:
                table.add(play_one(plan, number, name, player, factory, cancelled))
    if table.not_played:
        named = "; ".join(f"task {number}: {reason}" for number, reason in list(table.not_played.items())[:5])
        raise LabError(f"{len(table.not_played)} of {len(tasks)} tasks could not be played ({named}); all others are done")
    return info


class _Table:
    """Stores and counts episodes as they end."""

    def __init__(self, store: ArenaStore, arena_id: str, missing: set[tuple[int, str]], total: int, say: Say) -> None:
        self._store, self._arena_id, self._missing, self._total, self._say = store, arena_id, set(missing), total, say
        self._before, self._began = total - len(missing), time.monotonic()
        self._lock = threading.Lock()
        self.not_played: dict[int, str] = {}
        say(Progress(done=self._before, total=total, what="episodes"))

    def told(self, job: Job, note: Note) -> None:
        if note.episode is not None:
            self.add(note.episode)

    def lost(self, job: Job, reason: str) -> None:
        self.not_played[job.task] = reason

    def add(self, episode: Episode) -> None:
        """Store an episode, unless a worker that was lost later has already reported it."""
        with self._lock:
            if (episode.task, episode.policy) not in self._missing:
                return
            self._store.add(self._arena_id, episode)
            self._missing.remove((episode.task, episode.policy))
            done = self._total - len(self._missing)
            left = (time.monotonic() - self._began) / (done - self._before) * len(self._missing)
            self._say(Progress(done=done, total=self._total, what="episodes", seconds_left=left))


Group = tuple[int, tuple[str, ...]]
"""A task and the policies under which one worker plays it, so that they share its world and cached states."""


def _divided(
    plan: Plan, tasks: Sequence[int], missing: set[tuple[int, str]], factory: Factory, engine: Engine, *, own: bool, simulated: bool
) -> tuple[list[tuple[list[Group], int]], list[Group]]:
    """Batches for workers, each with its number of workers, and what is played in this process; policies without models go first."""
    light = [name for name in plan.named() if is_light(parse_policy(name), factory)]
    heavy = [name for name in plan.named() if name not in light]
    parts = [
        [(number, todo) for number in tasks if (todo := tuple(name for name in names if (number, name) in missing))]
        for names in (light, heavy)
    ]
    if own or plan.processes == 0:
        return [], [group for part in parts for group in part]
    if plan.processes > 0 or engine.name != "local":
        workers = plan.processes if plan.processes > 0 else engine.capacity()
        return [(part, workers) for part in parts if part], []
    enough = simulated and sum(len(names) for _, names in parts[0]) >= AT_ONCE
    return [(parts[0], min(engine.capacity(), MOST_WORKERS))] if enough else [], parts[1] if enough else [*parts[0], *parts[1]]
