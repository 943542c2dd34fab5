"""Prints what the secret scan of an export found."""

from typing import Any

from pamer_lab.counts import counted
from pamer_lab.redaction import Scan, summary

LISTED = 20
"""Number of findings printed; the JSON has all of them."""


def scan_facts(scan: Scan) -> dict[str, Any]:
    """The result's keys about the scan."""
    return {"redact": scan.choice, "found": summary(scan.findings), "findings": [vars(finding) for finding in scan.findings]}


def show_findings(result: dict[str, Any]) -> None:
    """What the scan found and what became of it."""
    for row in result["found"]:
        print(
            f"{row['kind']}: {row['different']:,} distinct in {counted(row['places'], 'place')}, "
            f"{'redacted' if row['redacted'] else 'left in'}"
        )
    for finding in result["findings"][:LISTED]:
        print(
            f"  {finding['kind']} {finding['number']}  {finding['shown']}  {finding['place']}{'' if finding['redacted'] else '  (left in)'}"
        )
    if len(result["findings"]) > LISTED:
        print(f"  and {len(result['findings']) - LISTED} more; --json lists all")
    if not result["findings"]:
        print("the secret scan found nothing")
