"""`pamer-lab prices`: the price tables with their source and date."""

import argparse
from typing import Any

import msgspec

from pamer_lab.prices import DEFAULT, price_tables
from pamer_lab.workspace import Workspace

DATED = "Prices change: each table shows what its source listed on its date."


def run(args: argparse.Namespace) -> dict[str, Any]:
    tables, broken = price_tables(Workspace().path)
    return {"prices": [msgspec.structs.asdict(table) for table in tables], "broken": broken, "default": DEFAULT, "note": DATED}


def show(result: dict[str, Any]) -> None:
    heads = f"{'uncached':>9}{'read':>8}{'write':>8}{'output':>8}"
    print(f"{'table':<26}{'date':<12}{heads}  {'per 1M':<7}{'minimum':>8}{'steps':>6}{'seconds':>9}")
    for row in result["prices"]:
        print(
            f"{row['name']:<26}{row['date']:<12}{row['uncached']:>9g}{row['read']:>8g}{row['write']:>8g}{row['output']:>8g}  "
            f"{row['currency']:<7}{row['minimum_tokens']:>8,}{row['granularity_tokens']:>6,}{row['lifetime_seconds']:>9,g}"
        )
        print(f"    source: {row['source']}")
        if row["note"]:
            print(f"    {row['note']}")
    print(f"{result['note']} Without --prices, {result['default']} is used.")
    for sentence in result["broken"]:
        print(f"left out: {sentence}")
