"""What if the thresholds, the vote, the minimum candidate size, the window, the horizon or the prices had been different? No model call.

The heads read the prefix and the recent blocks, which no earlier compression changes, so the stored logits are valid for other settings;
only what follows from them is recomputed: votes for all turns at once, then one pass over the turns for what is still uncompressed. Where
a memory differs from the stored one, the tokens of what would be recalled from it are an estimate (the stored run's mean per memory) and
marked as such; every other number is exact.
Invariant: unchanged settings give exactly the stored decisions and tokens (`verified`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.controller.gate import Gate
from pamer_lab.counts import counted
from pamer_lab.decisions import Action
from pamer_lab.errors import InputError
from pamer_lab.prices import PriceTable
from pamer_lab.runs.stored_decisions import StoredDecisions
from pamer_lab.runs.values import FIXED_ACTIONS, Run


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
    """Minimum tokens of a candidate."""
    retained: int | None = None
    """Complete blocks kept. The logits remain those of the stored window, so decisions are approximate and say so."""
    horizon: int | None = None
    """Turns within which an edit must pay back; adds the priced gate to a run that had none."""
    prices: PriceTable | None = None
    """Prices of that gate; adds it to a run that had none."""


@dataclass(frozen=True)
class WhatIf:
    """New decisions and the stored ones, as columns over turns."""

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


class WhatIfRun(StoredDecisions):
    """A stored run that answers what-if questions."""

    def ask(self, changes: Changes | None = None) -> WhatIf:
        """Decide every turn again under changed settings."""
        changes = changes or Changes()
        retained = self.rule["retained"] if changes.retained is None else changes.retained
        vote = self.rule["vote"] if changes.vote is None else changes.vote
        minimum = self.rule["minimum"] if changes.minimum is None else changes.minimum
        heads = max((len(turn.logits) for turn in self.run.turns), default=0)
        if changes.vote is not None and heads and not 1 <= changes.vote <= heads:
            raise InputError(f"the vote must be from 1 to {heads}, the number of heads, not {changes.vote}")
        votes = self._votes(changes)
        answer = _Pass(self, self.windows(retained), minimum, votes >= vote, votes >= 0, self.gate(changes.horizon, changes.prices)).go()
        notes = list(self._notes(changes, answer))
        return WhatIf(
            self.run.run_id, answer.actions, self.actions, votes, answer.candidates, answer.active, answer.estimated, answer.missing, notes
        )

    @cached_property
    def verified(self) -> tuple[int, int]:
        """For how many turns unchanged settings reproduce the stored decision and token count; and the number of turns."""
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
            timed = "" if self.run.head.times else "; the run has no timestamps, so the cache is never cold"
            notes.append(f"edits must pay back within {counted(answer.gate.horizon, 'turn')} at the prices of {answer.gate.prices}{timed}")
            if answer.gate.appended and answer.actions != self.actions:
                notes.append("after the first changed turn the rule uses an estimate of the memory that would be appended")
        if answer.estimated.any():
            notes.append(f"tokens of {counted(int(answer.estimated.sum()), 'turn')} are based on an estimate of what would be recalled")
        return notes


class _Pass:
    """The walk over the turns: what is still uncompressed depends on what was decided before."""

    def __init__(
        self,
        given: StoredDecisions,
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
                asked = self.given.before(t, sums[covered], sums[window], held)
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
            raw += round(self._recalled(memories))
        self.active[t] = raw - removed

    def _held(self, age: int, memories: int) -> float:
        """Estimated tokens of appended memory `age` turns after a compression."""
        known = self.given.held_by_age
        if not memories or not age or not self.given.appends:
            return 0.0
        if known:
            return known[min(age, len(known)) - 1]
        return self._recalled(memories)

    def _recalled(self, memories: int) -> float:
        """Estimated tokens of one recall."""
        entries = min(memories, self.given.rule["top"]) if self.given.rule["recalls"] == "summaries" else 1
        return float(self.given.recall_tokens * entries)


def what_if(run: Run) -> WhatIfRun | None:
    """A run ready for questions; None if no rule decided it or it has no turns, so that there is nothing to change."""
    return WhatIfRun(run) if isinstance(run.head.settings.get("rule"), dict) and run.turns else None
