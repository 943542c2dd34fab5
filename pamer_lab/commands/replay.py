"""`pamer-lab replay TRACE... --policy NAME[,NAME...]`: replay recorded traces through policies."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pamer_lab.analysis.equal_tokens import equal_tokens_markdown
from pamer_lab.analysis.frontier import as_markdown, cost_parts, frontier, parts_markdown, without_times
from pamer_lab.analysis.growth import mean_context, policy_table, recorded_scores, run_table, turn_table
from pamer_lab.analysis.outcomes import outcome as run_outcome
from pamer_lab.analysis.verdict import Verdict, account, verdict_json, verdicts
from pamer_lab.blocks import MessageTokens
from pamer_lab.blocks.calls import tool_tokens
from pamer_lab.cli import say
from pamer_lab.commands import policies
from pamer_lab.commands.engine import engine_facts, engine_of
from pamer_lab.commands.option_groups import without_folder
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.factory import Factory
from pamer_lab.figures.text import APART
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import expanded, refused
from pamer_lab.policies.registry import DEFAULT_POLICIES, parse_policy
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BatchProgress, Outcome
from pamer_lab.runs.cost import FREE, run_cost
from pamer_lab.runs.divergence import first_divergence
from pamer_lab.runs.drops import drops
from pamer_lab.runs.estimate import estimate
from pamer_lab.runs.evidence import Fate, fates, uses
from pamer_lab.runs.export import run_json
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import lay_out
from pamer_lab.runs.values import FIXED_ACTIONS, STATUS_WORDS, Run
from pamer_lab.runs.worker import default_processes
from pamer_lab.storage.files import write_whole
from pamer_lab.studies.study import ALL
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths

LINE_EVERY = 10.0
"""Seconds between two progress lines if stderr is not a terminal."""


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.list:
        return policies.run(args)
    if not args.traces:
        raise InputError("name at least one trace: the id of an imported one, or a file; --list shows the policies")
    if args.turn_limit < 0:
        raise InputError(f"--turn-limit must be at least 1, not {args.turn_limit}")
    workspace = Workspace()
    prices = find_prices(args.prices, workspace.path)
    factory = Factory(load_profile(args.profile, workspace.path), workspace, args.device, args.heads)
    names = _policies(args.policy, factory)
    tokens = factory.tokens
    trace_ids = _trace_ids(args.traces, workspace, tokens)
    asked_for = {word.strip().partition(":")[0] for word in args.policy.split(",")}
    # A policy from a group is left out if no trace has the recorded calls it needs; one that was named is tried and fails with its reason.
    for name, reason in refused([name for name in names if name.partition(":")[0] not in asked_for], trace_ids, workspace).items():
        say(f"{name} is left out: {reason}")
        names.remove(name)
    takes = estimate(dict.fromkeys(names, trace_ids), factory, turn_limit=args.turn_limit)
    if args.estimate:
        return {"estimate": asdict(takes)}
    with engine_of(args, factory.profile if any(parse_policy(name).needs_models for name in names) else None) as engine:
        processes = args.processes if args.processes >= 0 else default_processes(names, len(trace_ids), takes.seconds, engine)
        options = BatchOptions(args.profile, args.device, args.turn_limit, args.fresh, processes, args.heads)
        outcomes = replay_batch(trace_ids, names, workspace, options, engine=engine, report=_report())
    for outcome in outcomes:
        if outcome.status != "done":
            say(f"{outcome.trace_id}, {outcome.policy}: {outcome.error or STATUS_WORDS.get(outcome.status, outcome.status)}")
    result = _result(outcomes, workspace, args, prices, tokens) | engine_facts(engine, processes)
    if args.table:
        write_whole(Path(args.table), _table(result, prices, args).encode())
    return result


def _table(result: dict[str, Any], prices: PriceTable, args: argparse.Namespace) -> str:
    """Cost against evidence as Markdown, with the command that made it."""
    found, runs = result["frontier"], result["runs"]
    kinds = "; ".join(sorted({f"{run['tokens_kind']} with {run['tokenizer']}" for run in runs}))
    turns = [len(run["turns"]) for run in runs if run["policy"] == runs[0]["policy"]] or [0]
    length = counted(max(turns), "turn") if min(turns) == max(turns) else f"{min(turns):,} to {counted(max(turns), 'turn')}"
    untimed = without_times(found)
    free = [] if found["points"] else [f"No table: {FREE}."]
    about = [
        *free,
        f"n = {counted(found['traces'], 'trace')} of {length}; tokens {kinds}.",
        f"Costs: simulated with the prices of `{prices.name}` ({prices.date or 'no date'}){untimed and f'; {untimed}'}.",
        "Changes: traces in which some request differs from the base agent's.",
        f"Intervals: 95 % bootstraps over tasks. Bold: no other policy beats it on both. {FIXED_ACTIONS}",
        *_unsure([point["policy"] for point in found["points"]]),
    ]
    policy = ["--policy", args.policy] if args.policy else []
    given = (("--profile", args.profile, "embedded"), ("--heads", args.heads, ""), ("--turn-limit", str(args.turn_limit), "0"))
    more = [word for name, value, default in given if value != default for word in (name, without_folder(value))]
    made = ["pamer-lab", "replay", "TRACES", *policy, *more, "--prices", prices.name, "--table", "FILE.md"]
    parts = (
        "Where the cost comes from, each part relative to the base agent's bill. `previous request only`: the cost if the cache kept no "
        "older request. Breaks: requests that do not begin with the previous one."
    )
    equal = (
        "At equal tokens: a policy compared with a sliding window, or a periodic summary, of the size that uses as many tokens "
        f"(interpolated between sizes; paired by task).\n\n{equal_tokens_markdown(found['equal_tokens'])}\n"
    )
    compared = equal if found["equal_tokens"] else ""
    tables = f"{as_markdown(found)}\n{' '.join(about)}\n\n{compared}{parts}\n\n{parts_markdown(result['cost_parts'])}"
    return f"{tables}\nMade by `{shlex.join(made)}`.\n"


def _unsure(names: list[str]) -> list[str]:
    """A sentence that lists the policies described by neither code nor a paper, if there are any."""
    found = [name for name in names if not {"code", "paper"} & {basis for basis, _ in parse_policy(name).facts}]
    return [f"Known from notes or our own inference only: {', '.join(sorted(found))}."] if found else []


def _policies(given: str, factory: Factory) -> list[str]:
    """The given names, with groups expanded to their policies that can run here; the others are reported."""
    names, others = expanded(given or ",".join(DEFAULT_POLICIES), factory)
    for name, reason in others.items():
        say(f"{name} is left out: {reason}")
    return names


def _trace_ids(given: list[str], workspace: Workspace, tokens: MessageTokens) -> list[str]:
    """The given ids, or all of the workspace; files and folders are imported first."""
    ids: list[str] = []
    for name in given:
        if name == ALL:
            ids += [row["trace_id"] for row in workspace.trace_rows()]
            continue
        if name.strip() and not Path(name).exists():
            ids.append(workspace.trace(name).trace.trace_id)
            continue
        imported = import_paths([name], workspace, tokens=tokens)
        for rejection in imported.rejected:
            raise InputError(rejection.reason, path=rejection.path, where=rejection.where)
        ids += [row["trace_id"] for row in imported.traces]
    if ALL in given and not ids:
        raise InputError(f"the workspace {workspace.path} has no traces; import some: pamer-lab import TRACE...")
    return list(dict.fromkeys(ids))


def _report() -> Callable[[BatchProgress], None]:
    """Progress on stderr: one line that updates in place on a terminal, otherwise a line every `LINE_EVERY` seconds."""
    last = time.monotonic()

    def report(progress: BatchProgress) -> None:
        nonlocal last
        ended = progress.runs_done == progress.runs
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{progress.line}  {progress.latest}" + ("\n" if ended else ""))
            sys.stderr.flush()
        elif time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            say(progress)

    return report


def _result(
    outcomes: list[Outcome], workspace: Workspace, args: argparse.Namespace, prices: PriceTable, tokens: MessageTokens
) -> dict[str, Any]:
    store = RunStore(workspace)
    runs: list[dict[str, Any]] = []
    by_policy: dict[str, list[tuple[Run, list[Fate]]]] = {}
    divergences: list[dict[str, Any]] = []
    tools: dict[str, list[dict[str, Any]]] = {}
    costs: dict[str, float] = {}
    for trace_id in dict.fromkeys(outcome.trace_id for outcome in outcomes):
        stored = workspace.trace(trace_id)
        timeline = lay_out(stored.trace, tokens, turn_limit=args.turn_limit)
        tools[trace_id] = tool_tokens(stored.trace, stored.message_tokens)
        used = uses(timeline)
        done = [store.run(outcome.run_id) for outcome in outcomes if outcome.trace_id == trace_id and outcome.status == "done"]
        for run in done:
            cost = run_cost(run, prices, timeline, tokens.counter)
            runs.append(run_json(run, timeline, cost=cost, used=used))
            costs[run.head.policy] = costs.get(run.head.policy, 0.0) + cost.total
            by_policy.setdefault(run.head.policy, []).append((run, fates(timeline, run.turns, used)))
        for other in done[1:]:
            found = first_divergence(done[0], other)
            divergences.append(
                {"trace_id": trace_id, "first": found.first, "second": found.second, "t": found.t, "sentence": found.sentence}
            )
    table = run_table(workspace, [outcome.run_id for outcome in outcomes])
    failed = [
        {"trace_id": o.trace_id, "policy": o.policy, "error": o.error or STATUS_WORDS.get(o.status, o.status)}
        for o in outcomes
        if o.status != "done"
    ]
    return {
        "runs": runs,
        "failed": failed,
        "divergences": divergences,
        "tools": tools,
        "policies": policy_table(table).to_dicts(),
        "frontier": frontier(run_outcome(run, run["totals"], run["cost"], run["evidence"]) for run in runs)
        | {"prices": prices.name, "date": prices.date},
        "cost_parts": cost_parts(runs),
        "verdicts": [verdict_json(entry) for entry in _verdicts(by_policy, costs)],
        "mean_context": mean_context(turn_table(workspace, table)).to_dicts(),
        "scores": recorded_scores(workspace, {outcome.trace_id for outcome in outcomes}),
        "note": FIXED_ACTIONS,
        "exit_code": 1 if failed else 0,
    }


def _verdicts(found: dict[str, list[tuple[Run, list[Fate]]]], costs: dict[str, float]) -> list[Verdict]:
    """Each policy compared with base, or with the first one if there is no run of base."""
    accounts = [
        account(
            policy,
            [run.totals for run, _ in runs],
            [fate for _, own in runs for fate in own],
            [drop for run, own in runs for drop in drops(run.turns, run.head.block_tokens, own)],
            costs.get(policy),
        )
        for policy, runs in found.items()
    ]
    return verdicts(accounts, "base" if "base" in found else next(iter(found), ""))


def show(result: dict[str, Any]) -> None:
    if "estimate" in result:
        found = result["estimate"]
        print(
            f"{counted(found['runs'], 'run')}, {counted(found['turns'], 'turn')}; "
            f"loads {', '.join(found['models']) or 'no model'}, reads at most "
            f"{found['read_tokens']:,} tokens; {_range(found['least'], found['seconds'])} ({found['basis']}); includes stored runs"
        )
        return
    if "runs" not in result:
        policies.show(result)
        return
    numbers = f"{'turns':>6}{'total':>13}{'change':>9}{'peak':>10}{'compr.':>7}{'recall':>7}{'cost':>7}"
    print(f"{'trace':<20}{'policy':<26}{numbers}  evidence in context")
    for run in result["runs"]:
        totals, kept = run["totals"], run["evidence"]["in_context_pct"]
        survived = "none used" if kept is None else f"{kept:.0f} % of {run['evidence']['uses']}"
        stopped = run["evidence"]["searched_to_turn"]
        survived += "" if stopped is None else f", searched to turn {stopped}"
        actions, versus = totals["actions"], run["cost"]["vs_base"]
        cost = "" if versus is None else f"{versus:.2f}"
        print(
            f"{run['trace_id']:<20}{run['policy']:<26}{len(run['turns']):>6}{totals['total']:>13,}{0.0 - totals['reduction_pct']:>8.1f}%"
            f"{totals['peak_active']:>10,}{actions['compress']:>7}{actions['recall']:>7}{cost:>7}  {survived}"
        )
    for entry in result["verdicts"]:
        print(entry["sentence"])
    for entry in result["divergences"]:
        print(f"{entry['trace_id']}: {entry['sentence']}")
    _show_cheapest(result["frontier"])
    if result["runs"]:
        found = result["frontier"]
        notes = [note for note in (without_times(found), "" if found["points"] else FREE) if note]
        dated = f"{found['prices']} ({found['date'] or 'no date'})"
        print("; ".join([f"cost: relative to the base agent, simulated with prices {dated}", *notes]))
        print(f"tokens: {result['runs'][0]['tokens_kind']}, {result['runs'][0]['tokenizer']}. {FIXED_ACTIONS}")


def _range(least: float, seconds: float) -> str:
    """The time, or a range if other programs are slowing the machine down."""
    if seconds < APART * least:
        return f"about {_seconds(seconds)} s"
    return f"{_seconds(least)} to {_seconds(seconds)} s, because other programs are using this machine"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _show_cheapest(found: dict[str, Any]) -> None:
    """Over several traces: the cheapest policy at each level of evidence."""
    for row in found["cheapest"] if found["traces"] > 1 else []:
        if row["policy"] is None:
            print(f"{row['level']} % evidence: no policy keeps that much")
            continue
        cost = f"{row['cost_vs_base']:.2f} of base [{row['cost_low']:.2f}, {row['cost_high']:.2f}]"
        kept = f"{row['evidence_pct']:.1f} % in context [{row['evidence_low']:.1f}, {row['evidence_high']:.1f}]"
        print(f"{row['level']} % evidence: {row['policy']} is cheapest, {cost}, {kept}, n = {row['traces']}")
