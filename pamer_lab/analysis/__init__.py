"""Runs and studies -> tables and figures; the paper's published tables."""
