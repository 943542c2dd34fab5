"""A trace and policies -> runs: engine, ledger, accounting, evidence survival, divergence, what-if.

Import from the modules by their full path (`from pamer_lab.runs.engine import replay`): the name `pamer_lab.replay` itself is
the function (`docs/decisions.md`).
"""
