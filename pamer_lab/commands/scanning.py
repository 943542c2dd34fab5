"""The scan for secrets as every export has it: one option, and what it found in words."""

import argparse
from typing import Any

from pamer_lab.redaction import Scan, summary

LISTED = 20
"""Findings printed; all of them are in the JSON."""


def configure_scan(parser: argparse.ArgumentParser, only: str = "") -> None:
    """`--redact`, and `--scan`; `only` names the action they belong to where a command has several."""
    where = f"for {only}: " if only else ""
    parser.add_argument(
        "--redact",
        choices=["all", "keys", "none"],
        default="keys",
        help=f"{where}which findings of the secret scan to redact (default: keys)",
    )
    parser.add_argument("--scan", action="store_true", help=f"{where}only list what the secret scan finds; write nothing")


def scan_facts(scan: Scan) -> dict[str, Any]:
    """The result's keys about the scan."""
    return {"redact": scan.choice, "found": summary(scan.findings), "findings": [vars(finding) for finding in scan.findings]}


def show_findings(result: dict[str, Any]) -> None:
    """What the scan found and what became of it."""
    for row in result["found"]:
        print(f"{row['kind']}: {row['different']} different in {row['places']} places, {'redacted' if row['redacted'] else 'left in'}")
    for finding in result["findings"][:LISTED]:
        print(
            f"  {finding['kind']} {finding['number']}  {finding['shown']}  {finding['place']}{'' if finding['redacted'] else '  (left in)'}"
        )
    if len(result["findings"]) > LISTED:
        print(f"  and {len(result['findings']) - LISTED} more; --json lists all")
    if not result["findings"]:
        print("the secret scan found nothing")
