"""Printed values of the published tables that differ from the same value recomputed from other printed cells.

Rounding explains all of them: averages and changes were computed from unrounded scores, percentages from unrounded tokens.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from pamer_lab.analysis.published import table

DOMAINS = ("code", "office", "security", "web")
TASKS = {"code": 80, "office": 50, "security": 60, "web": 70}
"""Tasks per domain of the full benchmark."""
EQUAL = dict.fromkeys(DOMAINS, 1)
SCORED = {"full_benchmark": TASKS, "method_comparison": EQUAL, "cross_model": EQUAL}
"""Tables with scores per domain -> how their average weighs the domains."""
PAIRS = {
    "Recent2 KD - Recent2": ("Recent2 + decision KD", "Recent2"),
    "Raw Top5 - Hidden Bank Recent5": ("Selective Raw Top5", "Hidden Bank Recent5"),
}
"""Comparisons of the paired table -> rows of the compact table."""
TENTH = Decimal("0.1")


@dataclass(frozen=True)
class Rounding:
    """One printed value and what its neighbours give."""

    row: str
    cell: str
    printed: float
    recomputed: float


def roundings(name: str) -> list[Rounding]:
    """All of one table, in its order; an empty list where everything comes out even or nothing can be recomputed."""
    if name == "paired":
        return _paired()
    return [found for number in range(len(table(name).rows)) for found in _scored(name, number)] if name in SCORED else []


def _scored(name: str, number: int) -> list[Rounding]:
    rows, weights = table(name).rows, SCORED[name]
    row, base = rows[number], rows[number - number % 3 if name == "cross_model" else 0]
    label = f"{row.get('backbone', '')} {row['label']}".strip()
    average = sum((_exact(row[domain]) * weights[domain] for domain in DOMAINS), Decimal(0)) / sum(weights.values())
    cells = [("average", average.quantize(TENTH, ROUND_HALF_UP))]
    cells += [(f"{key}_change", _exact(row[key]) - _exact(base[key])) for key in (*DOMAINS, "average")]
    share = 100 * (_exact(row["tokens"]) / _exact(base["tokens"]) - 1)
    cells.append(("tokens_change_pct", share.quantize(TENTH, ROUND_HALF_UP)))
    return [Rounding(label, key, row[key], float(recomputed)) for key, recomputed in cells if key in row and _exact(row[key]) != recomputed]


def _paired() -> list[Rounding]:
    compact = table("compact")
    found = []
    for row in table("paired").rows:
        target, metric = row["metric"].split(" / ")
        key = f"{'compression' if target == 'C' else 'recall'}_{metric.lower()}"
        first, second = (_exact(compact.row(label)[key]) for label in PAIRS[row["label"]])
        if _exact(row["difference"]) != first - second:
            found.append(Rounding(row["label"], row["metric"], row["difference"], float(first - second)))
    return found


def _exact(value: Any) -> Decimal:
    return Decimal(str(value))
