"""What a run cost and how much evidence it kept, as input to comparisons of policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pamer_lab.runs.cost import NO_TIMES


@dataclass(frozen=True)
class Outcome:
    """The cost and evidence of one run."""

    policy: str
    trace_id: str
    task: str
    cost: float
    base: float
    """Cost of the base agent on the same turns."""
    kept: int
    """Uses of evidence that was in context."""
    uses: int
    tokens: int
    base_tokens: int
    peak: int
    read: int
    sent: int
    """Main input, of which `read` came from the cache."""
    changed: bool = True
    """Whether any request differed from the base agent's."""
    untimed: bool = False
    """Whether every earlier request counted as still cached, because the trace has no timestamps."""


def outcome(facts: Mapping[str, Any], totals: Mapping[str, Any], cost: Mapping[str, Any], rates: Mapping[str, Any]) -> Outcome:
    """An outcome from the JSON of a run's head, totals, cost and evidence."""
    sent = sum(cost["tokens"][name] for name in ("read", "write", "uncached"))
    kept = rates["uses"] - rates["memory"] - rates["gone"]
    named = {"policy": facts["policy"], "trace_id": facts["trace_id"], "task": facts["question_id"]}
    sizes = {"tokens": totals["total"], "base_tokens": totals["base_total"], "peak": totals["peak_active"]}
    billed = {"cost": cost["total"], "base": cost["base_total"], "read": cost["tokens"]["read"], "sent": sent}
    changed = totals["main_input"] + totals["main_output"] != totals["base_total"]
    return Outcome(**named, **billed, kept=kept, uses=rates["uses"], **sizes, changed=changed, untimed=NO_TIMES in cost["note"])
