"""`pamer-lab audit list | export FILE | import FILE | agreement | check | labels`: selections, hindsight labels, and their reviews."""

import argparse
from dataclasses import asdict
from typing import Any

from pamer_lab.audit import AuditStore, ReviewStore, export_audit, import_audit, quality
from pamer_lab.audit.agreement import all_agreements
from pamer_lab.audit.doubts import doubts
from pamer_lab.audit.exchange import audit_bytes
from pamer_lab.audit.labels import agreement as label_agreement
from pamer_lab.audit.labels import current
from pamer_lab.audit.store import steps_of
from pamer_lab.commands.scanning import scan_facts, show_findings
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.figures.text import one_line
from pamer_lab.redaction import own_scan
from pamer_lab.storage import Database
from pamer_lab.trajectory.labels import HINDSIGHT, by_hindsight
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    database = Workspace().database
    if args.what in ("export", "import") and not args.file and not args.scan:
        raise InputError(f"audit {args.what} needs a file: audit {args.what} FILE.csv|.jsonl|.parquet")
    match args.what:
        case "export":
            scan = own_scan(args.redact)
            written = audit_bytes(database, ".jsonl", scan)[1] if args.scan else export_audit(database, args.file, scan)
            return {"path": "" if args.scan else args.file, "rows": written} | scan_facts(scan)
        case "import":
            return {"path": args.file, "added": import_audit(database, args.file)}
        case "agreement":
            reviews = ReviewStore(database).current()
            selected = steps_of(AuditStore(database).rows())
            return {
                "reviews": len(reviews),
                "agreement": [asdict(pair) for pair in all_agreements(reviews)],
                "quality": asdict(quality(reviews, selected)),
            }
        case "labels":
            return _labels(database)
        case "check":
            reviews = ReviewStore(database).current()
            found = doubts(reviews, steps_of(AuditStore(database).rows()))
            return {"reviews": len(reviews), "doubtful": [asdict(one) for one in found], "exit_code": 1 if found else 0}
        case _:
            rows = AuditStore(database).rows(run_id=args.run)
            return {"selections": [row | {"created_at": row["created_at"].isoformat()} for row in rows]}


def _labels(database: Database) -> dict[str, Any]:
    """How far reviewers agree with the hindsight labels of this workspace."""
    known = [(name, label) for name, own in Workspace().labels().items() for label in own if by_hindsight(label)]
    return {"labels": len(known), "origin": HINDSIGHT, "label_agreement": label_agreement(current(database), known)}


def show(result: dict[str, Any]) -> None:
    for row in result.get("selections", []):
        steps = " ".join(str(step) for step in row["steps"]) or "-"
        where = f"{row['run_id'] or row['session_id']:<24.24} turn {row['turn']:>4}"
        print(f"{row['audit_id']}  {where}  {row['outcome']:<9} {steps:<16} {row['reason']}")
    if "rows" in result:
        show_findings(result)
        if result["path"]:
            print(f"{counted(result['rows'], 'row')} written to {result['path']}")
    if "added" in result:
        added = result["added"]
        print(f"{counted(added['selection'], 'selection')} and {counted(added['review'], 'review')} added from {result['path']}")
        if added.get("unknown"):
            print(f"skipped {counted(added['unknown'], 'review')} of selections that are not in this workspace")
    for pair in result.get("agreement", []):
        kappa = f"kappa {pair['kappa']:.3f}" if pair["kappa"] is not None else f"no kappa: {pair['reason']}"
        print(f"{' and '.join(pair['reviewers'])}: {pair['common']} in common, {kappa}")
    if found := result.get("quality"):
        total = found["reviews"] + found["unnamed"]
        print(f"{counted(total, 'review')}: " + ", ".join(f"{count} {verdict}" for verdict, count in found["verdicts"].items()))
        bound = "at most " if found["unnamed"] else ""
        of = {
            "precision": counted(found["chosen"], "chosen step"),
            "recall": counted(found["wanted"], "wanted step"),
            "exact": counted(total, "review"),
        }
        for name, n in of.items():
            print(f"{name}: {bound}{found[name]:.3f} (n = {n})" if found[name] is not None else f"{name}: none")
        if found["unnamed"]:
            print(f"{found['unnamed']} negative verdicts name no steps; each counts as if one step were at fault")
    for row in result.get("label_agreement", []):
        named = f"{row['target']} {'' if row['value'] is None else 'yes' if row['value'] else 'no'}"
        share = f"{100 * row['share']:.0f} % [{100 * row['interval'][0]:.0f}, {100 * row['interval'][1]:.0f}]" if row["reviews"] else "none"
        print(f"{named:<16} {row['agreed']} of {row['reviews']} reviews agree with the hindsight labels: {share}")
    if "doubtful" in result:
        for one in result["doubtful"]:
            steps, chosen = (" ".join(map(str, one[name])) or "none" for name in ("steps", "chosen"))
            print(
                f"{one['audit_id']}  {one['doubt']:<16}  {one['verdict']}, steps {steps}, chosen {chosen}  {one_line(one['reviewer'], 60)}"
            )
        print(f"{counted(result['reviews'], 'review')}, {len(result['doubtful'])} to check again (nothing was changed)")
