"""What if the thresholds, the vote, the minimum candidate size, the window, the horizon or the prices had been different? No model call.

The heads read the prefix and the recent blocks, which no earlier compression changes, so the stored logits are valid for other settings;
only what follows from them is recomputed: votes for all turns at once, then one pass over the turns for what is still uncompressed. Where
a memory differs from the stored one, the tokens of what would be recalled from it are an estimate (the stored run's mean per memory) and
marked as such; every other number is exact.
Invariant: unchanged settings give exactly the stored decisions and tokens (`verified`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.controller.gate import Gate
from pamer_lab.counts import counted
from pamer_lab.decisions import Action
from pamer_lab.errors import InputError
from pamer_lab.prices import PriceTable, find_prices
from pamer_lab.runs.values import FIXED_ACTIONS, Run

HORIZON, WINDOW = 20, 128_000
"""Of a gate that a question puts before a run that had none: turns, and the tokens a model takes."""
SUMMARY_CAP = 1024
"""Tokens assumed for a recalled summary where the stored run has recalled none."""


@dataclass(frozen=True)
class Changes:
    """What to change; None leaves a setting as the run had it."""

    thresholds: tuple[float, ...] | None = None
    """Probabilities: one for all heads, or one per head."""
    threshold_scale: float = 1.0
    """Factor on the thresholds."""
    vote: int | None = None
    """Heads that must agree."""
    minimum: int | None = None
    """Least tokens of a candidate."""
    retained: int | None = None
    """Complete blocks kept. The logits remain those of the stored window, so decisions are approximate and say so."""
    horizon: int | None = None
    """Turns within which an edit must pay back; puts the priced gate before a run that had none."""
    prices: PriceTable | None = None
    """Prices of that gate; puts it before a run that had none."""


@dataclass(frozen=True)
class WhatIf:
    """New decisions beside the stored ones, as columns over turns."""

    run_id: str
    actions: list[Action]
    stored: list[Action]
    votes: npt.NDArray[np.int64]
    """Heads over their threshold; -1 where no logit is stored."""
    candidate_tokens: npt.NDArray[np.int64]
    active_tokens: npt.NDArray[np.int64]
    estimated: npt.NDArray[np.bool_]
    """Turns whose tokens rest on an estimate."""
    missing: list[int]
    """Turns that would have needed a logit which is not stored; they count as no compression."""
    notes: list[str]

    @property
    def changed_turns(self) -> list[int]:
        return [t for t, (new, old) in enumerate(zip(self.actions, self.stored, strict=True)) if new != old]

    def as_json(self) -> dict[str, Any]:
        turns = [
            {
                "t": t,
                "action": self.actions[t],
                "stored_action": self.stored[t],
                "votes": int(self.votes[t]) if self.votes[t] >= 0 else None,
                "candidate_tokens": int(self.candidate_tokens[t]),
                "active_tokens": int(self.active_tokens[t]),
                "tokens_kind": "estimated" if self.estimated[t] else "measured",
            }
            for t in range(len(self.actions))
        ]
        return {
            "run_id": self.run_id,
            "changed_turns": self.changed_turns,
            "turns": turns,
            "main_input": int(self.active_tokens.sum()),
            "peak_active": int(self.active_tokens.max(initial=0)),
            "missing_logits": self.missing,
            "notes": [*self.notes, FIXED_ACTIONS],
        }


class WhatIfRun:
    """A stored run, laid out once so that every question is answered in milliseconds."""

    def __init__(self, run: Run) -> None:
        rule = run.head.settings.get("rule")
        if not isinstance(rule, dict):
            why = "leaves every block in the request" if "rule" in run.head.settings else "decides without heads"
            needs = "pamer, pamer+ or pamer-no-recall"
            raise InputError(f"run {run.run_id} is of {run.head.policy!r}, which {why}; what-if needs a run of {needs}")
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
        gate, sums = self.gate(Changes()), self.sums
        if gate is None:
            return asked
        windows = self._windows(self.rule["retained"])
        found, covered = [], 0
        for t, turn in enumerate(self.run.turns):
            left = self._before(t, sums[covered], sums[windows[t]], self.held[t])
            found.append(asked[t] and gate.ask(**left, idle=self.idle(t)).edit)
            covered = max((last for _, last in turn.stored), default=0)
        return found

    def idle(self, t: int) -> float | None:
        """Seconds since the request before, by the trace's time stamps."""
        times = self.run.head.times
        return times[t] - times[t - 1] if t and len(times) > t else None

    def _before(self, t: int, covered: int, window: int, held: float) -> dict[str, int]:
        """What the gate is asked about: tokens that would leave, tokens behind them, and the request without the edit."""
        blocks, removed = int(self.raw[t]) - int(covered), max(0, int(window) - int(covered))
        return {"removed": removed, "behind": blocks - removed - self.head_tokens, "tokens": blocks + round(held)}

    @property
    def head_tokens(self) -> int:
        """Tools and prefix."""
        return self.run.head.tools_tokens + self.run.head.prefix_tokens

    @cached_property
    def shorter_ends(self) -> list[int]:
        """Where the range ended that a stored turn compressed after failures; the number of blocks where it took the whole candidate."""
        windows, most = self._windows(self.rule["retained"]), len(self.numbers) - 1
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
        """Mean tokens of appended memory so many turns after a compression, over the stored run; empty where it has none."""
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

    def gate(self, changes: Changes) -> Gate | None:
        """The priced gate under changed settings; None where only the heads decide."""
        stored = self.rule.get("gate")
        if stored is None and changes.horizon is None and changes.prices is None:
            return None
        gate = Gate(**stored) if stored else Gate.of(find_prices(), horizon=HORIZON, window=WINDOW)
        if changes.prices is not None:
            gate = Gate.of(changes.prices, horizon=gate.horizon, window=gate.window)
        return gate if changes.horizon is None else replace(gate, horizon=changes.horizon)

    def ask(self, changes: Changes | None = None) -> WhatIf:
        """Decide every turn again under changed settings."""
        changes = changes or Changes()
        retained = self.rule["retained"] if changes.retained is None else changes.retained
        vote = self.rule["vote"] if changes.vote is None else changes.vote
        minimum = self.rule["minimum"] if changes.minimum is None else changes.minimum
        heads = max((len(turn.logits) for turn in self.run.turns), default=0)
        if changes.vote is not None and heads and not 1 <= changes.vote <= heads:
            raise InputError(f"of {heads} heads, 1 to {heads} can be asked to agree, not {changes.vote}")
        votes = self._votes(changes)
        answer = _Pass(self, self._windows(retained), minimum, votes >= vote, votes >= 0, self.gate(changes)).go()
        notes = list(self._notes(changes, answer))
        return WhatIf(
            self.run.run_id, answer.actions, self.actions, votes, answer.candidates, answer.active, answer.estimated, answer.missing, notes
        )

    @cached_property
    def verified(self) -> tuple[int, int]:
        """How many stored decisions and token counts come out again with unchanged settings, of how many."""
        again = self.ask()
        equal = np.array(again.actions) == np.array(self.actions)
        return int(np.sum(equal & (again.active_tokens == self.active))), len(self.actions)

    def _votes(self, changes: Changes) -> npt.NDArray[np.int64]:
        heads = self.logits.shape[1]
        if changes.thresholds is None and changes.threshold_scale == 1.0:
            return np.array([sum(turn.votes) if turn.logits else -1 for turn in self.run.turns], dtype=np.int64)
        limits = self.thresholds
        if changes.thresholds is not None:
            if len(changes.thresholds) not in (1, heads) and heads:
                raise InputError(f"the run has {heads} heads; give one threshold or {heads}, not {len(changes.thresholds)}")
            limits = np.broadcast_to(np.asarray(changes.thresholds, dtype=float), self.logits.shape)
        if changes.threshold_scale != 1.0:
            limits = limits * changes.threshold_scale
        with np.errstate(invalid="ignore", over="ignore"):
            over = 1.0 / (1.0 + np.exp(-self.logits)) >= limits  # (turns, heads)
        known = ~np.isnan(self.logits).any(axis=1) if heads else np.zeros(len(self.logits), dtype=bool)
        return np.where(known, over.sum(axis=1), -1).astype(np.int64)

    def _windows(self, retained: int) -> npt.NDArray[np.int64]:
        """First block of the recent window at each turn."""
        turns = np.arange(len(self.actions))
        if not retained:
            return turns.astype(np.int64)
        before = np.searchsorted(self.complete, turns)
        place = np.maximum(before - retained, 0)
        starts = self.complete[np.minimum(place, len(self.complete) - 1)] if len(self.complete) else np.zeros_like(turns)
        return np.where(before > retained, starts, 0).astype(np.int64)

    def _notes(self, changes: Changes, answer: "_Pass") -> list[str]:
        notes = []
        if changes.retained is not None and changes.retained != self.rule["retained"]:
            notes.append(f"the heads read the newest {self.rule['retained']} blocks; their logits are used for {changes.retained}")
        heads = self.run.head.settings.get("heads") or {}
        if heads.get("hint") == "faithful" and answer.actions != self.actions:
            notes.append("the heads' hint names the stored run's context size, so logits after the first changed turn are approximate")
        if answer.missing:
            notes.append(
                f"no logit is stored for {counted(len(answer.missing), 'turn')} where one would be needed, counted as no compression"
            )
        if answer.gate is not None:
            timed = "" if self.run.head.times else "; the run has no time stamps, so the cache is never cold"
            notes.append(f"edits must pay back within {counted(answer.gate.horizon, 'turn')} at the prices of {answer.gate.prices}{timed}")
        if answer.estimated.any():
            notes.append(f"tokens of {counted(int(answer.estimated.sum()), 'turn')} are based on an estimate of what would be recalled")
        return notes


class _Pass:
    """The walk over the turns: what is still uncompressed depends on what was decided before."""

    def __init__(
        self,
        given: WhatIfRun,
        windows: npt.NDArray[np.int64],
        minimum: int,
        enough: npt.NDArray[np.bool_],
        known: npt.NDArray[np.bool_],
        gate: Gate | None,
    ) -> None:
        count = len(given.actions)
        self.given, self.windows, self.minimum = given, windows.tolist(), minimum
        self.enough, self.known, self.gate = enough.tolist(), known.tolist(), gate
        self.age = 0
        """Turns since the last compression."""
        self.actions: list[Action] = []
        self.candidates = np.zeros(count, dtype=np.int64)
        self.active = np.zeros(count, dtype=np.int64)
        self.estimated = np.zeros(count, dtype=bool)
        self.missing: list[int] = []

    def go(self) -> "_Pass":
        rule, sums, numbers = self.given.rule, self.given.sums.tolist(), self.given.numbers.tolist()
        shorter = self.given.shorter_ends
        covered = stored_covered = memories = 0
        same = True
        for t, turn in enumerate(self.given.run.turns):
            window, old = self.windows[t], turn.action
            candidate = max(0, sums[window] - sums[covered])
            self.candidates[t] = candidate
            eligible = rule["compresses"] and 0 < candidate >= self.minimum
            wanted = eligible and self.enough[t] and self.known[t]
            if wanted and self.gate is not None:
                held = self.given.held[t] if same else self._held(self.age, memories)
                asked = self.given._before(t, sums[covered], sums[window], held)
                wanted = self.gate.ask(**asked, idle=self.given.idle(t)).edit
            if eligible and not self.known[t] and old != "fallback":
                self.missing.append(t)
            if old == "fallback" and (not self.known[t] or (same and wanted == self.given.wanted[t])):
                action: Action = "fallback"
            elif wanted:
                action, covered, memories = "compress", min(window, shorter[t]) if same else window, memories + 1
            elif not memories or not rule["recalls"]:
                action = "pass"
            else:
                action = old if old in ("pass", "recall") and (same or (rule["recalls"] == "steps" and stored_covered)) else "recall"
                if self.given.appends and not same:
                    action = "recall" if self.age == 0 else "pass"
            if old == "compress":
                stored_covered = max((last for _, last in turn.stored), default=0)
            self.actions.append(action)
            self.age = 0 if action == "compress" else self.age + 1
            same = same and numbers[covered] == numbers[stored_covered] and (action == "compress") == (old == "compress")
            if same and action == old:
                self.active[t] = turn.active_tokens
            else:
                self._count(t, action, sums[covered], memories)
        return self

    def _count(self, t: int, action: Action, removed: int, memories: int) -> None:
        raw = self.given.raw[t]
        if action == "fallback":
            removed = 0
        elif self.given.appends and action != "compress":
            self.estimated[t] = bool(memories)
            raw += round(self._held(self.age, memories))
        elif action == "recall":
            self.estimated[t] = True
            raw += round(
                self.given.recall_tokens * (min(memories, self.given.rule["top"]) if self.given.rule["recalls"] == "summaries" else 1)
            )
        self.active[t] = raw - removed

    def _held(self, age: int, memories: int) -> float:
        """About the tokens of appended memory so many turns after a compression."""
        known = self.given.held_by_age
        if not memories or not age or not self.given.appends:
            return 0.0
        if known:
            return known[min(age, len(known)) - 1]
        return float(self.given.recall_tokens * (min(memories, self.given.rule["top"]) if self.given.rule["recalls"] == "summaries" else 1))


def what_if(run: Run) -> WhatIfRun | None:
    """A run ready to be asked; None where no rule decided it, so that there is nothing to change."""
    return WhatIfRun(run) if isinstance(run.head.settings.get("rule"), dict) and run.turns else None
