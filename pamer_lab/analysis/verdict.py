"""A policy in one sentence: its tokens, priced cost and evidence against a baseline, and what the paper measured for it in live runs.

Works on sums, so that one trace and a hundred are treated alike. Costs are passed in (`prices.costs_by_policy`) and may be missing.
Invariant: what was replayed and what was published stay apart, and each names its kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from pamer_lab.analysis.paper_comparison import live_result
from pamer_lab.runs.drops import Drop
from pamer_lab.runs.evidence import IN_CONTEXT, Fate, survival_rates

Sense = Literal["good", "bad", ""]
"""Whether a change is for the better; empty if it is neutral or cannot be judged."""


class Account(Struct, frozen=True):
    """The sums over one policy's runs."""

    policy: str
    traces: int
    tokens: float
    """Total tokens of all runs, the policy's own model calls included."""
    uses: int | None = None
    """Uses of evidence by recorded actions; None if they were not searched for."""
    kept: int = 0
    """Uses whose evidence was in the context at that turn: verbatim, restored, or in a summary."""
    dropped: int = 0
    """Blocks that left a request with nothing in their place."""
    cost: float | None = None
    """At the user's prices; None without prices."""

    @property
    def kept_pct(self) -> float | None:
        return 100 * self.kept / self.uses if self.uses else None


def account(
    policy: str,
    totals: Sequence[Mapping[str, Any]],
    fates: Iterable[Fate] | None = None,
    dropped: Iterable[Drop] = (),
    cost: float | None = None,
) -> Account:
    """The sums of a policy's runs: `totals` one per run, `fates` and `dropped` of all of them."""
    tokens, blocks = sum(entry["total"] for entry in totals), sum(len(drop.blocks) for drop in dropped)
    if fates is None:
        return Account(policy, len(totals), tokens, dropped=blocks, cost=cost)
    rates = survival_rates(list(fates))
    return Account(policy, len(totals), tokens, rates["uses"], sum(rates[fate] for fate in IN_CONTEXT), blocks, cost)


class Verdict(Struct, frozen=True):
    """One policy against the baseline."""

    policy: str
    baseline: str
    traces: int
    tokens: float
    """Per trace."""
    tokens_pct: float | None
    """Change against the baseline, per trace; None for the baseline itself."""
    cost_pct: float | None
    """The same for the cost; None without prices."""
    uses: int | None
    kept_pct: float | None
    baseline_kept_pct: float | None
    dropped: int
    live: dict[str, Any] | None
    """The paper's live result (`paper_comparison.live_result`)."""

    @property
    def parts(self) -> list[str]:
        """What the replay measured, in words, without the policy's name."""
        words = ["baseline" if self.tokens_pct is None else f"{signed(self.tokens_pct)} % tokens"]
        if self.cost_pct is not None:
            words.append(f"cost {signed(self.cost_pct)} %")
        if self.uses == 0:
            words.append("no evidence was used")
        elif self.kept_pct is not None:
            against = (
                "" if self.tokens_pct is None or self.baseline_kept_pct is None else f", {self.baseline} {self.baseline_kept_pct:.1f} %"
            )
            words.append(f"{self.kept_pct:.1f} % of the evidence in context (n = {self.uses:,}{against})")
        if self.dropped:
            words.append(f"drops {self.dropped:,} block{'' if self.dropped == 1 else 's'}")
        return words

    @property
    def live_words(self) -> str:
        """The paper's live result in words, or that there is none; empty for `base`."""
        if self.policy == "base":
            return ""
        if self.live is None:
            return "not measured in the paper"
        return f"{signed(self.live['tokens_pct'])} % tokens, {signed(self.live['points'])} points"

    @property
    def sentence(self) -> str:
        """All of it on one line, for a terminal."""
        live = f". Paper, live: {self.live_words}" if self.live_words else ""
        place = f" ({self.live['place']})" if self.live else ""
        return f"{self.policy}: {', '.join(self.parts)}{live}{place}"


def verdicts(accounts: Sequence[Account], baseline: str) -> list[Verdict]:
    """One verdict per account, in their order; without the baseline among them nothing is compared."""
    base = next((entry for entry in accounts if entry.policy == baseline), None)
    return [_verdict(entry, base) for entry in accounts]


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(verdict)
    return fields | {"sentence": verdict.sentence}


def _verdict(own: Account, base: Account | None) -> Verdict:
    other = base if base is not None and base.policy != own.policy else None
    return Verdict(
        policy=own.policy,
        baseline=base.policy if base is not None else "",
        traces=own.traces,
        tokens=own.tokens / max(own.traces, 1),
        tokens_pct=_change(own.tokens / own.traces, other.tokens / other.traces) if other is not None else None,
        cost_pct=_cost_change(own, other) if other is not None else None,
        uses=own.uses,
        kept_pct=own.kept_pct,
        baseline_kept_pct=base.kept_pct if base is not None else None,
        dropped=own.dropped,
        live=live_result(own.policy),
    )


def _cost_change(own: Account, base: Account) -> float | None:
    return None if own.cost is None or not base.cost else _change(own.cost / own.traces, base.cost / base.traces)


def _change(value: float, base: float) -> float:
    return 100 * (value / base - 1) if base else 0.0


def signed(value: float) -> str:
    """`+56.3`, `-11.2`, with a hyphen as the minus sign, as in tables and CSVs; a value that rounds to zero has no sign."""
    text = f"{value:+.1f}"
    return text if float(text) else text[1:]


def token_sense(tokens: float, base_tokens: float, cost: float | None, base_cost: float | None) -> Sense:
    """Whether a change in tokens is for the better; judged only if the cost is known and does not change in the other direction."""
    if tokens == base_tokens or cost is None or base_cost is None:
        return ""
    if tokens < base_tokens:
        return "good" if cost <= base_cost else ""
    return "bad" if cost >= base_cost else ""
