"""A stored run of PaMER's rule, laid out as arrays once, so that questions about other settings are answered in milliseconds.

Knows nothing of the questions; they are in `whatif.py`.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.controller.gate import Gate
from pamer_lab.decisions import Action
from pamer_lab.errors import InputError
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.runs.values import Run

HORIZON, WINDOW = 20, 128_000
"""Defaults of a gate that a question adds to a run that had none: turns, and tokens of the model's window."""
SUMMARY_CAP = 1024
"""Tokens assumed for a recalled summary where the stored run has recalled none."""


class StoredDecisions:
    """A stored run of PaMER's rule, as arrays over turns and blocks."""

    def __init__(self, run: Run) -> None:
        rule = run.head.settings.get("rule")
        if not isinstance(rule, dict):
            why = "leaves every block in the request" if "rule" in run.head.settings else "decides without heads"
            needs = "pamer, pamer+ or pamer-no-recall"
            raise InputError(f"run {run.run_id} used {run.head.policy!r}, which {why}; what-if needs a run of {needs}")
        self.run = run
        self.rule: dict[str, Any] = rule
        turns = run.turns
        heads = max((len(turn.logits) for turn in turns), default=0)
        self.logits = np.full((len(turns), heads), np.nan)  # (turns, heads)
        self.thresholds = np.full((len(turns), heads), np.nan)
        for t, turn in enumerate(turns):
            if turn.logits:
                self.logits[t], self.thresholds[t] = turn.logits, turn.thresholds
        self.actions: list[Action] = [turn.action for turn in turns]
        self.active = np.array([turn.active_tokens for turn in turns], dtype=np.int64)
        self.raw = np.array([turn.raw_tokens for turn in turns], dtype=np.int64)
        complete = np.ones(len(run.head.block_tokens), dtype=bool)
        complete[list(run.head.incomplete)] = False
        self.complete = np.flatnonzero(complete)
        tokens = np.where(complete, run.head.block_tokens, 0)
        self.sums = np.concatenate([[0], np.cumsum(tokens, dtype=np.int64)])
        """Tokens of the complete blocks among the first 0, 1, ... blocks."""
        self.numbers = np.concatenate([[0], np.cumsum(complete)])
        """Number of complete blocks among the first 0, 1, ... blocks."""

    @cached_property
    def wanted(self) -> list[bool]:
        """Turns at which the stored votes and candidate asked for compression, whatever came of it."""
        vote, minimum = self.rule["vote"], self.rule["minimum"]
        asked = [sum(turn.votes) >= vote and 0 < turn.candidate_tokens >= minimum for turn in self.run.turns]
        gate, sums = self.gate(), self.sums
        if gate is None:
            return asked
        windows = self.windows(self.rule["retained"])
        found, covered = [], 0
        for t, turn in enumerate(self.run.turns):
            left = self.before(t, sums[covered], sums[windows[t]], self.held[t])
            found.append(asked[t] and gate.ask(**left, idle=self.idle(t)).edit)
            covered = max((last for _, last in turn.stored), default=0)
        return found

    def idle(self, t: int) -> float | None:
        """Seconds since the previous request, by the trace's timestamps."""
        times = self.run.head.times
        return times[t] - times[t - 1] if t and len(times) > t else None

    def before(self, t: int, covered: int, window: int, held: float) -> dict[str, int]:
        """What the gate is asked about: tokens that would leave, tokens after them, appended memory, and the request without the edit."""
        blocks, removed = int(self.raw[t]) - int(covered), max(0, int(window) - int(covered))
        kept = round(held)
        return {"removed": removed, "behind": blocks - removed - self.head_tokens, "appended": kept, "tokens": blocks + kept}

    @property
    def head_tokens(self) -> int:
        """Tools and prefix."""
        return self.run.head.tools_tokens + self.run.head.prefix_tokens

    @cached_property
    def shorter_ends(self) -> list[int]:
        """End of the shorter range that a stored turn compressed after failures; the number of blocks if it took all of the candidate."""
        windows, most = self.windows(self.rule["retained"]), len(self.numbers) - 1
        ends = [max((last for _, last in turn.stored), default=0) if turn.action == "compress" else most for turn in self.run.turns]
        return [end if self.numbers[end] < self.numbers[window] else most for end, window in zip(ends, windows, strict=True)]

    @cached_property
    def recall_tokens(self) -> float:
        """Mean tokens that the stored run put in per recalled summary (or, for step selection, per recall)."""
        recalls = [turn for turn in self.run.turns if turn.action == "recall"]
        if not recalls:
            return SUMMARY_CAP
        tokens = sum(item.tokens for turn in recalls for item in turn.items if item.text)
        return tokens / sum(max(1, len(turn.memory_ids)) if self.rule["recalls"] == "summaries" else 1 for turn in recalls)

    @cached_property
    def held(self) -> list[int]:
        """Tokens of recalled memory that is in the request before each stored decision (`inject=append`)."""
        held, before = 0, []
        for turn in self.run.turns:
            before.append(held)
            if self.appends and turn.action != "fallback":
                held = 0 if turn.action == "compress" else sum(item.tokens for item in turn.items if item.text)
        return before

    @property
    def appends(self) -> bool:
        return bool(self.rule.get("inject") == "append")

    @cached_property
    def held_by_age(self) -> list[float]:
        """Mean tokens of appended memory by turns since the last compression, over the stored run; empty if it has none."""
        ages: list[list[int]] = []
        age, started = 0, False
        for turn in self.run.turns:
            started, age = started or turn.action == "compress", 0 if turn.action == "compress" else age + 1
            if started and turn.action in ("pass", "recall"):
                ages += [[] for _ in range(age - len(ages))]
                ages[age - 1].append(sum(item.tokens for item in turn.items if item.text))
        means: list[float] = []
        for found in ages:
            means.append(sum(found) / len(found) if found else means[-1] if means else 0.0)
        return means

    def gate(self, horizon: int | None = None, prices: PriceTable | None = None) -> Gate | None:
        """The priced gate under changed settings; None where only the heads decide."""
        stored = self.rule.get("gate")
        if stored is None and horizon is None and prices is None:
            return None
        gate = Gate(**stored) if stored else Gate.of(find_prices(), horizon=HORIZON, window=WINDOW, appended=self.appends)
        if prices is not None:
            gate = Gate.of(prices, horizon=gate.horizon, window=gate.window, appended=gate.appended)
        return gate if horizon is None else replace(gate, horizon=horizon)

    def windows(self, retained: int) -> npt.NDArray[np.int64]:
        """First block of the recent window at each turn."""
        turns = np.arange(len(self.actions))
        if not retained:
            return turns.astype(np.int64)
        before = np.searchsorted(self.complete, turns)
        place = np.maximum(before - retained, 0)
        starts = self.complete[np.minimum(place, len(self.complete) - 1)] if len(self.complete) else np.zeros_like(turns)
        return np.where(before > retained, starts, 0).astype(np.int64)
