"""`pamer-lab bench traces PATH...`: does each ledger add up, for every trace, turn and policy?

Uses the embedded profile with its tokenizer, extractive summaries, router and recall agent, but replaces the two neural networks: heads
vote from the last message's hash, and hashed words replace MiniLM's vectors. Hidden states for all turns of a thousand traces take hours
on a CPU, and the votes change which blocks leave the context, not whether the ledger adds up (`tests/runs/test_embedded.py` runs the real
models). Nothing is stored. Each run is counted twice: by the engine, which rejects an answer that does not add up, and by `runs.recount`,
which shares no code with it. A trace that fails is named; the others continue.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pamer_lab.controller.probe import TextProbe
from pamer_lab.errors import LabError
from pamer_lab.factory import Factory, Parts
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.policies.registry import DEFAULT_POLICIES, parse_policy
from pamer_lab.policies.resources import RunResources
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.ledger import LedgerError
from pamer_lab.runs.recount import faults
from pamer_lab.runs.timeline import Timeline, lay_out
from pamer_lab.runs.turns import replay_turns
from pamer_lab.trajectory import Trace, iter_traces
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import DEMO_FOLDER

HELP = "replays every trace below the given paths through all policies, without a turn limit, and counts every ledger twice"
PROFILE = "embedded"
EMBEDDER, PROBE = HashingEmbedder(), TextProbe()
SAY_EVERY = 10.0
"""Seconds between two lines of progress."""
SLOWEST = 5
"""Traces whose times are reported."""


def run(paths: Sequence[Path] = ()) -> tuple[dict[str, float], dict[str, Any]]:
    found = list(iter_traces(list(paths) or [DEMO_FOLDER]))
    traces = [item for item in found if isinstance(item, Trace)]
    rejected = [item.sentence for item in found if not isinstance(item, Trace)]
    with tempfile.TemporaryDirectory() as folder:
        return _report(_Runs(Workspace(folder)), traces, rejected)


def _report(runs: "_Runs", traces: Sequence[Trace], rejected: list[str]) -> tuple[dict[str, float], dict[str, Any]]:
    began, said = time.perf_counter(), time.perf_counter()
    for number, trace in enumerate(traces, 1):
        runs.add(trace)
        if time.perf_counter() - said > SAY_EVERY:
            said = time.perf_counter()
            print(f"{number} of {len(traces)} traces, {len(runs.violations)} violations, {len(runs.failures)} failures", file=sys.stderr)
    ratios: dict[str, float] = {
        "traces": len(traces),
        "policies": len(DEFAULT_POLICIES),
        "runs": runs.count,
        "turns": runs.turns,
        "ledger_violations": len(runs.violations),
        "failures": len(runs.failures),
    }
    return ratios, {
        "profile": PROFILE,
        "parts": f"heads without a model ({PROBE.name}), {EMBEDDER.name} vectors; every other part is the profile's",
        "turn_limit": None,
        "tokenizer": runs.tokens.counter.name,
        "policies": runs.policies,
        "longest_turns": max((turns for _, _, turns in runs.times), default=0),
        "slowest": [{"trace": name, "turns": turns, "seconds": spent} for spent, name, turns in sorted(runs.times, reverse=True)[:SLOWEST]],
        "violations": runs.violations,
        "failed": runs.failures,
        "rejected": rejected,
        "seconds": time.perf_counter() - began,
    }


class _Runs:
    """All runs so far, counted."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.profile = workspace, load_profile(PROFILE)
        self.tokens = profile_tokens(self.profile)
        self.count = self.turns = 0
        self.policies: dict[str, dict[str, int]] = {}
        self.violations: list[str] = []
        self.failures: list[str] = []
        self.times: list[tuple[float, str, int]] = []

    def add(self, trace: Trace) -> None:
        began = time.perf_counter()
        name = f"{Path(trace.source.path).name if trace.source else ''} {trace.trace_id}"
        timeline = lay_out(trace, self.tokens)
        for policy in DEFAULT_POLICIES:
            try:
                self.violations += [f"{name}, {policy}, {fault}" for fault in self._run(timeline, policy)]
            except LedgerError as error:
                self.violations.append(f"{name}, {policy}, {error}")
            except LabError as error:
                self.failures.append(f"{name}, {policy}: {error}")
        self.turns += timeline.turns
        self.times.append((time.perf_counter() - began, name, timeline.turns))

    def _run(self, timeline: Timeline, policy: str) -> Iterator[str]:
        """Replay once and report what does not add up."""
        session = f"{timeline.trace.trace_id} {policy}"
        factory = Factory(self.profile, self.workspace, parts=Parts(embedder=EMBEDDER, probe=PROBE))
        resources = RunResources(factory, session)
        turns = list(replay_turns(timeline, parse_policy(policy), resources))
        counted = totals(timeline, turns)
        row = self.policies.setdefault(policy, dict.fromkeys(("turns", "pass", "compress", "recall", "fallback"), 0))
        row["turns"] += len(turns)
        for action, times in counted["actions"].items():
            row[action] += times
        self.count += 1
        yield from faults(timeline, turns)
        if policy.startswith("pamer") and any("." in turn.states for turn in turns):
            yield "PaMER lost a block: in no request and in no memory"
