"""Benchmarks, one module each; each compares within one process and one run."""
