"""Closed-loop evaluation: an agent acts on what a policy shows it, in generated worlds whose answers are known."""
