"""Whether an edit of the context pays off under a provider's prices; pure arithmetic, no clock and no model.

An edit removes `S` tokens in the middle of a request, so the `T` tokens after them that stay are written to the prompt cache again
instead of being read: `(w - r) T - r S` more at this turn. Every later turn reads `S` tokens less. With `r` and `w` the prices of reading
and writing, the edit has paid back after `((w - r) / r) (T / S) - 1` further turns. Memory that was appended after the blocks leaves with
the edit and is written again when it is recalled again, so it counts as part of `T`: all of it, since how much comes back is not known in
advance.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from pamer_lab.prices import PriceTable

FULL = 0.9
"""Share of the window from which an edit is made regardless of its cost."""

COLD = 2
"""Number of lifetimes without a request after which a cache counts as cold: providers keep prefixes longer than they promise."""


@dataclass(frozen=True)
class Verdict:
    """Whether to edit now, and why."""

    edit: bool
    reason: str
    turns: float = 0.0
    """Turns until the edit has paid back; infinite if it never does, 0 if prices play no part."""


@dataclass(frozen=True)
class Gate:
    """Edit only if it pays back within a horizon, the cache is cold, the client rewrote its history, or the window is nearly full."""

    prices: str
    """The table's name."""
    read: float
    write: float
    lifetime: float
    """Seconds after which an unused prefix is no longer cached. 0: nothing is cached."""
    horizon: int
    """Turns within which an edit must pay back."""
    window: int
    """Size of the model's context window in tokens. 0: unknown."""
    appended: bool = False
    """Whether appended memory counts as part of `T`. False: it is left out, as in earlier runs."""

    @classmethod
    def of(cls, prices: PriceTable, *, horizon: int, window: int, appended: bool = False) -> "Gate":
        return cls(prices.name, prices.read, prices.write, prices.lifetime_seconds, horizon, window, appended)

    def as_settings(self) -> dict[str, Any]:
        # Left out if False, so that runs without appended memory keep their ids.
        return {name: value for name, value in asdict(self).items() if name != "appended" or value}

    def payback(self, removed: int, behind: int) -> float:
        """Turns after this one until an edit has paid back."""
        extra, saved = (self.write - self.read) * behind, self.read * removed
        if extra <= saved:
            return 0.0
        return extra / saved - 1 if saved else math.inf

    def ask(self, *, removed: int, behind: int, tokens: int, idle: float | None, appended: int = 0) -> Verdict:
        """The verdict on an edit.

        `removed`: tokens of the blocks that would leave. `behind`: tokens of the blocks after them. `tokens`: those of the request without
        the edit. `appended`: tokens of recalled memory after the blocks.
        `idle`: seconds since the session's last request; None: unknown, and the cache counts as warm. Infinite: the client
        rewrote its history.
        """
        turns = self.payback(removed, behind + appended * self.appended)
        after = f"pays back after {self._counted(turns)}, horizon {self.horizon}"
        if idle == math.inf:
            return Verdict(True, "the client rewrote its history", turns)
        if not self.lifetime or (idle is not None and idle > COLD * self.lifetime):
            return Verdict(True, "the cache is cold", turns)
        if self.window and tokens >= FULL * self.window:
            return Verdict(True, f"the window of {self.window:,} tokens is nearly full", turns)
        if turns <= self.horizon:
            return Verdict(True, after, turns)
        return Verdict(False, f"would {after.replace('pays', 'pay', 1)}" if turns < math.inf else "would never pay back", turns)

    def _counted(self, turns: float) -> str:
        if turns == math.inf:
            return "no number of turns"
        return "1 turn" if math.ceil(turns) == 1 else f"{math.ceil(turns):,} turns"
