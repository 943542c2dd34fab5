"""A trace and policies -> runs: engine, ledger, accounting, evidence survival, divergence, what-if."""
