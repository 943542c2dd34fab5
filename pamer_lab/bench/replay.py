"""`pamer-lab bench replay`: what replay itself costs when the models' answers are already stored.

One synthetic trace of 256 turns and 200,000 tokens goes through all policies (`grown_policies`) twice: the first pass fills a
cache of summaries and embeddings, the second is measured, storage included. Then what-if over 1,000 turns, and the per-turn
mean table over 260 stored runs of 256 turns.

`turn256_vs_turn32` shows whether a run is linear in its turns: the median time of the last 32 of 256 turns over that of turns 16 to 47,
each summed over the policies; `turn256_vs_turn32_worst` is the value of the policy that grows most. 1 means that a turn costs the same
however long the history is; rescanning the complete history at each turn would give about 7.5. A policy that does nothing until its
history is long (`first_work` in the details) is compared with its first 32 turns from its first action on.
`turns2000_vs_4x500` shows the same for complete runs, and `bench/reading.py` compares a `pamer` replay with the bare forward pass it needs.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pamer_lab.bench import reading, stored_runs
from pamer_lab.bench.measure import say
from pamer_lab.controller import Votes
from pamer_lab.factory import Parts
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.summary import CachedSummariser
from pamer_lab.memory.terms import forget_lines
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.policies.registry import offered_policies, parse_policy
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace
from pamer_lab.workspace import Workspace

HELP = "engine overhead of all policies, growth with the turns, what-if, the mean table of 260 runs, and `pamer` against a bare pass"
TURNS, TOKENS = 256, 200_000
LENGTHS = (500, 2_000)
"""Turns of the two traces that show whether a policy's time is linear in its turns."""
TURN_TOKENS = 640
"""Tokens per turn of these traces: enough for every policy to act in the shorter one (`auto-compact` waits for 160,000)."""
ROUNDS, ENOUGH = 5, 2.0
"""Runs of each of the two, of which the fastest counts; one run is enough if the longer trace takes so many seconds."""
EARLY_BEGIN, EARLY_TURNS = 16, 32
"""Turns around the 32nd."""
LATE = slice(TURNS - 32, TURNS)
LATEST_BEGIN = TURNS // 2
"""A policy that first acts later than this is compared from `EARLY_BEGIN` on: its history hardly grows after its first action."""


class KeptVotes:
    """Heads with predetermined votes: about one turn in eight votes for compression."""

    name = "kept votes"

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        yes = len(messages[-1].content) % 8 == 0
        return Votes((1.0 if yes else -1.0,) * 5, (0.5,) * 5)


def make_trace(turns: int, tokens: int) -> Trace:
    """A search session with results of different length, about `tokens` tokens long."""
    chance = random.Random(0)  # noqa: S311 - a fixed text, no secret
    words = [
        f"{chance.choice('bcdfghklmnprst')}{chance.choice('aeiou')}{chance.choice(['ren', 'lis', 'mont', 'dar', 'tov'])}"
        for _ in range(400)
    ]
    messages = [Message("system", "You are a careful researcher."), Message("user", "Who founded the museum named in the first letter?")]
    for number in range(turns):
        size = int(tokens / turns / 2.4 * chance.uniform(0.5, 1.5))
        body = " ".join(chance.choice(words) for _ in range(size))
        text = ". ".join(body[start : start + 120] for start in range(0, len(body), 120))
        call = ToolCall(f"c{number}", "search", f'{{"q": "letter {number}"}}')
        messages += [
            Message("assistant", f"Next: letter {number}.", (call,)),
            Message("tool", text, tool_call_id=f"c{number}", name="search"),
        ]
    return Trace("t-bench", "q-bench", "bench", tuple(messages), (Tool("search", "finds letters"),))


Measured = tuple[dict[str, float], dict[str, Any]]
"""Ratios, and the figures behind them."""


def run(blocks: int = reading.BLOCKS, parts: Sequence[str] = ()) -> Measured:
    """`blocks`: length of the trace that the part `forward` reads; fewer for a quick try. `parts`: run only these."""
    ratios: dict[str, float] = {}
    details: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in PARTS.items():
            if not parts or name in parts:
                say(f"part {name}")
                began = time.perf_counter()
                found, facts = measure(Path(folder), blocks)
                ratios |= found
                details |= facts | {"seconds_of_parts": details.get("seconds_of_parts", {}) | {name: time.perf_counter() - began}}
    return ratios, details


def _all_policies(folder: Path) -> Measured:
    tokens = profile_tokens(load_profile("embedded"))
    trace = make_trace(TURNS, TOKENS)
    parts = Parts(CachedSummariser(ExtractiveSummariser(tokens.counter)), KeptEmbeddings(HashingEmbedder()), KeptVotes())
    first: dict[str, float] = {}
    seconds: dict[str, float] = {}
    cpu = {"first": 0.0, "second": 0.0}
    per_turn: dict[str, list[float]] = {}
    actions: dict[str, dict[str, int]] = {}
    windows: dict[str, dict[str, Any]] = {}
    begins: dict[str, int] = {}
    for measured in (first, seconds):
        workspace = Workspace(folder / ("first" if measured is first else "second"))
        for policy in grown_policies():
            began, cpu_began = time.perf_counter(), time.process_time()
            done = replay(trace, policy, workspace, ReplayOptions(parts=parts))
            measured[policy] = time.perf_counter() - began
            if measured is seconds:
                cpu["second"] += time.process_time() - cpu_began
            elif _model_free(policy):
                cpu["first"] += time.process_time() - cpu_began
            if measured is seconds:
                per_turn[policy] = [turn.seconds for turn in done.turns]
                begins[policy] = first_compared(done.turns)
                early_turns = done.turns[begins[policy] : begins[policy] + EARLY_TURNS]
                windows[policy] = {"early": _by_action(early_turns), "late": _by_action(done.turns[LATE])}
                actions[policy] = done.totals["actions"]
    late = {policy: statistics.median(times[LATE]) for policy, times in per_turn.items()}
    early = {policy: statistics.median(times[begins[policy] : begins[policy] + EARLY_TURNS]) for policy, times in per_turn.items()}
    growth = {policy: late[policy] / early[policy] for policy in per_turn}
    ratios = {
        "seconds_all_policies": sum(seconds.values()),
        "seconds_without_a_model": sum(first[policy] for policy in first if _model_free(policy)),
        "turn256_vs_turn32": sum(late.values()) / sum(early.values()),
        "turn256_vs_turn32_worst": max(growth.values()),
    }
    details = {
        "turns": TURNS,
        "tokens": sum(tokens.counts(trace.messages)),
        "tokenizer": tokens.counter.name,
        "policies": seconds,
        "without_a_model": [policy for policy in seconds if _model_free(policy)],
        "turn256_vs_turn32": growth,
        "cpu_seconds_all_policies": cpu["second"],
        "cpu_seconds_without_a_model": cpu["first"],
        "actions": actions,
        "windows": windows,
        "first_work": {policy: begin for policy, begin in begins.items() if begin != EARLY_BEGIN},
        "with_summaries_written": sum(first.values()),
        "median_ms_per_turn": {policy: 1000 * statistics.median(times) for policy, times in per_turn.items()},
    }
    return ratios, details


def _linear(folder: Path) -> Measured:
    """Processor time of 2,000 turns over four times that of 500: of the policy that grows most, and of each policy."""
    tokens = profile_tokens(load_profile("embedded"))
    few, many = LENGTHS
    traces = {turns: make_trace(turns, TURN_TOKENS * turns) for turns in LENGTHS}
    found: dict[str, float] = {}
    for policy in grown_policies():
        seconds = {turns: float("inf") for turns in LENGTHS}
        for number in range(ROUNDS):
            for turns, trace in traces.items():
                parts = Parts(CachedSummariser(ExtractiveSummariser(tokens.counter)), KeptEmbeddings(HashingEmbedder()), KeptVotes())
                workspace = Workspace(folder / f"linear-{turns}-{len(found)}-{number}")
                workspace.add_traces([trace], tokens)
                forget_lines()  # their cache holds those of the short trace, not those of the long one
                began = time.process_time()
                replay(trace, policy, workspace, ReplayOptions(parts=parts))
                seconds[turns] = min(seconds[turns], time.process_time() - began)
            if seconds[many] >= ENOUGH:
                break
        found[policy] = seconds[many] / (many / few * seconds[few])
        say(f"{policy}: {seconds[few]:.2f} s for {few} turns, {seconds[many]:.2f} s for {many:,}")
    return {"turns2000_vs_4x500": max(found.values())}, {"turns2000_vs_4x500": found}


def grown_policies() -> list[str]:
    """Every policy that can run on a synthetic trace: none that needs a chat server, its own weights or recorded calls."""
    return [name for name in offered_policies() if not {"chat", "weights", "recorded calls"} & {*parse_policy(name).needs}]


def _model_free(name: str) -> bool:
    policy = parse_policy(name)
    return not policy.needs_models and "embedder" not in policy.needs


def first_compared(turns: Sequence[Turn]) -> int:
    """Where a run's early turns begin: at the usual turn, or at its first action if that is later and the history still doubles."""
    first = next((turn.t for turn in turns if turn.action != "pass" or turn.active_tokens < turn.raw_tokens), 0)
    return first if EARLY_BEGIN < first <= LATEST_BEGIN else EARLY_BEGIN


def _by_action(turns: Sequence[Turn]) -> dict[str, dict[str, float]]:
    """Number and median milliseconds of the turns of each kind: two windows need not have the same share of compressions."""
    found: dict[str, list[float]] = {}
    for turn in turns:
        found.setdefault(turn.action, []).append(1000 * turn.seconds)
    return {action: {"turns": len(times), "median_ms": statistics.median(times)} for action, times in sorted(found.items())}


PARTS: Mapping[str, Callable[[Path, int], Measured]] = {
    "policies": lambda folder, blocks: _all_policies(folder),
    "what-if": lambda folder, blocks: stored_runs.what_if(),
    "table": lambda folder, blocks: stored_runs.mean_table(folder),
    "linear": lambda folder, blocks: _linear(folder),
    "forward": reading.measured,
}
"""What `--part` names, in the order of the run: all policies over 256 turns; what-if; the mean table; growth with the turns; `pamer`
against a bare pass."""
