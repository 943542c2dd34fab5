"""Every printed value that does not come out even, by table: a change in a transcribed number shows here."""

from pamer_lab.analysis.published import names
from tests.analysis.roundings import roundings

LISTED: dict[str, list[tuple[str, str, float, float]]] = {
    "cross_model": [
        ("MiMo-V2.5 PaMER+", "average_change", 15.8, 15.9),
    ],
    "full_benchmark": [
        ("+ PaMER", "average_change", -0.4, -0.5),
    ],
    "method_comparison": [
        ("+ PaMER+", "average_change", 1.3, 1.4),
        ("Sliding Window (K=5)", "average_change", -11.2, -11.1),
        ("Sliding Window (K=5)", "tokens_change_pct", 56.3, 56.1),
        ("Sliding Window (K=10)", "average", 62.1, 62.2),
        ("Sliding Window (K=10)", "code_change", 1.4, 1.5),
        ("Sliding Window (K=10)", "office_change", -8.6, -8.5),
        ("Sliding Window (K=10)", "tokens_change_pct", 5.1, 4.8),
        ("Sliding Window (K=20)", "average_change", 1.1, 1.2),
        ("Sliding Window (K=20)", "tokens_change_pct", 7.0, 6.9),
        ("Periodic Summary (n=3)", "office_change", -14.0, -13.9),
        ("Periodic Summary (n=3)", "tokens_change_pct", 17.2, 16.9),
        ("Periodic Summary (n=5)", "security_change", -4.5, -4.6),
        ("Periodic Summary (n=5)", "average_change", 2.6, 2.7),
        ("Periodic Summary (n=5)", "tokens_change_pct", 25.5, 25.4),
        ("PACE", "code_change", -2.6, -2.5),
        ("PACE", "office_change", -25.9, -25.8),
        ("PACE", "security_change", -1.0, -1.1),
        ("PACE", "tokens_change_pct", -41.6, -41.8),
        ("LLMLingua-2", "tokens_change_pct", 27.3, 27.0),
        ("SelfCompact", "tokens_change_pct", -17.0, -16.9),
        ("ACON-Core", "office_change", -13.1, -13.0),
        ("ACON-Core", "security_change", 3.4, 3.3),
        ("ACON-Core", "tokens_change_pct", -25.7, -25.9),
        ("Self-GC", "code_change", -9.5, -9.4),
        ("Self-GC", "office_change", -10.0, -9.9),
        ("Self-GC", "average_change", -5.1, -5.0),
        ("Self-GC", "tokens_change_pct", -12.4, -12.2),
        ("LRE", "security_change", -17.4, -17.5),
        ("LRE", "tokens_change_pct", 21.3, 21.2),
        ("CoMem", "office_change", -21.8, -21.7),
        ("CoMem", "tokens_change_pct", -59.5, -59.3),
        ("SAM", "security_change", 2.7, 2.6),
        ("SAM", "average_change", -1.7, -1.6),
        ("SAM", "tokens_change_pct", -28.7, -28.6),
        ("SWE-Pruner", "code_change", -9.5, -9.4),
        ("SWE-Pruner", "average_change", -7.1, -7.0),
        ("SWE-Pruner", "tokens_change_pct", -20.5, -20.6),
        ("Sculptor", "security_change", -9.3, -9.4),
        ("Sculptor", "average_change", -8.3, -8.2),
        ("Sculptor", "tokens_change_pct", -31.5, -31.7),
    ],
    "paired": [
        ("Recent2 KD - Recent2", "C / AUROC", 0.0058, 0.005),
        ("Recent2 KD - Recent2", "R / F1", 0.0278, 0.028),
        ("Raw Top5 - Hidden Bank Recent5", "C / AUROC", 0.0627, 0.063),
        ("Raw Top5 - Hidden Bank Recent5", "R / AUROC", 0.0389, 0.039),
    ],
}
"""Table -> (row, cell, printed, recomputed from the printed neighbours)."""


def test_the_roundings_of_every_table_are_exactly_these() -> None:
    found = {name: [(one.row, one.cell, one.printed, one.recomputed) for one in roundings(name)] for name in names()}
    assert {name: rows for name, rows in found.items() if rows} == LISTED


def test_no_rounding_is_larger_than_rounding_explains() -> None:
    # One tenth of a point for scores; tokens are printed with three digits, so a percentage may move by half a percent.
    for name in ("full_benchmark", "method_comparison", "cross_model"):
        for one in roundings(name):
            assert abs(one.printed - one.recomputed) < (0.5 if one.cell == "tokens_change_pct" else 0.11), one
    assert all(abs(one.printed - one.recomputed) <= 0.0010001 for one in roundings("paired"))
