"""Closed loop: an agent acts on what a policy lets it see, in worlds whose answers are known."""
