"""`pamer-lab arena`: an agent acts on what each policy lets it see; score, tokens, cost and paired differences by policy."""

import argparse
import os
import sys
import time
from typing import Any

from pamer_lab.arena.opening import open_episode
from pamer_lab.arena.plan import DEFAULT_POLICIES, Plan
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import ArenaStore
from pamer_lab.arena.summary import listed, summary
from pamer_lab.cli import say
from pamer_lab.commands.engine import engine_of
from pamer_lab.counts import whole_number
from pamer_lab.errors import InputError
from pamer_lab.jobs import LINES_VARIABLE, Progress
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import live_policies, parse_policy
from pamer_lab.prices import find_prices
from pamer_lab.workspace import Workspace

EVERY = 10.0
"""Seconds between two lines of progress if stderr is not a terminal."""
MEASURES = {"reward": "score", "total": "tokens", "cost": "cost", "turns": "turns"}


def run(args: argparse.Namespace) -> dict[str, Any]:
    workspace = Workspace()
    store = ArenaStore(workspace)
    if args.list:
        return {"arenas": [listed(store, name) for name in store.ids()]}
    if args.open:
        arena_id, task, policy = _opened(args.open)
        return {"opened": open_episode(workspace, arena_id, task, policy, device=args.device)}
    against = parse_policy(args.against).name if args.against else "base"
    if args.show:
        return summary(store, args.show, find_prices(args.prices, workspace.path).name, against=against)
    named = {"": DEFAULT_POLICIES, "all": live_policies()}.get(args.policy, args.policy.split(","))
    plan = Plan(
        tasks=args.tasks,
        seed=args.seed,
        agent=args.agent,
        level=args.level,
        policies=tuple(part.strip() for part in named if part.strip()),
        profile=args.profile,
        device=args.device,
        heads=args.heads,
        prices=find_prices(args.prices, workspace.path).name,
        processes=args.processes,
        fresh=args.fresh,
        suite=args.suite,
        grader=args.grader,
        time_limit=args.time_limit,
    )
    models = any(parse_policy(name).needs_models for name in plan.named())
    with engine_of(args, load_profile(args.profile, workspace.path) if models else None) as engine:
        info = play_arena(plan, workspace, Updating(), engine=engine)
        done = summary(store, info.arena_id, plan.prices, tasks=plan.tasks, policies=plan.named(), against=against)
        return done | {"engine": {"name": engine.name}}


class Updating:
    """Progress on one line of a terminal, otherwise a line every `EVERY` seconds."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, what: str | Progress) -> None:
        if isinstance(what, str) or os.environ.get(LINES_VARIABLE):
            say(what)
            return
        ended = what.done == what.total
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{what.line}" + ("\n" if ended else ""))
            sys.stderr.flush()
        elif ended or time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            say(what)


def _opened(text: str) -> tuple[str, int, str]:
    parts = text.split("/", 2)
    task = whole_number(parts[1]) if len(parts) == 3 else None
    if task is None or task < 0:
        raise InputError(f"--open takes ARENA/TASK/POLICY, such as w-1f2e/3/sliding-window:5, not {text[:60]!r}")
    return parts[0], task, parts[2]


def show(result: dict[str, Any]) -> None:
    if "arenas" in result:
        for entry in result["arenas"]:
            print(f"{entry['arena_id']}  {entry['agent']}, level {entry['level']}, seed {entry['seed']}: {entry['episodes']} episodes")
        return
    if "opened" in result:
        print(f"trace {result['opened']['trace_id']}, run {result['opened']['run_id']}: pamer-lab app shows it in Replay")
        return
    said = "simulated agent" if result["simulated"] else "agent"
    print(f"arena {result['arena_id']}: {said} {result['agent']}, level {result['level']}, seed {result['seed']}, {result['tokenizer']}")
    heads = ("score", 6), ("95 % interval", 14), ("tokens", 9), ("vs base", 8), ("peak", 7), ("turns", 6), ("repeats", 7), ("cost", 8)
    print(f"{'policy':<28} {'n':>4} " + " ".join(f"{name:>{width}}" for name, width in heads))
    for row in [*result["results"], *result["bounds"].values()]:
        change = f"{row['vs_base_pct']:+.0f} %" if row["vs_base_pct"] is not None else ""
        print(
            f"{row['policy'] + (' (bound)' if row['bound'] else ''):<28} {row['n']:>4} {row['success_rate']:>6.2f} "
            f"{row['ci'][0]:>6.2f} - {row['ci'][1]:.2f} {row['total']:>9,.0f} {change:>8} {row['peak_active']:>7,.0f} "
            f"{row['turns']:>6.1f} {row['repeats']:>7.1f} {row['cost']:>8.4f}"
        )
    if result["pairs"]:
        print(f"\nDifferences from {result['against']} on the same tasks: mean, 95 % interval, p of the exact sign-flip test")
    for row in result["pairs"]:
        if row["measure"] in MEASURES:
            digits = {"total": ",.0f", "cost": ".4f"}.get(row["measure"], ".2f")
            low, high = row["ci"]
            print(
                f"{row['policy']:<28} {row['n']:>4} {MEASURES[row['measure']]:<7} {row['difference']:>+12{digits}} "
                f"[{low:+{digits}}, {high:+{digits}}]  p = {row['p']:.4f}"
            )
