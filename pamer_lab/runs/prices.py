"""Tokens -> cost, at the user's own prices; no default prices are included.

Prices live in `prices.json` of the workspace (or any file given): a row per model or operation name, `default` for the rest,
each with `input`, `cached_input` and `output` per million tokens. Local work is not priced. Without a row that applies, a cost
is None and says what is missing.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pamer_lab.errors import InputError
from pamer_lab.opening import read_file
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.runs.values import RunInfo
from pamer_lab.storage.files import write_whole

MILLION = 1_000_000
FILE = "prices.json"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Money per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """For input served from the provider's prefix cache; None means the same as `input`."""


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's prices."""

    currency: str = "USD"
    rows: dict[str, Price] = {}
    """`default`, `main`, or the name of an auxiliary operation such as `summary`."""

    def row(self, name: str) -> Price | None:
        return self.rows.get(name) or self.rows.get("default")


def read_prices(path: Path) -> PriceTable:
    """The table in a file; no file means no prices."""
    if not path.exists():
        return PriceTable()
    try:
        table = msgspec.json.decode(read_file(path), type=PriceTable)
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"is not a price table ({error}); it looks like {EXAMPLE}", path=str(path)) from error
    for name, price in table.rows.items():
        if min(price.input, price.output, price.cached_input or 0.0) < 0:
            raise InputError(f"has a negative price for {name!r}", path=str(path))
    return table


def write_prices(path: Path, table: PriceTable) -> None:
    """Save an edited table, all or nothing."""
    refuse_in_reviewer_mode("Changing prices", path.parent)
    write_whole(path, msgspec.json.format(msgspec.json.encode(table), indent=2), parents=True)


def cost(totals: Mapping[str, Any], table: PriceTable) -> dict[str, Any]:
    """What a run's tokens cost by the table, main and auxiliary apart."""
    main = table.row("main")
    missing = [] if main else ["main"]
    parts: dict[str, float] = {}
    if main:
        cached = main.input if main.cached_input is None else main.cached_input
        spent = totals["uncached_input"] * main.input + totals["cached_input"] * cached + totals["main_output"] * main.output
        parts["main"] = spent / MILLION
    for operation, used in totals["auxiliary"].items():
        price = table.row(operation)
        if price is None:
            missing.append(operation)
            continue
        parts[operation] = (used["input"] * price.input + used["output"] * price.output) / MILLION
    note = f"no price is set for {', '.join(missing)}" if missing else ""
    return {"currency": table.currency, "total": None if missing else sum(parts.values()), "parts": parts, "note": note}


def costs_by_policy(heads: Iterable[RunInfo], table: PriceTable) -> dict[str, float]:
    """What each policy's runs cost together; a policy with a part that has no price is left out."""
    sums: dict[str, float | None] = {}
    for head in heads:
        spent, before = cost(head.totals, table)["total"], sums.get(head.policy, 0.0)
        sums[head.policy] = None if spent is None or before is None else before + spent
    return {policy: value for policy, value in sums.items() if value is not None}


EXAMPLE = '{"currency": "USD", "rows": {"default": {"input": 1.0, "cached_input": 0.1, "output": 4.0}}}'
"""The form of the file; the figures show the shape and are nobody's prices."""
