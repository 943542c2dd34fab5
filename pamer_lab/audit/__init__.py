"""Selections of PaMER+ kept for review: audit rows, reviews with their history, agreement, and exchange with files."""

from pamer_lab.audit.agreement import Agreement, Quality, cohens_kappa, quality
from pamer_lab.audit.exchange import export_audit, import_audit
from pamer_lab.audit.reviews import Review, ReviewStore, Verdict
from pamer_lab.audit.store import AuditStore

__all__ = [
    "Agreement",
    "AuditStore",
    "Quality",
    "Review",
    "ReviewStore",
    "Verdict",
    "cohens_kappa",
    "export_audit",
    "import_audit",
    "quality",
]
